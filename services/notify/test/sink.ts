// An SMTP server whose replies tests choose: it accepts, refuses, hangs or drops the connection at any step.
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** Steps at which a reply can be chosen. */
export type SinkStep = "connect" | "EHLO" | "MAIL" | "RCPT" | "DATA" | "content" | "RSET";

/** A reply, or one of the faults `hang` and `drop`. */
export type SinkReply = string;

/** A received message. */
export interface Received {
  sender: string;
  recipient: string;
  /** The content without dot-stuffing. */
  data: string;
}

/** A running sink. */
export interface Sink {
  port: number;
  /** Contents that arrived completely, whatever the reply to them was. */
  arrived: Received[];
  /** Contents that were answered with 250. */
  accepted: Received[];
  commands: string[];
  connections: number;
  /** Number of open connections. */
  readonly open: number;
  close(): Promise<void>;
}

/** Options of {@link startSink}. */
export interface SinkOptions {
  port?: number;
  features?: readonly string[];
  /** Chooses a reply; undefined for the usual one. `argument` is the address or the content. */
  reply?: (
    step: SinkStep,
    argument: string,
  ) => SinkReply | undefined | Promise<SinkReply | undefined>;
}

const DEFAULTS: Record<SinkStep, string> = {
  connect: "220 sink.test ESMTP",
  EHLO: "250 sink.test",
  MAIL: "250 2.1.0 ok",
  RCPT: "250 2.1.5 ok",
  DATA: "354 go ahead",
  content: "250 2.0.0 queued",
  RSET: "250 2.0.0 ok",
};

/** Starts a sink on a free port. */
export async function startSink(options: SinkOptions = {}): Promise<Sink> {
  const sockets = new Set<Socket>();
  const sink = {
    port: 0,
    arrived: [] as Received[],
    accepted: [] as Received[],
    commands: [] as string[],
    connections: 0,
    get open(): number {
      return sockets.size;
    },
    close: async (): Promise<void> => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    sink.connections += 1;
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    void serve(socket, sink, options);
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  sink.port = (server.address() as AddressInfo).port;
  return sink;
}

async function serve(socket: Socket, sink: Sink, options: SinkOptions): Promise<void> {
  const { features = ["PIPELINING", "SIZE 50000000", "8BITMIME", "ENHANCEDSTATUSCODES"] } = options;
  const answer = async (step: SinkStep, argument: string): Promise<string | undefined> => {
    const chosen = (await options.reply?.(step, argument)) ?? DEFAULTS[step];
    if (chosen === "drop") socket.destroy();
    if (chosen === "drop" || chosen === "hang") return undefined;
    const lines = step === "EHLO" ? [chosen, ...features.map((one) => `250 ${one}`)] : [chosen];
    const text = lines.map((line, index) =>
      index < lines.length - 1 ? line.replace(" ", "-") : line,
    );
    if (!socket.destroyed) socket.write(`${text.join("\r\n")}\r\n`);
    return chosen;
  };
  let sender = "";
  let recipient = "";
  if ((await answer("connect", "")) === undefined) return;
  const lines = readLines(socket);
  for (let line = await lines(); line !== undefined; line = await lines()) {
    sink.commands.push(line);
    const verb = line.slice(0, 4).toUpperCase();
    const argument = /<([^>]*)>/.exec(line)?.[1] ?? "";
    if (verb === "QUIT") {
      socket.end("221 2.0.0 bye\r\n");
      return;
    }
    const step = verb === "HELO" ? "EHLO" : (verb as SinkStep);
    if (!(step in DEFAULTS)) {
      socket.write("500 5.5.2 unknown command\r\n");
      continue;
    }
    const isRefused = step === "DATA" && recipient === "";
    if (isRefused) {
      socket.write("503 5.5.1 no valid recipients\r\n");
      continue;
    }
    const reply = await answer(step, argument);
    if (reply === undefined) return;
    if (step === "MAIL") sender = reply.startsWith("2") ? argument : "";
    if (step === "MAIL" || step === "RSET") recipient = "";
    if (step === "RCPT" && reply.startsWith("2")) recipient = argument;
    if (step !== "DATA" || !reply.startsWith("354")) continue;
    const content: string[] = [];
    for (let one = await lines(); one !== "."; one = await lines()) {
      if (one === undefined) return;
      content.push(one.startsWith(".") ? one.slice(1) : one);
    }
    const received = { sender, recipient, data: `${content.join("\r\n")}\r\n` };
    sink.arrived.push(received);
    recipient = "";
    const result = await answer("content", received.data);
    if (result === undefined) return;
    if (result.startsWith("2")) sink.accepted.push(received);
  }
}

function readLines(socket: Socket): () => Promise<string | undefined> {
  const ready: (string | undefined)[] = [];
  let waiting: ((line: string | undefined) => void) | undefined;
  let rest = "";
  const push = (line: string | undefined): void => {
    if (waiting === undefined) ready.push(line);
    else waiting(line);
    waiting = undefined;
  };
  socket.on("data", (chunk) => {
    rest += chunk.toString("latin1");
    const parts = rest.split("\r\n");
    rest = parts.pop()!;
    for (const part of parts) push(part);
  });
  socket.on("close", () => push(undefined));
  return () => {
    if (ready.length > 0) return Promise.resolve(ready.shift());
    return new Promise((resolve) => {
      waiting = resolve;
    });
  };
}
