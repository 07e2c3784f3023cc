// Listeners of a wire protocol on TCP and TLS, with limits on connections and slow clients.
import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, TLSSocket, type TlsOptions } from "node:tls";
import {
  ConnectionBounds,
  createReadShortener,
  Outflow,
  type OutgoingBudget,
  type OutgoingFault,
  type PaceBound,
  type ReadShortener,
  type ReadTaker,
} from "@platform/kernel/sockets";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { ListedConnection } from "./listed-connection.ts";
import { SocketTransport, type Transport } from "./transport.ts";

const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Maximum size of a read. */
const READ_BYTES = 65_536;
/** Interval of TCP keep-alives, which find silent clients that are gone. */
const TCP_KEEP_ALIVE_MS = 120_000;
/** Default minimum rate of reading for clients that are sent something. */
const READING_PACE: PaceBound = { bytesMin: 65_536, windowMs: 60_000 };

/** A connection of the protocol. */
export interface WireConnection {
  /** Handles received bytes, which are overwritten later if they are shared. */
  readonly onRead: ReadTaker;
  /** The client has read what was sent. */
  onDrain?(): void;
  /** A text frame has arrived on a WebSocket of the framing `bytes`. */
  onTextFrame?(): void;
  onClose(): void;
  /** The client reads too slowly, or all clients together do: close without a word. */
  drop(fault: OutgoingFault): void;
  /** Checks times, `sweepMs` apart or later. `elapsedMs`: time in which this process was not busy. */
  sweep(nowMs: number, elapsedMs: number, sweepMs: number): void;
  /** Topic rules have changed: ends if the client has lost the right for a topic that it follows. */
  endIfForbidden?(): void;
  /** The broker stops: tell the client, then close. */
  shutDown(): void;
}

export interface WireListenersOptions {
  /** Maximum number of connections; further ones are closed immediately. */
  connectionsMax: number;
  /** Maximum per IPv4 address or IPv6 network of 64 bits. */
  connectionsPerAddressMax: number;
  /** Bytes that clients have not read. */
  outgoing: OutgoingBudget;
  /** Clients that read nothing for this time are disconnected, in ms. */
  stallTimeoutMs: number;
  /** Minimum rate of reading for clients that are sent something. Default 64 KiB a minute. */
  readingPace?: PaceBound;
  /** Interval of checks, in ms. */
  sweepMs: number;
  connect: (transport: SocketTransport) => WireConnection;
  onError: (error: unknown) => void;
}

/** A running listener. */
export interface WireListener {
  /** The host that was asked for, else the address of all interfaces that is bound: `::`, or `0.0.0.0` without IPv6. */
  readonly host: string;
  /** The actual port. */
  readonly port: number;
  /** Replaces the certificate for new connections; throws if it is invalid, or if the listener does not use TLS. */
  setTls(tls: { cert: string | Buffer; key: string | Buffer }): void;
}

interface Open {
  transport: Transport;
  number: number;
  openedAtMs: number;
}

/** Serves one protocol on any number of listeners with shared limits; `WebSocketUpgrades` adds connections. */
export class WireListeners {
  readonly #options: WireListenersOptions;
  readonly #connections = new Map<WireConnection, Open>();
  #lastNumber = 0;
  /** Counts sockets in a TLS handshake as well. */
  readonly #bounds: ConnectionBounds;
  readonly #shortenReads: ReadShortener;
  readonly #servers = new Set<Server>();
  readonly #sweeper: RepeatingTimer;
  #sweptAtMs = performance.now();
  #onEmpty: (() => void) | undefined;
  /** Connections closed immediately because of a limit. */
  refusedCount = 0;

