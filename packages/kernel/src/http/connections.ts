// The connections of a node:http listener: limited in number, one request at a time each, with a minimum rate and a
// shared budget.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { MetricRegistry } from "../metrics/index.ts";
import { every, type RepeatingTimer } from "../time/index.ts";
import {
  ConnectionBounds,
  OutgoingBudget,
  Outflow,
  Pace,
  type OutgoingBounds,
  type PaceBound,
} from "../sockets/index.ts";
import { isProbePath } from "./path.ts";

/** Limits of a listener's connections. */
export interface HttpConnectionsOptions {
  /** Maximum number of connections; further ones are closed immediately. Default 10 000. */
  connectionsMax?: number | undefined;
  /** Maximum number of connections of an IPv4 address or an IPv6 /64 network. Default: half of `connectionsMax`. */
  connectionsPerAddressMax?: number | undefined;
  /** Proxies, which are exempt from the limit per address. */
  isProxyAddress?: ((address: string) => boolean) | undefined;
  /** Budget of unsent bytes; the listener sweeps it. Default: a budget of 256 MiB. */
  outgoing?: OutgoingBudget | undefined;
  /** Clients that read nothing for this time while bytes wait for them are disconnected, in ms. Default 60 000. */
  writeStallMs?: number | undefined;
  /** Minimum rate at which clients must read. Default 15 KiB per minute. */
  answerPace?: PaceBound | undefined;
  /** Minimum rate at which clients must send a request body. Default 7.5 KiB in 30 s. */
  requestBodyPace?: PaceBound | undefined;
  /** Registry of the metrics of rejected and disconnected clients, connections and unsent bytes. */
  metrics?: MetricRegistry | undefined;
}

const SWEEP_MS = 1_000;
/** Maximum number of pipelined requests that wait on a connection. */
const WAITING_MAX = 100;
const ANSWER_PACE: PaceBound = { bytesMin: 15_360, windowMs: 60_000 };
const REQUEST_BODY_PACE: PaceBound = { bytesMin: 7_680, windowMs: 30_000 };
const TOO_SLOW = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/** For how long the client of a refused body may still send while it reads the answer. */
const REFUSAL_MS = 1_000;

const outflows = new WeakMap<object, Outflow>();

/** The outflow of a listener's connection, where producers of large answers claim; undefined for any other socket. */
export function findOutflow(socket: object | null | undefined): Outflow | undefined {
  return socket ? outflows.get(socket) : undefined;
}

/** Handles a request. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

interface Counts {
  refuse(bound: "all" | "address"): void;
  drop(reason: string): void;
}

/** All connections of a listener. */
export class HttpConnections {
  readonly #outgoing: OutgoingBudget;
  readonly #bounds: ConnectionBounds;
  readonly #outgoingBounds: OutgoingBounds;
  readonly #requestBodyPace: PaceBound;
  readonly #handle: RequestHandler;
  readonly #counts: Counts;
  readonly #open = new Set<HttpConnection>();
  readonly #bySocket = new WeakMap<Socket, HttpConnection>();
  readonly #timer: RepeatingTimer;
  #sweptAtMs = performance.now();

