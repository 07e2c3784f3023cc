// The listeners of the MQTT server: TCP, TLS and WebSocket, with limits on connections and slow clients.
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createServer as createTlsServer, TLSSocket, type TlsOptions } from "node:tls";
import { findOutflow } from "@platform/kernel/http";
import {
  ConnectionBounds,
  createReadShortener,
  Outflow,
  OutgoingBudget,
  type ReadShortener,
} from "@platform/kernel/sockets";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { WebSocketServer, type WebSocket } from "ws";
import { REASON } from "../packet/reason-codes.ts";
import type { ConnectionContext } from "./connection-context.ts";
import { Connection } from "./connection.ts";
import { SocketTransport, WebSocketTransport, type Transport } from "./transport.ts";

const SWEEP_MS = 1_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Maximum size of a read. */
const READ_BYTES = 65_536;
/** Interval of TCP keep-alives, which find clients without a keep-alive that are gone. */
const TCP_KEEP_ALIVE_MS = 120_000;
/** Minimum rate of reading for clients that are sent something. */
const READING_PACE = { bytesMin: 65_536, windowMs: 60_000 };
const SUBPROTOCOL = "mqtt";

/** Serves MQTT on any number of listeners with shared limits. */
export class MqttListeners {
  readonly #context: ConnectionContext;
  readonly #origins: readonly string[];
  readonly #connections = new Set<Connection>();
  readonly #bounds: ConnectionBounds;
  readonly #outgoing: OutgoingBudget;
  readonly #shortenReads: ReadShortener;
  readonly #servers = new Set<Server>();
  readonly #webSockets: WebSocketServer;
  readonly #sweeper: RepeatingTimer;
  #sweptAtMs = performance.now();
  #onEmpty: (() => void) | undefined;
  /** Connections closed immediately because of a limit. */
  refusedCount = 0;

  /** `origins`: pages of browsers that may connect without credentials, besides those of this broker. */
  constructor(
    context: ConnectionContext,
    origins: readonly string[],
    onError: (error: unknown) => void,
  ) {
    const { limits } = context;
    this.#context = context;
    this.#origins = origins;
    this.#outgoing = new OutgoingBudget(limits.unsentBytesMax);
    this.#shortenReads = createReadShortener(Buffer.allocUnsafeSlow(READ_BYTES));
    this.#bounds = new ConnectionBounds({
      connectionsMax: limits.connectionsMax,
      perAddressMax: limits.connectionsPerAddressMax,
    });
    this.#webSockets = new WebSocketServer({
      noServer: true,
      maxPayload: limits.packetBytesMax + READ_BYTES,
      perMessageDeflate: false,
      handleProtocols: () => SUBPROTOCOL,
    });
    this.#sweeper = every(SWEEP_MS, () => this.#sweep(), onError);
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

  /** Takes an upgrade request that offers the subprotocol `mqtt`; false for any other. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const offered = request.headers["sec-websocket-protocol"] ?? "";
    if (!offered.split(",").some((name) => name.trim() === SUBPROTOCOL)) return false;
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
    const stopping = Array.from(this.#servers, stop);
    for (const connection of this.#connections) {
      connection.end(REASON.serverShuttingDown, "the broker is stopping");
    }
    const emptied = new Promise<void>((resolve) => (this.#onEmpty = resolve));
    const deadline = setTimeout(() => {
      for (const { transport } of this.#connections) transport.destroy();
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
    const bounds = {
      writeStallMs: this.#context.limits.stallTimeoutMs,
      answerPace: READING_PACE,
    };
    const outflow = new Outflow(socket, this.#outgoing, bounds, (fault) => connection.drop(fault));
    transport.outflow = outflow;
    const connection = this.#add(transport);
    const { onRead } = connection;
    socket.on("data", (chunk: Buffer) => onRead(chunk, chunk.length, false));
    if (!(socket instanceof TLSSocket)) this.#shortenReads(socket, onRead);
    socket.on("drain", () => connection.onDrain());
    // "close" always follows.
    socket.on("error", () => undefined);
    socket.once("close", () => {
      outflow.close();
      this.#remove(connection);
    });
  }

  #acceptWebSocket(client: WebSocket, request: IncomingMessage): void {
    const transport: Transport = new WebSocketTransport(
      client,
      {
        remoteAddress: plainAddress(request.socket.remoteAddress ?? ""),
        isForeignPage: isForeignPage(request, this.#origins),
        outflow: findOutflow(request.socket),
      },
      () => connection.onDrain(),
    );
    const connection = this.#add(transport);
    client.on("message", (data, isBinary) => {
      if (!isBinary || !Buffer.isBuffer(data)) {
        // MQTT-6.0.0-1.
        connection.end(REASON.protocolError, "MQTT uses binary frames");
        return;
      }
      (transport as WebSocketTransport).receivedBytes += data.length;
      connection.onRead(data, data.length, false);
    });
    client.on("error", () => client.terminate());
    client.once("close", () => this.#remove(connection));
  }

  #add(transport: Transport): Connection {
    const connection = new Connection(transport, this.#context);
    this.#connections.add(connection);
    return connection;
  }

  #remove(connection: Connection): void {
    connection.onClose();
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#onEmpty?.();
  }

  #sweep(): void {
    const nowMs = performance.now();
    // Clients are not blamed for time in which this process was busy.
    const elapsedMs = Math.min(nowMs - this.#sweptAtMs, 2 * SWEEP_MS);
    this.#sweptAtMs = nowMs;
    const monotonicMs = this.#context.clock.monotonicMs();
    for (const connection of this.#connections) connection.sweep(monotonicMs, elapsedMs);
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

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

/** Converts IPv4-mapped addresses of IPv6 sockets. */
function plainAddress(address: string): string {
  return address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
}
