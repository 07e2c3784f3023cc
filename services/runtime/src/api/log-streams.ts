// The stream of log lines: filtered for each client, in batches, bounded.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { LogLine } from "@platform/console/contract";
import { PlatformError } from "@platform/kernel/errors";
import { describeUpgrade, refuseUpgrade } from "@platform/kernel/feeds";
import { checkSameOrigin, type Guard } from "@platform/kernel/http";
import type { Logger } from "@platform/kernel/log";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { WebSocketServer, type WebSocket } from "ws";
import {
  createLogFilter,
  parseLogEvent,
  toLogLine,
  type LogEvent,
  type LogFilter,
} from "../control/log-line.ts";
import { requireRead } from "./access.ts";
import { LOG_STREAM_PATH } from "./log-routes.ts";

const CLIENTS_MAX = 32;
/** Lines that wait for the next batch; further ones are missed. */
const WAITING_LINES_MAX = 1_000;
/** Unsent bytes above which a client receives no batch. */
const UNSENT_BYTES_MAX = 256 * 1024;
const FRAME_BYTES_MAX = 4_096;
const BATCH_MS = 100;
const PING_MS = 30_000;
const CLOSE_UNAUTHORIZED = 4401;

interface Client {
  readonly socket: WebSocket;
  readonly accepts: (event: LogEvent) => boolean;
  readonly admit: () => Promise<void>;
  waiting: LogLine[];
  missed: number;
  /** False from a ping until its pong. */
  isAlive: boolean;
}

/** Options of {@link LogStreams}. */
export interface LogStreamsOptions {
  /** Calls a function with each line as JSON; returns a function that ends it. */
  listen: (listener: (json: string) => void) => () => void;
  readFilter: (search: URLSearchParams) => LogFilter;
  guard: Guard;
  logger: Logger;
}

/** The clients of the stream. */
export class LogStreams {
  readonly #options: LogStreamsOptions;
  readonly #clients = new Set<Client>();
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: FRAME_BYTES_MAX,
    perMessageDeflate: false,
    handleProtocols: () => false,
  });
  readonly #timers: readonly RepeatingTimer[];
  readonly #forget: () => void;

  constructor(options: LogStreamsOptions) {
    this.#options = options;
    this.#forget = options.listen((json) => this.#add(json));
    const onError = (error: unknown): void =>
      options.logger.error("the log stream failed", { error });
    this.#timers = [
      every(BATCH_MS, () => this.#flush(), onError),
      every(PING_MS, () => this.#ping(), onError),
    ];
  }

  /** Handles an upgrade request to the stream; false for any other path. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const url = URL.parse(request.url ?? "/", "http://localhost");
    if (url?.pathname !== LOG_STREAM_PATH) return false;
    socket.on("error", () => socket.destroy());
    this.#accept(request, socket, head, url).catch((error: unknown) => {
      if (!(error instanceof PlatformError)) {
        this.#options.logger.error("upgrade failed", { error });
      }
      refuseUpgrade(socket, request, error);
    });
    return true;
  }

  /** Closes all with 1001 (going away). */
  async close(): Promise<void> {
    this.#forget();
    for (const { socket } of this.#clients) socket.close(1001, "the platform is stopping");
    this.#server.close();
    await Promise.all(this.#timers.map((timer) => timer.stop()));
  }

  async #accept(request: IncomingMessage, socket: Duplex, head: Buffer, url: URL): Promise<void> {
    const admit = (): Promise<void> => this.#admit(request);
    await admit();
    const accepts = createLogFilter(this.#options.readFilter(url.searchParams));
    if (this.#clients.size >= CLIENTS_MAX) {
      throw new PlatformError("overloaded", `More than ${CLIENTS_MAX} clients are connected.`, {
        headers: { "Retry-After": "5" },
      });
    }
    if (socket.destroyed) return;
    this.#server.handleUpgrade(request, socket, head, (accepted) => {
      const client: Client = {
        socket: accepted,
        accepts,
        admit,
        waiting: [],
        missed: 0,
        isAlive: true,
      };
      this.#clients.add(client);
      accepted.on("pong", () => void (client.isAlive = true));
      accepted.on("close", () => this.#clients.delete(client));
      accepted.on("error", () => accepted.terminate());
      sendBatch(client);
    });
  }

  // A page of another site could use the cookie of a session.
  async #admit(request: IncomingMessage): Promise<void> {
    const guarded = describeUpgrade(request, LOG_STREAM_PATH);
    const verdict = checkSameOrigin(request.headers.host ?? "", (name) =>
      guarded.headers.get(name),
    );
    if (!verdict.allowed) {
      throw new PlatformError("forbidden", `Cross-site request refused: ${verdict.reason}.`);
    }
    requireRead(await this.#options.guard(guarded));
  }

  #add(json: string): void {
    if (this.#clients.size === 0) return;
    const event = parseLogEvent(json);
    if (event === undefined) return;
    let line: LogLine | undefined;
    for (const client of this.#clients) {
      if (!client.accepts(event)) continue;
      line ??= toLogLine(event, json);
      if (client.waiting.length < WAITING_LINES_MAX) client.waiting.push(line);
      else client.missed += 1;
    }
  }

  #flush(): void {
    for (const client of this.#clients) {
      const hasNews = client.waiting.length > 0 || client.missed > 0;
      if (hasNews && client.socket.bufferedAmount <= UNSENT_BYTES_MAX) sendBatch(client);
    }
  }

  #ping(): void {
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
}

function sendBatch(client: Client): void {
  const { socket, waiting, missed } = client;
  client.waiting = [];
  client.missed = 0;
  socket.send(JSON.stringify({ type: "lines", items: waiting, missed }));
}
