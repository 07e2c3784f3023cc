// The listeners of the Kafka face: plain and TLS, with bounds on connections, idleness and stalls.
import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { ConnectionBounds, createReadShortener, OutgoingBudget } from "@platform/kernel/sockets";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { AnswerRoom } from "./answer-room.ts";
import { ByteBudget } from "./budget.ts";
import type { ConnectionContext, ConnectionFault } from "./connection-context.ts";
import { Connection } from "./connection.ts";
import type { RouteTable } from "./route.ts";
import type { Authentication } from "./session.ts";

const SWEEP_MS = 1_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Bytes that one read may bring. */
const READ_BYTES = 65_536;
/** Of a request that has begun, within `stallTimeoutMs`: as of an HTTP request's body. */
const REQUEST_PACE_BYTES = 7_680;
/** Of answers. A client that needs longer for half a default partition answer (1 MiB) gives up by itself (30 s). */
const ANSWER_PACE = { bytesMin: 524_288, windowMs: 60_000 };

/** Bounds of the Kafka face, over all of its listeners. */
export interface KafkaLimits {
  /** Connections at once; further ones are closed at once. Default 2 000. */
  connectionsMax: number;
  /** Those of one IPv4 address or one IPv6 network of 64 bits; further ones are closed at once. Default 1 000. */
  connectionsPerAddressMax: number;
  /** Largest request in bytes. Default 16 MiB. */
  frameBytesMax: number;
  /** Elements of all arrays of one request. Default 100 000. */
  arrayItemsMax: number;
  /** Requests of one connection under way at once. Default 64. */
  inFlightMax: number;
  /** Bytes of requests over 64 KiB that are read or handled at once. Default 128 MiB. */
  requestBytesMax: number;
  /**
   * Bytes of answers that clients have not read. Beyond it Fetch and what else may have a large answer waits, and clients that
   * have read nothing for longest are disconnected. Half as much again may be in memory while it is read from the log.
   * Default 128 MiB.
   */
  responseBytesMax: number;
  /** A connection on which nothing happens is closed after this time, in ms. Default 10 min. */
  idleTimeoutMs: number;
  /**
   * A client that reads none of its answers for so long, or sends less than 7.5 KiB of a request that it has begun, is
   * disconnected, in ms. Default 30 s.
   */
  stallTimeoutMs: number;
}

/** The limits where nothing else is configured. */
export const KAFKA_LIMITS_DEFAULT: KafkaLimits = {
  connectionsMax: 2_000,
  connectionsPerAddressMax: 1_000,
  frameBytesMax: 16 * 1024 * 1024,
  arrayItemsMax: 100_000,
  inFlightMax: 64,
  requestBytesMax: 128 * 1024 * 1024,
  responseBytesMax: 128 * 1024 * 1024,
  idleTimeoutMs: 10 * 60_000,
  stallTimeoutMs: 30_000,
};

/** Options of a Kafka server. */
export interface KafkaListenersOptions {
  routes: RouteTable;
  limits?: Partial<KafkaLimits>;
  /** The address that clients are told; by default the address that they have reached. */
  advertised?: { host: string; port: number };
  /** Authentication of a new client: demanded, or done already. */
  admit(remoteAddress: string): Authentication;
  onRequest?(name: string, version: number, durationMs: number): void;
  onSurplus?(name: string): void;
  onFault?(fault: ConnectionFault): void;
}

/** A listening socket. */
export interface KafkaListener {
  readonly port: number;
  /** Accepts no more connections. */
  stop(): Promise<void>;
}

/** Serves the Kafka protocol on any number of listeners, within one set of bounds. */
export class KafkaListeners {
  readonly limits: KafkaLimits;
  readonly #options: KafkaListenersOptions;
  readonly #context: ConnectionContext;
  readonly #connections = new Map<Socket, Connection>();
  /** Counts sockets in a TLS handshake, too. */
  readonly #bounds: ConnectionBounds;
  readonly #servers = new Set<Server>();
  readonly #sweeper: RepeatingTimer;
  #sweptAtMs = performance.now();
  /** Connections that were closed at once because there were too many. */
  refusedCount = 0;

