// The listeners of the Kafka face: plain and TLS, with bounds on connections, idleness and stalls.
import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { createReadShortener } from "@platform/kernel/sockets";
import { ByteBudget } from "./budget.ts";
import { Connection, type ConnectionContext, type ConnectionFault } from "./connection.ts";
import type { RouteTable } from "./route.ts";
import type { Authentication } from "./session.ts";

const sweepMs = 1_000;
const handshakeTimeoutMs = 10_000;
/** Bytes that one read may bring. */
const readBytes = 65_536;

/** Bounds of the Kafka face, over all of its listeners. */
export interface KafkaLimits {
  /** Connections at once; further ones are closed at once. Default 2 000. */
  connectionsMax: number;
  /** Connections of one client address at once; further ones are closed at once. Default 1 000. */
  connectionsPerAddressMax: number;
  /** Largest request in bytes. Default 16 MiB. */
  frameBytesMax: number;
  /** Elements of all arrays of one request. Default 100 000. */
  arrayItemsMax: number;
  /** Requests of one connection under way at once. Default 64. */
  inFlightMax: number;
  /** Bytes of requests over 64 KiB that are read or handled at once. Default 128 MiB. */
  requestBytesMax: number;
  /** Bytes of answers that are made or not sent yet. Default 128 MiB. */
  responseBytesMax: number;
  /** A connection on which nothing happens is closed after this time, in ms. Default 10 min. */
  idleTimeoutMs: number;
  /** A client that has begun a request or has answers to read, and does neither go on, is cut. Default 30 s. */
  stallTimeoutMs: number;
}

/** The limits where nothing else is configured. */
export const kafkaLimitsDefault: KafkaLimits = {
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

/** What a Kafka server is made of. */
export interface KafkaServerOptions {
  routes: RouteTable;
  limits?: Partial<KafkaLimits>;
  /** What clients are told; by default the address that they have reached. */
  advertised?: { host: string; port: number };
  /** How much of authentication a new client is spared. */
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

type Tracked = { socket: Socket; connection: Connection; progress: number; sinceMs: number };

/** Serves the Kafka protocol on any number of listeners, within one set of bounds. */
export class KafkaServer {
  readonly limits: KafkaLimits;
  readonly #options: KafkaServerOptions;
  readonly #context: ConnectionContext;
  readonly #connections = new Set<Tracked>();
  /** Sockets by client address, those in a TLS handshake included. */
  readonly #addresses = new Map<string, number>();
  readonly #servers = new Set<Server>();
  readonly #sweeper: NodeJS.Timeout;
  /** Connections that were closed at once because there were too many. */
  refusedCount = 0;

  constructor(options: KafkaServerOptions) {
    this.#options = options;
    this.limits = { ...kafkaLimitsDefault, ...options.limits };
    this.#context = {
      routes: options.routes,
      requestBudget: new ByteBudget(this.limits.requestBytesMax),
      responseBudget: new ByteBudget(this.limits.responseBytesMax),
      frameBytesMax: this.limits.frameBytesMax,
      arrayItemsMax: this.limits.arrayItemsMax,
      inFlightMax: this.limits.inFlightMax,
      shortenReads: createReadShortener(Buffer.allocUnsafeSlow(readBytes)),
      onRequest: (name, version, durationMs) => options.onRequest?.(name, version, durationMs),
      onSurplus: (name) => options.onSurplus?.(name),
      onFault: (fault) => options.onFault?.(fault),
    };
    this.#sweeper = setInterval(() => this.#sweep(performance.now()), sweepMs);
    this.#sweeper.unref();
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Bytes of answers that clients have not taken yet, or that are being made. */
  get responseBytes(): number {
    return this.#context.responseBudget.used;
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
        : createTlsServer({ ...tls, handshakeTimeout: handshakeTimeoutMs }, (socket) => {
            socket.setNoDelay(true);
            this.#accept(socket);
          });
    // Sockets that are still in the handshake count, too. The plain server's own listener comes after this one.
    server.prependListener("connection", (socket: Socket) => this.#countAddress(socket));
    server.maxConnections = this.limits.connectionsMax;
    server.on("drop", () => this.refusedCount++);
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
    const ended = Array.from(this.#connections, ({ socket }) => awaitClose(socket));
    for (const { connection } of this.#connections) connection.drain();
    const deadline = setTimeout(() => {
      for (const { connection } of this.#connections) connection.destroy();
    }, graceMs);
    await Promise.all([...stopping, ...ended]);
    clearTimeout(deadline);
    clearInterval(this.#sweeper);
  }

  #stop(server: Server): Promise<void> {
    this.#servers.delete(server);
    return new Promise((resolve) => server.close(() => resolve()));
  }

  #countAddress(socket: Socket): void {
    const address = plainAddress(socket.remoteAddress ?? "");
    const count = this.#addresses.get(address) ?? 0;
    if (count >= this.limits.connectionsPerAddressMax) {
      this.refusedCount++;
      socket.destroy();
      return;
    }
    this.#addresses.set(address, count + 1);
    socket.once("close", () => {
      const left = this.#addresses.get(address)! - 1;
      if (left === 0) this.#addresses.delete(address);
      else this.#addresses.set(address, left);
    });
  }

  #accept(socket: Socket): void {
    if (socket.destroyed) return;
    if (this.#connections.size >= this.limits.connectionsMax) {
      this.refusedCount++;
      socket.destroy();
      return;
    }
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
    const tracked = { socket, connection, progress: 0, sinceMs: performance.now() };
    this.#connections.add(tracked);
    socket.once("close", () => this.#connections.delete(tracked));
  }

  /** Closes what is idle for too long, and what has stalled in the middle of something. */
  #sweep(now: number): void {
    const { idleTimeoutMs, stallTimeoutMs } = this.limits;
    for (const tracked of this.#connections) {
      const { socket, connection } = tracked;
      const progress = socket.bytesRead + socket.bytesWritten - socket.writableLength;
      if (progress !== tracked.progress || connection.isWorking) {
        tracked.progress = progress;
        tracked.sinceMs = now;
        continue;
      }
      const limitMs = connection.isMidway ? stallTimeoutMs : idleTimeoutMs;
      if (now - tracked.sinceMs >= limitMs) connection.destroy();
    }
  }
}

function awaitClose(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

/** IPv4 addresses as such, also where they come on an IPv6 socket. */
function plainAddress(address: string): string {
  return address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
}
