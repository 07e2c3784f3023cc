// WebSockets: subscriptions with one message per frame, and statistics every second.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { getProblemHeaders, PlatformError, toProblem } from "@platform/kernel/errors";
import { findOutflow, mapLegacyPath, type Guard, type GuardedRequest } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import type { Logger } from "@platform/kernel/log";
import { every } from "@platform/kernel/time";
import { WebSocketServer, type WebSocket } from "ws";
import { plainAddress } from "../connection/transport.ts";
import { ReadAhead } from "../dispatch/read-ahead.ts";
import type { Sink } from "../dispatch/subscription.ts";
import type { Message } from "../message/message.ts";
import { hasAnyRight } from "../topic/rights.ts";
import { admitSubscriber, tenantOf } from "./admission.ts";
import type { MessageFrames } from "./message-frames.ts";
import {
  openSubscription,
  readSubscribeRequest,
  type OpenSubscription,
  type SubscribeOptions,
} from "./subscribe-request.ts";
import type { StatsReader } from "./stats-api.ts";
import type { Subscribers, SubscriberStream } from "./subscribers.ts";

/** Largest frame of a client: acknowledgements are short. */
const FRAME_BYTES_MAX = 64 * 1024;
/** Bytes buffered in a socket at which sending pauses. */
const WAITING_BYTES_MAX = 256 * 1024;
const STATS_MS = 1_000;
/** RFC 6455 section 7.4.1: going away, and policy violation. */
const CLOSE_CODES = { "going-away": 1001, revoked: 1008 } as const;

export interface WebSocketsOptions extends SubscribeOptions {
  subscribers: Subscribers;
  frames: MessageFrames;
  guard: Guard;
  origins: readonly string[];
  readStats: StatsReader;
  logger: Logger;
}

/** Handles upgrades to `/ws/subscribe/{topic}` and `/api/v1/stats/ws`. */
export class WebSockets {
  readonly #options: WebSocketsOptions;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: FRAME_BYTES_MAX,
    perMessageDeflate: false,
    // Those of MQTT and STOMP are served elsewhere. Clients that request another see that none was accepted, and close.
    handleProtocols: () => false,
  });

  constructor(options: WebSocketsOptions) {
    this.#options = options;
  }

  /** Handler of the listener's upgrade requests. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    this.#admit(request, socket, head).catch((error: unknown) => {
      if (!(error instanceof PlatformError)) {
        this.#options.logger.error("upgrade failed", { error });
      }
      refuse(socket, request, error);
    });
  }

  close(): void {
    for (const client of this.#server.clients) client.close(1001, "the broker is stopping");
    this.#server.close();
  }

  async #admit(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const url = new URL(request.url ?? "/", "http://localhost");
    const path = mapLegacyPath(url.pathname);
    const { guard, origins, subscribers } = this.#options;
    const guarded = toGuarded(request, path, url.search);
    const caller = await admitSubscriber(guard, guarded, url.searchParams, origins);
    if (socket.destroyed) return;
    socket.once("close", subscribers.admit(caller));
    if (path === "/api/v1/stats/ws") {
      this.#options.admission.anyRight(caller);
      this.#server.handleUpgrade(request, socket, head, (client) =>
        this.#sendStats(client, request, caller),
      );
      return;
    }
    const found = /^\/ws\/subscribe\/([^/]+)$/.exec(path);
    if (found === null)
      throw new PlatformError("not_found", "The path is not a WebSocket endpoint.");
    this.#options.admission.requireRight(caller, "subscribe");
    await this.#subscribe(request, socket, head, decodeTopic(found[1]!), url.searchParams, caller);
  }

  async #subscribe(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    topic: string,
    search: URLSearchParams,
    caller: Caller,
  ): Promise<void> {
    const asked = readSubscribeRequest(topic, search, null);
    const { subscribers, frames } = this.#options;
    const stream = new MessageSocket(request, socket, subscribers, frames);
    const opened = await openSubscription(this.#options, caller, asked, stream);
    if (socket.destroyed) {
      opened.close();
      return;
    }
    let isUpgraded = false;
    socket.once("close", () => {
      if (!isUpgraded) opened.close();
    });
    this.#server.handleUpgrade(request, socket, head, (client) => {
      isUpgraded = true;
      stream.begin(client, opened, caller);
    });
  }

  #sendStats(client: WebSocket, request: IncomingMessage, caller: Caller): void {
    const tenant = tenantOf(caller);
    const { subscribers, readStats, admission } = this.#options;
    const rights = admission.rightsOf(caller);
    const send = () => {
      if (client.bufferedAmount < WAITING_BYTES_MAX) client.send(JSON.stringify(readStats(tenant)));
    };
    const timer = every(STATS_MS, send, (error) =>
      this.#options.logger.error("sending statistics failed", { error }),
    );
    const stream: SubscriberStream = {
      transport: "websocket",
      remoteAddress: plainAddress(request.socket.remoteAddress),
      isStalled: () => client.bufferedAmount >= WAITING_BYTES_MAX,
      ping: () => client.ping(),
      drop: (reason, cause) => client.close(CLOSE_CODES[cause ?? "going-away"], reason),
    };
    subscribers.add(stream, caller, () => hasAnyRight(rights));
    client.on("error", () => client.terminate());
    client.on("close", () => {
      void timer.stop();
      subscribers.remove(stream);
    });
    send();
  }
}

/** The socket of one subscriber. */
class MessageSocket implements Sink, SubscriberStream {
  readonly transport = "websocket";
  readonly remoteAddress: string;
  readonly readAhead: ReadAhead;
  readonly #subscribers: Subscribers;
  readonly #frames: MessageFrames;
  #client: WebSocket | undefined;
  #opened: OpenSubscription | undefined;

