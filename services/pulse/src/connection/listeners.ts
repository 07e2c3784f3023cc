// Listeners of a wire protocol on TCP, TLS and WebSocket, with limits on connections and slow clients.
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { findOutflow } from "@platform/kernel/http";
import { ConnectionBounds, Outflow, OutgoingBudget } from "@platform/kernel/sockets";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { WebSocketServer, type WebSocket } from "ws";
import { SocketTransport, WebSocketTransport, type Transport } from "./transport.ts";

const SWEEP_MS = 500;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Interval of TCP keep-alives, which find silent clients that are gone. */
const TCP_KEEP_ALIVE_MS = 120_000;
/** Minimum rate of reading for clients that are sent something. */
const READING_PACE = { bytesMin: 65_536, windowMs: 60_000 };
/** RFC 6455 section 7.4.1: unsupported data. */
const UNSUPPORTED_DATA = 1003;

/** A connection of the protocol. */
export interface WireConnection {
  onBytes(bytes: Buffer): void;
  onClose(): void;
  /** The client reads too slowly, or all clients together do: close without a word. */
  drop(reason: string): void;
  /** Checks times, `SWEEP_MS` apart or later. */
  sweep(nowMs: number, elapsedMs: number, sweepMs: number): void;
  /** The broker stops: tell the client, then close. */
  shutDown(): void;
}

/** Options of `WireListeners`. */
export interface WireListenersOptions {
  /** Maximum number of connections; further ones are closed immediately. */
  connectionsMax: number;
  /** Maximum per IPv4 address or IPv6 network of 64 bits. */
  connectionsPerAddressMax: number;
  /** Bytes that clients have not read. */
  unsentBytesMax: number;
  /** Clients that read nothing for this time are disconnected, in ms. */
  stallTimeoutMs: number;
  /** Largest message of a WebSocket. */
  messageBytesMax: number;
  /** WebSocket subprotocols of the protocol, the preferred first. */
  subprotocols: readonly string[];
  /** Whether clients on WebSocket may use text frames. They are answered with text then. */
  allowsText: boolean;
  /** Pages of browsers that may connect without credentials, besides those of this broker. */
  origins: readonly string[];
  connect: (transport: Transport) => WireConnection;
  onError: (error: unknown) => void;
}

/** Serves one protocol on any number of listeners with shared limits. */
export class WireListeners {
  readonly #options: WireListenersOptions;
  readonly #connections = new Map<WireConnection, Transport>();
  readonly #bounds: ConnectionBounds;
  readonly #outgoing: OutgoingBudget;
  readonly #servers = new Set<Server>();
  readonly #webSockets: WebSocketServer;
  readonly #sweeper: RepeatingTimer;
  #sweptAtMs = performance.now();
  #onEmpty: (() => void) | undefined;
  /** Connections closed immediately because of a limit. */
  refusedCount = 0;

