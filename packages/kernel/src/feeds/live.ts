// The WebSocket of live figures: one update per second for a bounded number of clients.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";
import { getProblemHeaders, PlatformError, toProblem } from "../errors/index.ts";
import type { Logger } from "../log/index.ts";

/** Maximum number of clients. */
const CLIENTS_MAX = 32;
/** Unsent bytes above which a client misses updates. */
const WAITING_BYTES_MAX = 256 * 1024;
/** Consecutive updates that a client may miss before it is disconnected. */
const MISSED_MAX = 30;
/** Close code of clients whose credentials have expired or were revoked. */
const CLOSE_UNAUTHORIZED = 4401;
/** Clients send nothing but control frames. */
const FRAME_BYTES_MAX = 4096;

interface Client {
  socket: WebSocket;
  missed: number;
  /** False from a ping until its pong. */
  isAlive: boolean;
  /** Rejects when the client has lost its access. */
  admit: () => Promise<void>;
}

export interface LiveSocketsOptions {
  logger: Logger;
  /** The first message of each client. */
  greet: () => object;
}

/** The clients. */
export class LiveSockets {
  readonly #options: LiveSocketsOptions;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: FRAME_BYTES_MAX,
    perMessageDeflate: false,
    handleProtocols: () => false,
  });
  readonly #clients = new Set<Client>();

  constructor(options: LiveSocketsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#clients.size;
  }

  /** Accepts a request for which `admit` resolves; answers its error otherwise. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, admit: () => Promise<void>): void {
    socket.on("error", () => socket.destroy());
    this.#begin(request, socket, head, admit).catch((error: unknown) => {
      if (!(error instanceof PlatformError)) {
        this.#options.logger.error("upgrade failed", { error });
      }
      refuseUpgrade(socket, request, error);
    });
  }

  /** Sends a message to all clients; those that do not read miss it, and are disconnected after a while. */
  send(message: object): void {
    if (this.#clients.size === 0) return;
    const text = JSON.stringify(message);
    for (const client of this.#clients) {
      if (client.socket.bufferedAmount <= WAITING_BYTES_MAX) {
        client.missed = 0;
        client.socket.send(text);
      } else if (++client.missed > MISSED_MAX) client.socket.terminate();
    }
  }

  /** Disconnects clients that have not answered the last ping or have lost their access, and pings the others. */
  ping(): void {
    for (const client of this.#clients) {
      if (!client.isAlive) client.socket.terminate();
      client.isAlive = false;
      client.socket.ping();
      client.admit().catch((error: unknown) => {
        // Keys that cannot be fetched do not end a stream that was admitted.
        if (!(error instanceof PlatformError) || error.status >= 500) return;
        client.socket.close(CLOSE_UNAUTHORIZED, "the session or token is no longer valid");
      });
    }
  }

  /** Closes all with 1001 (going away). */
  close(): void {
    for (const { socket } of this.#clients) socket.close(1001, "the service is stopping");
    this.#server.close();
  }

  async #begin(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    admit: () => Promise<void>,
  ): Promise<void> {
    await admit();
    if (this.#clients.size >= CLIENTS_MAX) {
      throw new PlatformError("overloaded", `More than ${CLIENTS_MAX} clients are connected.`, {
        headers: { "Retry-After": "5" },
      });
    }
    if (socket.destroyed) return;
    this.#server.handleUpgrade(request, socket, head, (accepted) => this.#add(accepted, admit));
  }

  #add(socket: WebSocket, admit: () => Promise<void>): void {
    const client: Client = { socket, missed: 0, isAlive: true, admit };
    this.#clients.add(client);
    socket.on("pong", () => void (client.isAlive = true));
    socket.on("close", () => this.#clients.delete(client));
    socket.on("error", () => socket.terminate());
    socket.send(JSON.stringify(this.#options.greet()));
  }
}

/** Answers an upgrade request with a problem document. */
export function refuseUpgrade(socket: Duplex, request: IncomingMessage, error: unknown): void {
  const problem = toProblem(error, { instance: (request.url ?? "/").split("?")[0]! });
  const body = JSON.stringify(problem);
  const headers = {
    ...getProblemHeaders(error),
    "Content-Length": String(Buffer.byteLength(body)),
    Connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${problem.status} ${problem.title}\r\n${lines.join("")}\r\n${body}`);
}
