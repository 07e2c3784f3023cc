// Delivery to a STOMP 1.2 broker: one connection, a receipt for every message.
import { lookup } from "node:dns/promises";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Message, Sender, SendOutcome } from "./sender.ts";
import { encodeFrame, type StompFrame, StompFrameReader } from "./stomp-frame.ts";
import {
  PLATFORM_BROKER,
  type EventPolicy,
  type PlatformBroker,
  type StompTarget,
} from "./target.ts";

const FRAME_BYTES_MAX = 65_536;
const REASON_CHARS_MAX = 200;
const PORTS: Readonly<Record<string, number>> = { "stomp:": 61_613, "stomps:": 61_614 };

/** Options of a STOMP sender. */
export interface StompSenderOptions {
  target: StompTarget;
  policy: EventPolicy;
  /** Time limit of connecting, of the login and of each receipt, in ms. Default 10 000. */
  timeoutMs?: number;
  /** A connection without traffic is closed after this long, in ms. Default 30 000. */
  idleMs?: number;
  /** Resolves all addresses of a name. Default: the system's resolver. */
  resolve?: (host: string) => Promise<readonly { address: string; family: number }[]>;
}

/** Sends events as JSON messages. A message is delivered when the broker's receipt arrives. */
export function createStompSender(options: StompSenderOptions): Sender {
  let connection: Promise<StompConnection> | undefined;
  const forget = () => (connection = undefined);
  return {
    send: async (message) => {
      try {
        connection ??= openConnection(options, forget);
        const open = await connection;
        return await open.send(message);
      } catch (error) {
        forget();
        const reason = error instanceof Error ? error.message : String(error);
        return { kind: "retry", blames: "target", reason };
      }
    },
    close: () => {
      void connection?.then(
        (open) => open.close("closed"),
        () => undefined,
      );
      forget();
    },
  };
}

async function openConnection(
  options: StompSenderOptions,
  onClosed: () => void,
): Promise<StompConnection> {
  const isPlatform = options.target.url === PLATFORM_BROKER;
  const broker = isPlatform ? options.policy.platformBroker : options.target;
  if (broker === undefined) throw new Error(`${PLATFORM_BROKER} is not configured`);
  const url = new URL(broker.url);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const resolve = options.resolve ?? ((name) => lookup(name, { all: true }));
  const addresses =
    isIP(host) === 0 ? await findAddresses(host, resolve) : [{ address: host, family: isIP(host) }];
  // The connection goes to a checked address: the name is not resolved again.
  // The operator chose the platform's broker: its address may be private.
  const isAllowed =
    isPlatform || addresses.every(({ address }) => options.policy.isAllowed(address));
  if (addresses.length === 0 || !isAllowed) throw new Error(`${host}: the address is not allowed`);
  const { address } = addresses[0]!;
  const port = url.port === "" ? PORTS[url.protocol]! : Number(url.port);
  const ca = isPlatform ? options.policy.platformBroker?.ca : undefined;
  const trust = {
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(ca === undefined ? {} : { ca }),
  };
  const socket =
    url.protocol === "stomps:"
      ? connectTls({ host: address, port, ...trust })
      : connectTcp({ host: address, port });
  const connection = new StompConnection(socket, host, options, onClosed);
  await connection.logIn(broker);
  return connection;
}

async function findAddresses(
  host: string,
  resolve: NonNullable<StompSenderOptions["resolve"]>,
): Promise<readonly { address: string; family: number }[]> {
  try {
    return await resolve(host);
  } catch (error) {
    throw new Error(`${host}: no address found`, { cause: error });
  }
}

interface Waiting {
  settle: (outcome: SendOutcome) => void;
  timer: NodeJS.Timeout;
}

