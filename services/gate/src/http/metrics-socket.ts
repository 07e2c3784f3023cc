// The WebSocket at /api/v1/admin/metrics/ws: one update per second for a bounded number of clients.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import type { MetricsStream, MetricsUpdate } from "../telemetry/metrics-stream.ts";

/** Options of {@link MetricsSockets}. */
export interface MetricsSocketOptions {
  stream: MetricsStream;
  clientsMax: number;
  /** Maximum buffered bytes per client; while it has more, it misses updates. */
  waitingBytesMax: number;
  /** Consecutive updates that a client may miss before it is disconnected. */
  missedMax: number;
}

interface Client {
  socket: WebSocket;
  missed: number;
}

/** WebSockets that receive the live metrics. */
export class MetricsSockets {
  readonly #options: MetricsSocketOptions;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: 4096,
    perMessageDeflate: false,
  });
  readonly #clients = new Set<Client>();
  readonly #unsubscribe: () => void;

  constructor(options: MetricsSocketOptions) {
    this.#options = options;
    this.#unsubscribe = options.stream.subscribe((update) => this.#broadcast(update));
  }

  /** Accepts an upgrade request; responds with 503 if there are too many clients. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#clients.size >= this.#options.clientsMax) {
      socket.end(
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
      );
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (accepted) => {
      const client: Client = { socket: accepted, missed: 0 };
      this.#clients.add(client);
      accepted.on("close", () => this.#clients.delete(client));
      // The close event follows and removes the client.
      accepted.on("error", () => undefined);
      accepted.send(JSON.stringify(this.#options.stream.latest));
    });
  }

  /** Number of clients. */
  get size(): number {
    return this.#clients.size;
  }

  /** Closes all WebSockets with 1001 (going away). */
  close(): void {
    this.#unsubscribe();
    for (const { socket } of this.#clients) socket.close(1001, "the gateway is stopping");
    this.#server.close();
  }

  #broadcast(update: MetricsUpdate): void {
    const text = JSON.stringify(update);
    for (const client of this.#clients) {
      if (client.socket.bufferedAmount <= this.#options.waitingBytesMax) {
        client.missed = 0;
        client.socket.send(text);
      } else if (++client.missed > this.#options.missedMax) {
        client.socket.terminate();
      }
    }
  }
}