  constructor(
    request: IncomingMessage,
    socket: Duplex,
    subscribers: Subscribers,
    frames: MessageFrames,
  ) {
    this.remoteAddress = plainAddress(request.socket.remoteAddress);
    this.readAhead = new ReadAhead(findOutflow(socket));
    this.#subscribers = subscribers;
    this.#frames = frames;
  }

  begin(client: WebSocket, opened: OpenSubscription, caller: Caller): void {
    this.#client = client;
    this.#opened = opened;
    this.#subscribers.add(this, caller, opened.isAllowed, opened.name);
    client.on("error", () => client.terminate());
    client.on("close", () => {
      this.#client = undefined;
      this.#subscribers.remove(this);
      opened.close();
    });
    client.on("message", (data, isBinary) => {
      this.#receive(isBinary || !Buffer.isBuffer(data) ? "" : data.toString("utf8"));
    });
    opened.pump();
  }

  canSend(): boolean {
    return this.#client !== undefined && this.#client.bufferedAmount < WAITING_BYTES_MAX;
  }

  send(message: Message, done: () => void): void {
    this.#client?.send(this.#frames.line(message), { binary: false }, (error) => {
      if (error !== undefined && error !== null) return;
      done();
      this.#opened?.pump();
    });
  }

  end(reason: string): void {
    this.drop(reason);
  }

  isStalled(): boolean {
    return (this.#client?.bufferedAmount ?? 0) >= WAITING_BYTES_MAX;
  }

  ping(): void {
    this.#client?.ping();
  }

  drop(reason: string, cause: keyof typeof CLOSE_CODES = "going-away"): void {
    const isStalled = this.isStalled();
    this.#client?.close(CLOSE_CODES[cause], reason);
    if (isStalled) this.#client?.terminate();
  }

  #receive(text: string): void {
    const answer = readAnswer(text);
    if (answer === undefined) return this.#sendError('expected {"ack": id} or {"nack": id}');
    if (this.#opened?.group === undefined)
      return this.#sendError("only group members acknowledge messages");
    const { group, member } = this.#opened.group;
    const isHeld =
      answer.kind === "ack"
        ? group.acknowledge(answer.id, member)
        : group.giveBack(answer.id, member);
    if (!isHeld) this.#sendError("this member does not hold the message");
  }

  #sendError(error: string): void {
    if (this.canSend()) this.#client?.send(JSON.stringify({ error, code: "bad_request" }));
  }
}

function readAnswer(text: string): { kind: "ack" | "nack"; id: string } | undefined {
  let value: { ack?: unknown; nack?: unknown } | null;
  try {
    value = JSON.parse(text) as typeof value;
  } catch {
    return undefined;
  }
  const { ack, nack } = value ?? {};
  if (typeof ack === "string" && nack === undefined) return { kind: "ack", id: ack };
  return typeof nack === "string" && ack === undefined ? { kind: "nack", id: nack } : undefined;
}

function decodeTopic(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new PlatformError("bad_request", "The path is invalid.");
  }
}

function toGuarded(request: IncomingMessage, path: string, search: string): GuardedRequest {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  const address = request.socket.remoteAddress;
  const peer =
    address === undefined ? { kind: "unknown" as const } : { kind: "tcp" as const, address };
  return { headers, method: "GET", path, search, peer };
}

// The handshake has not happened yet, so the answer is HTTP.
function refuse(socket: Duplex, request: IncomingMessage, error: unknown): void {
  const problem = toProblem(error, { instance: request.url ?? "" });
  const body = JSON.stringify(problem);
  const headers = {
    ...getProblemHeaders(error),
    "Content-Length": String(Buffer.byteLength(body)),
    Connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.end(`HTTP/1.1 ${problem.status} ${problem.title}\r\n${lines.join("\r\n")}\r\n\r\n${body}`);
}