/** A connection that is logged in, or about to be. Any failure ends it and all waiting messages. */
class StompConnection {
  readonly #socket: Socket;
  readonly #host: string;
  readonly #options: StompSenderOptions;
  readonly #onClosed: () => void;
  readonly #reader = new StompFrameReader(FRAME_BYTES_MAX);
  readonly #waiting = new Map<string, Waiting>();
  readonly #timeoutMs: number;
  readonly #connected = Promise.withResolvers<void>();
  #isClosed = false;
  #receipts = 0;

  constructor(socket: Socket, host: string, options: StompSenderOptions, onClosed: () => void) {
    this.#socket = socket;
    this.#host = host;
    this.#options = options;
    this.#onClosed = onClosed;
    this.#timeoutMs = options.timeoutMs ?? 10_000;
    this.#connected.promise.catch(() => undefined);
    socket.setNoDelay(true);
    socket.on("data", (bytes: Buffer) => this.#read(bytes));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      this.close(error.code ?? "connection failed"),
    );
    socket.on("close", () => this.close("the broker closed the connection"));
  }

  async logIn({ url, user, password }: PlatformBroker | StompTarget): Promise<void> {
    const timer = setTimeout(
      () => this.close(`no login within ${this.#timeoutMs} ms`),
      this.#timeoutMs,
    );
    this.#socket.write(
      encodeFrame("CONNECT", {
        "accept-version": "1.2",
        host: readVirtualHost(url),
        "heart-beat": "0,0",
        ...(user === undefined ? {} : { login: user }),
        ...(password === undefined ? {} : { passcode: password }),
      }),
    );
    try {
      await this.#connected.promise;
    } finally {
      clearTimeout(timer);
    }
    this.#socket.setTimeout(this.#options.idleMs ?? 30_000, () => {
      if (this.#waiting.size === 0) this.close("idle");
    });
  }

  send({ id, body }: Message): Promise<SendOutcome> {
    const { target } = this.#options;
    const receipt = String(++this.#receipts);
    return new Promise((settle) => {
      if (this.#isClosed) {
        settle(blameTarget("the connection was lost"));
        return;
      }
      const timer = setTimeout(
        () => this.close(`no receipt within ${this.#timeoutMs} ms`),
        this.#timeoutMs,
      );
      this.#waiting.set(receipt, { settle, timer });
      this.#socket.write(
        encodeFrame(
          "SEND",
          {
            destination: target.destination,
            "content-type": "application/json",
            "content-length": String(Buffer.byteLength(body)),
            persistent: "true",
            "event-id": id,
            receipt,
          },
          body,
        ),
      );
    });
  }

  /** Ends the connection; messages without a receipt are to be retried. */
  close(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onClosed();
    this.#socket.destroy();
    this.#connected.reject(new Error(`${this.#host}: ${reason}`));
    for (const { settle, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      settle(blameTarget(`${this.#host}: ${reason}`));
    }
    this.#waiting.clear();
  }

  #read(bytes: Buffer): void {
    try {
      for (const frame of this.#reader.read(bytes)) this.#receive(frame);
    } catch (error) {
      this.close(`sent ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #receive(frame: StompFrame): void {
    switch (frame.command) {
      case "CONNECTED":
        this.#connected.resolve();
        return;
      case "RECEIPT": {
        const id = frame.headers.get("receipt-id") ?? "";
        const waiting = this.#waiting.get(id);
        if (waiting === undefined) return;
        this.#waiting.delete(id);
        clearTimeout(waiting.timer);
        waiting.settle({ kind: "delivered" });
        return;
      }
      case "ERROR":
        this.close(`said ${(frame.headers.get("message") ?? "ERROR").slice(0, REASON_CHARS_MAX)}`);
        return;
      default:
        // Without a subscription, a message means that this is not a broker, or not one that was understood.
        this.close("sent something that is not an answer of a STOMP broker");
    }
  }
}

// "/" is RabbitMQ's first virtual host; brokers without virtual hosts ignore it.
function readVirtualHost(url: string): string {
  return new URL(url).pathname.slice(1) || "/";
}

function blameTarget(reason: string): SendOutcome {
  return { kind: "retry", blames: "target", reason };
}
