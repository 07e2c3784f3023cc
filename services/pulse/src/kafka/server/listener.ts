// The listeners of the Kafka server: plain and TLS, with limits on connections, idle time and slow clients.
import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import {
  ByteBudget,
  ConnectionBounds,
  createReadShortener,
  OutgoingBudget,
} from "@platform/kernel/sockets";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { AnswerRoom } from "./answer-room.ts";
import type { ConnectionContext, ConnectionFault } from "./connection-context.ts";
import { Connection } from "./connection.ts";
import type { RouteTable } from "./route.ts";
import type { Authentication } from "./session.ts";
import type { FollowToken } from "./token-watch.ts";

const SWEEP_MS = 1_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Maximum size of a read. */
const READ_BYTES = 65_536;
/** Minimum bytes of a request within `stallTimeoutMs`, as for the body of an HTTP request. */
const REQUEST_PACE_BYTES = 7_680;
/** Minimum rate for reading answers. A client that needs longer for half a default partition answer (1 MiB) times out (30 s). */
const ANSWER_PACE = { bytesMin: 524_288, windowMs: 60_000 };

/** Limits of the Kafka server over all listeners. */
export interface KafkaLimits {
  /** Maximum number of connections; further ones are closed immediately. Default 2 000. */
  connectionsMax: number;
  /** Maximum per IPv4 address or IPv6 network of 64 bits; further ones are closed immediately. Default 1 000. */
  connectionsPerAddressMax: number;
  /** Largest request in bytes. Default 16 MiB. */
  frameBytesMax: number;
  /** Maximum number of elements of all arrays of one request. Default 100 000. */
  arrayItemsMax: number;
  /** Requests of one connection in flight. Default 64. */
  inFlightMax: number;
  /** Bytes of requests over 64 KiB being read or handled. Default 128 MiB. */
  requestBytesMax: number;
  /**
   * Bytes of answers that clients have not read. Beyond it Fetch and other requests with large answers wait, and clients
   * that have read nothing for longest are disconnected. Up to half as much again may be in memory while it is read from
   * the log. Default 128 MiB.
   */
  responseBytesMax: number;
  /** Idle connections are closed after this time, in ms. Default 10 min. */
  idleTimeoutMs: number;
  /**
   * Clients that read no answer for this time, or send less than 7.5 KiB of a request within it, are disconnected, in ms.
   * Default 30 s.
   */
  stallTimeoutMs: number;
}

/** Default limits. */
const KAFKA_LIMITS_DEFAULT: KafkaLimits = {
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

/** Options of `KafkaListeners`. */
export interface KafkaListenersOptions {
  routes: RouteTable;
  limits?: Partial<KafkaLimits>;
  /** The address that clients are told; by default the address they connected to. */
  advertised?: { host: string; port: number };
  /** Authentication state of a new client: demanded, or done already. */
  admit(remoteAddress: string): Authentication;
  /** By default tokens are not followed. */
  followToken?: FollowToken;
  onRequest?(name: string, version: number, durationMs: number): void;
  onSurplus?(name: string): void;
  onFault?(fault: ConnectionFault): void;
}

/** A listening socket. */
export interface KafkaListener {
  readonly port: number;
  /** Stops accepting connections. */
  stop(): Promise<void>;
}

/** Serves the Kafka protocol on any number of listeners with shared limits. */
export class KafkaListeners {
  readonly limits: KafkaLimits;
  readonly #options: KafkaListenersOptions;
  readonly #context: ConnectionContext;
  readonly #connections = new Map<Socket, Connection>();
  /** Counts sockets in a TLS handshake as well. */
  readonly #bounds: ConnectionBounds;
  readonly #servers = new Set<Server>();
  readonly #sweeper: RepeatingTimer;
  #sweptAtMs = performance.now();
  /** Connections closed immediately because of a limit. */
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
      followToken: options.followToken ?? (() => () => undefined),
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

  /** Bytes of large requests being read or handled. */
  get requestBytes(): number {
    return this.#context.requestBudget.used;
  }

  /** Listens on an address, with TLS if a certificate is given. Rejects if the address is in use. */
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
    // Sockets in a handshake count as well. The plain server's own listener runs after this one.
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

  /** Stops listening, lets requests in flight finish for at most `graceMs`, then disconnects. */
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
    // Clients are not blamed for time in which this process was busy.
    const elapsedMs = Math.min(nowMs - this.#sweptAtMs, 2 * SWEEP_MS);
    this.#sweptAtMs = nowMs;
    for (const connection of this.#connections.values()) connection.sweep(nowMs, elapsedMs);
    this.#context.outgoing.sweep(elapsedMs);
  }
}

function awaitClose(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

/** Converts IPv4-mapped addresses of IPv6 sockets. */
function plainAddress(address: string): string {
  return address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
}
