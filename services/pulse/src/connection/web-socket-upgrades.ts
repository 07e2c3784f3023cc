// Connections of a wire protocol on WebSockets of the HTTP listener.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { describeUpgrade } from "@platform/kernel/feeds";
import { checkLoopback, findOutflow } from "@platform/kernel/http";
import { WebSocketServer, type WebSocket } from "ws";
import type { WireConnection, WireListeners } from "./listeners.ts";
import { plainAddress, WebSocketTransport, type Framing, type Transport } from "./transport.ts";

export interface WebSocketUpgradesOptions {
  /** Names of the protocol, the preferred first. */
  subprotocols: readonly string[];
  framing: Framing;
  /** Largest message of a WebSocket. */
  messageBytesMax: number;
  connect: (transport: Transport) => WireConnection;
}

/** Accepts WebSockets within the limits of the protocol's listeners, which serve them. */
export class WebSocketUpgrades {
  readonly #listeners: WireListeners;
  readonly #options: WebSocketUpgradesOptions;
  readonly #server: WebSocketServer;

  constructor(listeners: WireListeners, options: WebSocketUpgradesOptions) {
    this.#listeners = listeners;
    this.#options = options;
    this.#server = new WebSocketServer({
      noServer: true,
      maxPayload: options.messageBytesMax,
      perMessageDeflate: false,
      handleProtocols: (offered) => options.subprotocols.find((name) => offered.has(name)) ?? false,
    });
  }

  /** Handles an upgrade request that offers one of the subprotocols; false for any other. */
  handle(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const offered = (request.headers["sec-websocket-protocol"] ?? "")
      .split(",")
      .map((name) => name.trim());
    if (!this.#options.subprotocols.some((name) => offered.includes(name))) return false;
    socket.on("error", () => socket.destroy());
    if (this.#listeners.admit(request.socket)) {
      this.#server.handleUpgrade(request, socket, head, (client) => this.#accept(client, request));
      return true;
    }
    socket.end(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    return true;
  }

  #accept(client: WebSocket, request: IncomingMessage): void {
    const { framing, connect } = this.#options;
    const peer = {
      remoteAddress: plainAddress(request.socket.remoteAddress),
      isLocal: isLocalProgram(request),
      outflow: findOutflow(request.socket),
    };
    const transport = new WebSocketTransport(client, peer, framing);
    const connection = connect(transport);
    transport.onDrain = () => connection.onDrain?.();
    this.#listeners.add(connection, transport);
    client.on("message", (data, isBinary) => {
      if (!Buffer.isBuffer(data)) return;
      if (!isBinary && framing === "bytes") {
        connection.onTextFrame?.();
        return;
      }
      transport.isText = !isBinary;
      transport.receivedBytes += data.length;
      connection.onRead(data, data.length, false);
    });
    client.on("error", () => client.terminate());
    client.once("close", () => this.#listeners.remove(connection));
  }
}

/** True for programs on this machine and the broker's own pages, not for clients of a local proxy and other pages. */
function isLocalProgram(request: IncomingMessage): boolean {
  const { peer, headers } = describeUpgrade(request, "");
  return checkLoopback({ peer, getHeader: (name) => headers.get(name) }).allowed;
}