  constructor(options: WireListenersOptions) {
    this.#options = options;
    this.#outgoing = new OutgoingBudget(options.unsentBytesMax);
    this.#bounds = new ConnectionBounds({
      connectionsMax: options.connectionsMax,
      perAddressMax: options.connectionsPerAddressMax,
    });
    this.#webSockets = new WebSocketServer({
      noServer: true,
      maxPayload: options.messageBytesMax,
      perMessageDeflate: false,
      handleProtocols: (offered) => options.subprotocols.find((name) => offered.has(name)) ?? false,
    });
    this.#sweeper = every(SWEEP_MS, () => this.#sweep(), options.onError);
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Bytes that clients on TCP and TLS have not read. */
  get unsentBytes(): number {
    return this.#outgoing.heldBytes;
  }

  /** Listens on an address, with TLS if a certificate is given. Rejects if the address is in use. */
  async listen(
    address: { host?: string | undefined; port: number },
    tls?: TlsOptions,
  ): Promise<{ port: number }> {
    const options = { noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEP_ALIVE_MS };
    const server =
      tls === undefined
        ? createServer(options, (socket) => this.#accept(socket))
        : createTlsServer({ ...tls, handshakeTimeout: HANDSHAKE_TIMEOUT_MS }, (socket) => {
            socket.setNoDelay(true);
            socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
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
    return { port: (server.address() as AddressInfo).port };
  }

  /** Handles an upgrade request that offers one of the subprotocols; false for any other. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const offered = (request.headers["sec-websocket-protocol"] ?? "")
      .split(",")
      .map((name) => name.trim());
    if (!this.#options.subprotocols.some((name) => offered.includes(name))) return false;
    const address = request.socket.remoteAddress ?? "";
    if (this.#bounds.admit(address) !== "admitted") {
      this.refusedCount++;
      socket.on("error", () => undefined);
      socket.end(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
      );
      return true;
    }
    socket.on("error", () => socket.destroy());
    socket.once("close", () => this.#bounds.release(address));
    this.#webSockets.handleUpgrade(request, socket, head, (client) =>
      this.#acceptWebSocket(client, request),
    );
    return true;
  }

  /** Stops listening, tells the clients, and disconnects after `graceMs`. */
  async close(graceMs: number): Promise<void> {
    const stopping = Array.from(this.#servers, stopServer);
    const emptied = new Promise<void>((resolve) => (this.#onEmpty = resolve));
    for (const connection of this.#connections.keys()) connection.shutDown();
    const deadline = setTimeout(() => {
      for (const transport of this.#connections.values()) transport.destroy();
    }, graceMs);
    if (this.#connections.size > 0) await emptied;
    clearTimeout(deadline);
    await Promise.all(stopping);
    this.#webSockets.close();
    await this.#sweeper.stop();
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
    const transport = new SocketTransport(socket, plainAddress(socket.remoteAddress ?? ""));
    const bounds = { writeStallMs: this.#options.stallTimeoutMs, answerPace: READING_PACE };
    const outflow = new Outflow(socket, this.#outgoing, bounds, (fault) => connection.drop(fault));
    transport.outflow = outflow;
    const connection = this.#add(transport);
    socket.on("data", (bytes: Buffer) => connection.onBytes(bytes));
    // "close" always follows.
    socket.on("error", () => undefined);
    socket.once("close", () => {
      outflow.close();
      this.#remove(connection);
    });
  }

  #acceptWebSocket(client: WebSocket, request: IncomingMessage): void {
    const transport = new WebSocketTransport(client, {
      remoteAddress: plainAddress(request.socket.remoteAddress ?? ""),
      isForeignPage: isForeignPage(request, this.#options.origins),
      outflow: findOutflow(request.socket),
    });
    const connection = this.#add(transport);
    client.on("message", (data, isBinary) => {
      if (!Buffer.isBuffer(data) || (!isBinary && !this.#options.allowsText)) {
        client.close(UNSUPPORTED_DATA, "expected binary frames");
        return;
      }
      transport.isText = !isBinary;
      transport.receivedBytes += data.length;
      connection.onBytes(data);
    });
    client.on("error", () => client.terminate());
    client.once("close", () => this.#remove(connection));
  }

  #add(transport: Transport): WireConnection {
    const connection = this.#options.connect(transport);
    this.#connections.set(connection, transport);
    return connection;
  }

  #remove(connection: WireConnection): void {
    connection.onClose();
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#onEmpty?.();
  }

  #sweep(): void {
    const nowMs = performance.now();
    // Clients are not blamed for time in which this process was busy.
    const elapsedMs = Math.min(nowMs - this.#sweptAtMs, 2 * SWEEP_MS);
    this.#sweptAtMs = nowMs;
    for (const connection of this.#connections.keys()) {
      connection.sweep(nowMs, elapsedMs, SWEEP_MS);
    }
    this.#outgoing.sweep(elapsedMs);
  }
}

/**
 * Any page could make a browser connect to this machine (WebSockets have no same-origin policy), where clients may need
 * no credentials.
 */
function isForeignPage({ headers }: IncomingMessage, origins: readonly string[]): boolean {
  const { origin, host } = headers;
  if (origin === undefined || origins.includes(origin)) return false;
  return URL.parse(origin)?.host !== host;
}

function stopServer(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

/** Converts IPv4-mapped addresses of IPv6 sockets. */
function plainAddress(address: string): string {
  return address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
}