  constructor(options: WireListenersOptions) {
    this.#options = options;
    this.#bounds = new ConnectionBounds({
      connectionsMax: options.connectionsMax,
      perAddressMax: options.connectionsPerAddressMax,
    });
    this.#shortenReads = createReadShortener(Buffer.allocUnsafeSlow(READ_BYTES));
    this.#sweeper = every(options.sweepMs, () => this.#sweep(), options.onError);
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** The connections after this number, in the order in which they were opened. */
  *list(after: number): Generator<ListedConnection> {
    for (const { transport, number, openedAtMs } of this.#connections.values()) {
      if (number <= after) continue;
      const { kind, remoteAddress, describeClient } = transport;
      yield { number, transport: kind, remoteAddress, openedAtMs, client: describeClient?.() };
    }
  }

  /** Bytes that clients on TCP and TLS have not read. */
  get unsentBytes(): number {
    return this.#options.outgoing.heldBytes;
  }

  /** Listens on an address, with TLS if a certificate is given. Rejects if the address is in use. */
  async listen(
    address: { host?: string | undefined; port: number },
    tls?: TlsOptions,
  ): Promise<WireListener> {
    const options = { noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS };
    const secure =
      tls === undefined
        ? undefined
        : createTlsServer({ ...tls, handshakeTimeout: HANDSHAKE_TIMEOUT_MS }, (socket) => {
            socket.setNoDelay(true);
            socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
            this.#accept(socket);
          });
    const server = secure ?? createServer(options, (socket) => this.#accept(socket));
    // Sockets in a handshake count as well. The plain server's own listener runs after this one.
    server.prependListener("connection", (socket: Socket) => {
      if (this.admit(socket)) return;
      socket.on("error", () => undefined);
      socket.destroy();
    });
    server.listen({
      port: address.port,
      ...(address.host === undefined ? {} : { host: address.host }),
    });
    await once(server, "listening");
    this.#servers.add(server);
    const bound = server.address() as AddressInfo;
    return {
      host: address.host ?? bound.address,
      port: bound.port,
      setTls: (next) => {
        if (secure === undefined) throw new Error("the listener does not use TLS");
        secure.setSecureContext(next);
      },
    };
  }

  /** Ends the connections of clients that have lost the right for a topic that they follow. */
  endForbidden(): void {
    for (const connection of this.#connections.keys()) connection.endIfForbidden?.();
  }

  /** Stops listening, tells the clients, and disconnects after `graceMs`. */
  async close(graceMs: number): Promise<void> {
    const stopping = Array.from(this.#servers, stopServer);
    const emptied = new Promise<void>((resolve) => (this.#onEmpty = resolve));
    for (const connection of this.#connections.keys()) connection.shutDown();
    const deadline = setTimeout(() => {
      for (const { transport } of this.#connections.values()) transport.destroy();
    }, graceMs);
    if (this.#connections.size > 0) await emptied;
    clearTimeout(deadline);
    await Promise.all(stopping);
    await this.#sweeper.stop();
  }

  /** Counts a socket until it closes; false at a limit. */
  admit(socket: Socket): boolean {
    const address = socket.remoteAddress ?? "";
    if (this.#bounds.admit(address) !== "admitted") {
      this.refusedCount++;
      return false;
    }
    socket.once("close", () => this.#bounds.release(address));
    return true;
  }

  /** Adds an admitted connection. */
  add(connection: WireConnection, transport: Transport): void {
    this.#lastNumber++;
    const entry = { transport, number: this.#lastNumber, openedAtMs: Date.now() };
    this.#connections.set(connection, entry);
  }

  /** Removes a connection whose transport has closed. */
  remove(connection: WireConnection): void {
    connection.onClose();
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#onEmpty?.();
  }

  #accept(socket: Socket): void {
    if (socket.destroyed) return;
    const { stallTimeoutMs, readingPace = READING_PACE, outgoing } = this.#options;
    const transport = new SocketTransport(socket);
    const bounds = { writeStallMs: stallTimeoutMs, answerPace: readingPace };
    const outflow = new Outflow(socket, outgoing, bounds, (fault) => connection.drop(fault));
    transport.outflow = outflow;
    const connection = this.#options.connect(transport);
    this.add(connection, transport);
    const { onRead } = connection;
    socket.on("data", (chunk: Buffer) => onRead(chunk, chunk.length, false));
    if (!(socket instanceof TLSSocket)) this.#shortenReads(socket, onRead);
    if (connection.onDrain !== undefined) socket.on("drain", () => connection.onDrain!());
    // "close" always follows.
    socket.on("error", ignoreError);
    socket.once("close", () => {
      outflow.close();
      this.remove(connection);
    });
  }

  #sweep(): void {
    const { sweepMs, outgoing } = this.#options;
    const nowMs = performance.now();
    // Clients are not blamed for time in which this process was busy.
    const elapsedMs = Math.min(nowMs - this.#sweptAtMs, 2 * sweepMs);
    this.#sweptAtMs = nowMs;
    for (const connection of this.#connections.keys()) {
      connection.sweep(nowMs, elapsedMs, sweepMs);
    }
    outgoing.sweep(elapsedMs);
  }
}

function ignoreError(): void {}

function stopServer(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
