// An upstream on a fixed port that dies, with all of its connections, and comes back.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { type WebSocket, WebSocketServer } from "ws";

const EVENTS_EVERY_MS = 50;
/** A connection that the upstream closed while it was idle would fail a POST, which cannot be repeated. */
const KEEP_ALIVE_MS = 3_600_000;
const SLOW_MS = 25;
const CACHED_FOR = "max-age=1, stale-if-error=3600";
const STREAMED = "x".repeat(16_384);

/** The upstream. */
export class MortalUpstream {
  port = 0;
  /** Requests that arrived. */
  requests = 0;
  #server: Server | undefined;
  readonly #sockets = new Set<WebSocket>();

  /** Starts one on a free port; it ends with the test. */
  static async start(context: TestContext): Promise<MortalUpstream> {
    const upstream = new MortalUpstream();
    await upstream.revive();
    context.after(() => upstream.kill());
    return upstream;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Listens again on the port that it had. */
  async revive(): Promise<void> {
    const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
      this.requests++;
      answer(request, response).catch(() => response.destroy());
    });
    const webSockets = new WebSocketServer({ server });
    webSockets.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
      socket.on("close", () => this.#sockets.delete(socket));
    });
    server.listen({ port: this.port, host: "127.0.0.1", backlog: 1_024 });
    await once(server, "listening");
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Closes its listener and every connection. */
  async kill(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = once(server, "close");
    server.close();
    for (const socket of this.#sockets) socket.terminate();
    server.closeAllConnections();
    await closed;
  }
}

/** The answer depends on the last segment of the path. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.on("error", () => undefined);
  const [, kind] = /\/(events|slow|stream|cached)\b/.exec(request.url ?? "") ?? [];
  switch (kind) {
    case "events": {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      const timer = setInterval(() => response.write("data: tick\n\n"), EVENTS_EVERY_MS);
      response.on("close", () => clearInterval(timer));
      return;
    }
    case "slow":
      await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
      break;
    case "stream":
      response.write(STREAMED);
      await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
      response.end(STREAMED);
      return;
    case "cached":
      response.setHeader("Cache-Control", CACHED_FOR);
      break;
    default:
  }
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  response.end(pieces.length === 0 ? "served" : Buffer.concat(pieces));
}