  constructor(options: KafkaListenersOptions) {
    this.#options = options;
    this.limits = { ...KAFKA_LIMITS_DEFAULT, ...options.limits };
    const { responseBytesMax, stallTimeoutMs } = this.limits;
    const outgoing = new OutgoingBudget(responseBytesMax);
    this.#bounds = new ConnectionBounds({
      connectionsMax: this.limits.connectionsMax,
      perAddressMax: this.limits.connectionsPerAddressMax,
    });
    this.#context = {
      routes: options.routes,
      requestBudget: new ByteBudget(this.limits.requestBytesMax),
      readingBudget: new ByteBudget(responseBytesMax / 2),
      outgoing,
      room: new AnswerRoom(outgoing),
      outgoingBounds: { writeStallMs: stallTimeoutMs, answerPace: ANSWER_PACE },
      requestPace: { bytesMin: REQUEST_PACE_BYTES, windowMs: stallTimeoutMs },
      idleTimeoutMs: this.limits.idleTimeoutMs,
      frameBytesMax: this.limits.frameBytesMax,
      arrayItemsMax: this.limits.arrayItemsMax,
      inFlightMax: this.limits.inFlightMax,
      shortenReads: createReadShortener(Buffer.allocUnsafeSlow(READ_BYTES)),
      onRequest: (name, version, durationMs) => options.onRequest?.(name, version, durationMs),
      onSurplus: (name) => options.onSurplus?.(name),
      onFault: (fault) => options.onFault?.(fault),
    };
    this.#sweeper = every(
      SWEEP_MS,
      () => this.#sweep(),
      (error) => {
        const reason = "closing idle connections failed";
        options.onFault?.({ kind: "internal", remoteAddress: "", reason, error });
      },
    );
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Bytes of answers that clients have not read. */
  get responseBytes(): number {
    return this.#context.outgoing.heldBytes;
  }

  /** Bytes of large requests that are being read or handled. */
  get requestBytes(): number {
    return this.#context.requestBudget.used;
  }

  /** Listens on an address, with TLS if a certificate is given. Rejects if the address is taken. */
  async listen(
    address: { host?: string | undefined; port: number },
    tls?: TlsOptions,
  ): Promise<KafkaListener> {
    const server =
      tls === undefined
        ? createServer({ noDelay: true }, (socket) => this.#accept(socket))
        : createTlsServer({ ...tls, handshakeTimeout: HANDSHAKE_TIMEOUT_MS }, (socket) => {
            socket.setNoDelay(true);
            this.#accept(socket);
          });
    // Sockets that are still in the handshake count, too. The plain server's own listener comes after this one.
    server.prependListener("connection", (socket: Socket) => this.#admit(socket));
    server.listen({
      port: address.port,
      ...(address.host === undefined ? {} : { host: address.host }),
    });
    await once(server, "listening");
    this.#servers.add(server);
    return {
      port: (server.address() as AddressInfo).port,
      stop: () => this.#stop(server),
    };
  }

  /** Stops listening, lets requests under way finish for at most `graceMs`, then cuts. */
  async close(graceMs: number): Promise<void> {
    const stopping = Array.from(this.#servers, (server) => this.#stop(server));
    const ended = Array.from(this.#connections.keys(), awaitClose);
    for (const connection of this.#connections.values()) connection.drain();
    const deadline = setTimeout(() => {
      for (const connection of this.#connections.values()) connection.destroy();
    }, graceMs);
    await Promise.all([...stopping, ...ended]);
    clearTimeout(deadline);
    await this.#sweeper.stop();
  }

  #stop(server: Server): Promise<void> {
    this.#servers.delete(server);
    return new Promise((resolve) => server.close(() => resolve()));
  }

  #admit(socket: Socket): void {
    const address = socket.remoteAddress ?? "";
    if (this.#bounds.admit(address) === "admitted") {
      socket.once("close", () => this.#bounds.release(address));
      return;
    }
    this.refusedCount++;
    socket.on("error", () => undefined);
    socket.destroy();
  }

  #accept(socket: Socket): void {
    if (socket.destroyed) return;
    const remoteAddress = plainAddress(socket.remoteAddress ?? "");
    const local = { host: plainAddress(socket.localAddress ?? ""), port: socket.localPort ?? 0 };
    const connection = new Connection(
      socket,
      {
        remoteAddress,
        advertised: this.#options.advertised ?? local,
        authentication: this.#options.admit(remoteAddress),
        mutedUntilMs: 0,
      },
      this.#context,
    );
    this.#connections.set(socket, connection);
    socket.once("close", () => this.#connections.delete(socket));
  }

  /** Closes connections that are idle, or whose clients send or read too slowly. */
  #sweep(): void {
    const nowMs = performance.now();
    // While this process was busy with something else, clients are not to blame.
    const elapsedMs = Math.min(nowMs - this.#sweptAtMs, 2 * SWEEP_MS);
    this.#sweptAtMs = nowMs;
    for (const connection of this.#connections.values()) connection.sweep(nowMs, elapsedMs);
    this.#context.room.sweep(elapsedMs);
  }
}

function awaitClose(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

/** IPv4 addresses as such, also where they come on an IPv6 socket. */
function plainAddress(address: string): string {
  return address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
}