  constructor(options: HttpConnectionsOptions, handle: RequestHandler) {
    this.#outgoing = options.outgoing ?? new OutgoingBudget();
    this.#bounds = new ConnectionBounds({
      connectionsMax: options.connectionsMax ?? 10_000,
      perAddressMax: options.connectionsPerAddressMax,
      isExempt: options.isProxyAddress,
    });
    this.#outgoingBounds = {
      writeStallMs: options.writeStallMs ?? 60_000,
      answerPace: options.answerPace ?? ANSWER_PACE,
    };
    this.#requestBodyPace = options.requestBodyPace ?? REQUEST_BODY_PACE;
    this.#handle = handle;
    this.#counts = createCounts(options.metrics, this.#bounds, this.#outgoing);
    this.#timer = every(
      SWEEP_MS,
      () => this.#sweep(),
      (error) => {
        throw error;
      },
    );
  }

  /** Counts an accepted socket, before its TLS handshake if any; destroys it if it exceeds a limit. */
  admit(socket: Socket): void {
    const address = socket.remoteAddress ?? "";
    const admission = this.#bounds.admit(address);
    if (admission === "admitted") {
      socket.once("close", () => this.#bounds.release(address));
      return;
    }
    this.#counts.refuse(admission === "too-many" ? "all" : "address");
    socket.on("error", () => {});
    socket.destroy();
  }

  /** Supervises an HTTP socket. */
  watch(socket: Socket): void {
    if (socket.destroyed) return;
    const connection = new HttpConnection(socket, this.#outgoing, this.#outgoingBounds, (reason) =>
      this.#counts.drop(reason),
    );
    this.#open.add(connection);
    this.#bySocket.set(socket, connection);
    socket.once("close", () => {
      this.#open.delete(connection);
      connection.close();
    });
  }

  /** Handles a request after the previous ones on its connection have ended and their responses have been read. */
  enqueue(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#bySocket.get(request.socket);
    if (connection === undefined) this.#handle(request, response);
    else connection.enqueue(request, response, this.#handle);
  }

  /** Stops the supervision. */
  close(): void {
    void this.#timer.stop();
  }

  #sweep(): void {
    const nowMs = performance.now();
    // Time during which this process was blocked does not count against peers.
    const elapsedMs = Math.min(nowMs - this.#sweptAtMs, 2 * SWEEP_MS);
    this.#sweptAtMs = nowMs;
    for (const connection of this.#open) connection.sweep(elapsedMs, this.#requestBodyPace);
    this.#outgoing.sweep(elapsedMs);
  }
}

class HttpConnection {
  readonly #socket: Socket;
  readonly #outflow: Outflow;
  readonly #outgoing: OutgoingBudget;
  readonly #onDropped: (reason: string) => void;
  readonly #bodyPace = new Pace();
  #waiting: [request: IncomingMessage, response: ServerResponse][] = [];
  #request: IncomingMessage | undefined;
  #response: ServerResponse | undefined;

  constructor(
    socket: Socket,
    outgoing: OutgoingBudget,
    bounds: OutgoingBounds,
    onDropped: (reason: string) => void,
  ) {
    this.#socket = socket;
    this.#outgoing = outgoing;
    this.#onDropped = onDropped;
    this.#outflow = new Outflow(socket, outgoing, bounds, (fault) => {
      onDropped(fault.replace("-", "_"));
      socket.destroy();
    });
    outflows.set(socket, this.#outflow);
    this.#settleAfterWrites();
  }

  enqueue(request: IncomingMessage, response: ServerResponse, handle: RequestHandler): void {
    // The rest of a read that has already been parsed.
    if (this.#socket.destroyed) return;
    const before = this.#response;
    if (before === undefined || (this.#waiting.length === 0 && before.writableFinished)) {
      this.#start(request, response, handle);
      return;
    }
    if (this.#waiting.length >= WAITING_MAX) {
      this.#onDropped("pipelined");
      this.#socket.destroy();
      return;
    }
    this.#waiting.push([request, response]);
    if (this.#waiting.length === 1) before.once("close", () => this.#advance(handle));
  }

  sweep(elapsedMs: number, bound: PaceBound): void {
    this.#outflow.settle();
    const request = this.#request;
    // Only if the body is incomplete and all received bytes have been consumed, the client is the one to wait for.
    if (request === undefined || request.complete || request.readableLength > 0) return;
    if (!this.#bodyPace.isTooSlow(bound, elapsedMs, this.#socket.bytesRead)) return;
    this.#onDropped("slow_body");
    this.#request = undefined;
    if (this.#response?.headersSent === true) this.#socket.destroy();
    else this.#refuseSlow();
  }

  // Bytes that arrive after a close reset the connection, and the reset may destroy the answer (RFC 9112 section 9.6).
  #refuseSlow(): void {
    const socket = this.#socket;
    socket.end(TOO_SLOW);
    const end = setTimeout(() => socket.destroy(), REFUSAL_MS);
    socket.once("close", () => clearTimeout(end));
  }

  close(): void {
    this.#waiting = [];
    this.#outflow.close();
  }

  #start(request: IncomingMessage, response: ServerResponse, handle: RequestHandler): void {
    this.#response = response;
    this.#request = request;
    if (!request.complete) this.#bodyPace.restart(this.#socket.bytesRead);
    if (this.#outgoing.isFull && !isProbe(request)) {
      response.writeHead(503, { "Retry-After": "1", "Content-Length": "0" }).end();
      return;
    }
    handle(request, response);
  }

  #advance(handle: RequestHandler): void {
    const next = this.#waiting.shift();
    if (next === undefined || this.#socket.destroyed || this.#socket.writableEnded) return;
    const [request, response] = next;
    this.#start(request, response, handle);
    if (this.#waiting.length > 0) response.once("close", () => this.#advance(handle));
  }

  // Unsent bytes count immediately, not at the next sweep: many responses may be written in between.
  #settleAfterWrites(): void {
    const socket = this.#socket;
    const outflow = this.#outflow;
    const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
    socket.write = (...args: unknown[]): boolean => {
      const hasCapacity = write(...args);
      if (!hasCapacity) outflow.settle();
      return hasCapacity;
    };
    socket.on("drain", () => outflow.settle());
  }
}

function isProbe({ url = "" }: IncomingMessage): boolean {
  const query = url.indexOf("?");
  return isProbePath(query === -1 ? url : url.slice(0, query));
}

function createCounts(
  registry: MetricRegistry | undefined,
  bounds: ConnectionBounds,
  outgoing: OutgoingBudget,
): Counts {
  if (registry === undefined) return { refuse: () => {}, drop: () => {} };
  const refused = registry.counter({
    name: "platform_http_connections_refused_total",
    help: "Connections closed immediately because of the total limit or the limit per address.",
    labels: ["bound"],
  });
  const dropped = registry.counter({
    name: "platform_http_clients_dropped_total",
    help: "Clients disconnected because they read or sent too slowly, or pipelined too many requests.",
    labels: ["reason"],
  });
  const gauge = (name: string, help: string, value: number) => ({
    type: "gauge" as const,
    name,
    help,
    samples: [{ labels: [], value }],
  });
  registry.collect({
    name: "http-connections",
    collect: () => [
      gauge("platform_http_connections", "Open connections.", bounds.open),
      gauge(
        "platform_http_unsent_bytes",
        "Response bytes that clients have not read yet.",
        outgoing.heldBytes,
      ),
    ],
  });
  return {
    refuse: (bound) => refused.with({ bound }).add(),
    drop: (reason) => dropped.with({ reason }).add(),
  };
}
