// WebSockets that receive the lines of a log: filtered for each client, in batches, bounded.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer, type WebSocket } from "ws";
import { PlatformError } from "../errors/index.ts";
import { checkSameOrigin, mapLegacyPath, type Guard, type GuardedRequest } from "../http/index.ts";
import type { Caller } from "../identity/index.ts";
import type { Logger } from "../log/index.ts";
import { every, type RepeatingTimer } from "../time/index.ts";
import { describeUpgrade } from "./feeds.ts";
import { refuseUpgrade } from "./live.ts";

const CLIENTS_MAX = 32;
/** Lines that wait for the next batch; further ones are missed. */
const WAITING_LINES_MAX = 1_000;
/** Unsent bytes above which a client receives no batch. */
const UNSENT_BYTES_MAX = 256 * 1024;
const FRAME_BYTES_MAX = 4_096;
const BATCH_MS = 100;
const PING_MS = 30_000;
const CLOSE_UNAUTHORIZED = 4401;

interface Client<Line> {
  readonly socket: WebSocket;
  readonly accepts: (line: Line) => boolean;
  readonly admit: () => Promise<void>;
  waiting: object[];
  missed: number;
  /** False from a ping until its pong. */
  isAlive: boolean;
}

/** Values of the parameters in the path. */
export type PathValues = Readonly<Record<string, string>>;

/** Options of {@link LineStreams}. */
export interface LineStreamsOptions<Line> {
  /** May have parameters: `/api/v1/tunnels/{id}/requests/ws`. */
  path: string;
  guard: Guard;
  /** Throws if a caller may not read the lines. */
  access: (caller: Caller, values: PathValues) => void;
  /** Reads the parameters of a client. Throws 400 if one is invalid. */
  readFilter: (search: URLSearchParams, values: PathValues) => (line: Line) => boolean;
  /** The form in which clients get a line; called once per line. Default: the line itself. */
  describe?: (line: Line) => object;
  /**
   * Called before the first client is accepted: from now on, lines go to {@link LineStreams.add}. The returned function is
   * called when the last client has left.
   */
  listen: (streams: LineStreams<Line>) => () => void;
  logger: Logger;
}

/** The clients of a stream. */
export class LineStreams<Line> {
  readonly #options: LineStreamsOptions<Line>;
  readonly #pattern: RegExp;
  readonly #clients = new Set<Client<Line>>();
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: FRAME_BYTES_MAX,
    perMessageDeflate: false,
    handleProtocols: () => false,
  });
  readonly #timers: readonly RepeatingTimer[];
  #forget: (() => void) | undefined;
  /** The reason why the log cannot be read; undefined if it can. */
  #fault: string | undefined;

  constructor(options: LineStreamsOptions<Line>) {
    this.#options = options;
    this.#pattern = new RegExp(`^${options.path.replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)")}$`);
    const onError = (error: unknown): void =>
      options.logger.error("a stream of lines failed", { path: options.path, error });
    this.#timers = [
      every(BATCH_MS, () => this.#flush(), onError),
      every(PING_MS, () => this.#ping(), onError),
    ];
  }

  /** Handles an upgrade request to the stream; false for any other path. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean {
    const [path = ""] = (request.url ?? "").split("?", 1);
    if (!this.hasPath(path)) return false;
    socket.on("error", () => socket.destroy());
    const guarded = describeUpgrade(request, mapLegacyPath(path));
    this.admit(guarded)
      .then(() => this.acceptAdmitted(request, socket, head, guarded))
      .catch((error: unknown) => this.#refuse(request, socket, error));
    return true;
  }

  /** True for the path of the stream. */
  hasPath(path: string): boolean {
    return this.#pattern.test(mapLegacyPath(path));
  }

  /** Checks the caller of an upgrade request, and that no page of another site sent it. Rejects with a {@link PlatformError}. */
  async admit(guarded: GuardedRequest): Promise<void> {
    const { headers, path } = guarded;
    // A page of another site could use the cookie of a session.
    const verdict = checkSameOrigin(headers.get("host") ?? "", (name) => headers.get(name));
    if (!verdict.allowed) {
      throw new PlatformError("forbidden", `Cross-site request refused: ${verdict.reason}.`);
    }
    this.#options.access(await this.#options.guard(guarded), this.#readValues(path));
  }

  /** Accepts an upgrade request whose caller was admitted before; `guarded` is checked again from time to time. */
  acceptAdmitted(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    guarded: GuardedRequest,
  ): void {
    try {
      this.#accept(request, socket, head, guarded);
    } catch (error) {
      this.#refuse(request, socket, error);
    }
  }

  /** Adds a line for the clients whose filter accepts it. */
  add(line: Line): void {
    let item: object | undefined;
    for (const client of this.#clients) {
      if (!client.accepts(line)) continue;
      item ??= this.#options.describe?.(line) ?? (line as object);
      if (client.waiting.length < WAITING_LINES_MAX) client.waiting.push(item);
      else client.missed += 1;
    }
  }

  /** Tells all clients that lines were left out, before their filter could be applied. */
  miss(count: number): void {
    for (const client of this.#clients) client.missed += count;
  }

  /** Tells all clients, also later ones, that the log cannot be read at present. The detail must not contain internals. */
  fail(detail: string): void {
    this.#fault = detail;
    for (const client of this.#clients) this.#sendFault(client, detail);
  }

  /** Tells all clients that the log can be read again. */
  recover(): void {
    if (this.#fault === undefined) return;
    this.#fault = undefined;
    for (const { socket } of this.#clients) send(socket, { type: "recovered" });
  }

  /** Closes all with 1001 (going away). */
  async close(): Promise<void> {
    for (const { socket } of this.#clients) socket.close(1001, "the service is stopping");
    this.#server.close();
    this.#stopListening();
    await Promise.all(this.#timers.map((timer) => timer.stop()));
  }

  #accept(request: IncomingMessage, socket: Duplex, head: Buffer, guarded: GuardedRequest): void {
    const { url = "" } = request;
    const search = new URLSearchParams(url.includes("?") ? url.slice(url.indexOf("?")) : "");
    const accepts = this.#options.readFilter(search, this.#readValues(guarded.path));
    if (this.#clients.size >= CLIENTS_MAX) {
      throw new PlatformError("overloaded", `More than ${CLIENTS_MAX} clients are connected.`, {
        headers: { "Retry-After": "5" },
      });
    }
    if (socket.destroyed) return;
    this.#server.handleUpgrade(request, socket, head, (accepted) => {
      const client: Client<Line> = {
        socket: accepted,
        accepts,
        admit: () => this.admit(guarded),
        waiting: [],
        missed: 0,
        isAlive: true,
      };
      this.#forget ??= this.#options.listen(this);
      this.#clients.add(client);
      accepted.on("pong", () => void (client.isAlive = true));
      accepted.on("close", () => this.#remove(client));
      accepted.on("error", () => accepted.terminate());
      sendBatch(client);
      if (this.#fault !== undefined) this.#sendFault(client, this.#fault);
    });
  }

  #sendFault({ socket }: Client<Line>, detail: string): void {
    send(socket, { type: "error", detail });
  }

  #remove(client: Client<Line>): void {
    this.#clients.delete(client);
    if (this.#clients.size === 0) this.#stopListening();
  }

  #stopListening(): void {
    this.#forget?.();
    this.#forget = undefined;
    this.#fault = undefined;
  }

  #readValues(path: string): PathValues {
    const groups = this.#pattern.exec(mapLegacyPath(path))?.groups ?? {};
    return Object.fromEntries(
      Object.entries(groups).map(([name, value]) => [name, decodeText(value)]),
    );
  }

  #refuse(request: IncomingMessage, socket: Duplex, error: unknown): void {
    if (!(error instanceof PlatformError)) this.#options.logger.error("upgrade failed", { error });
    refuseUpgrade(socket, request, error);
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

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new PlatformError("bad_request", "The path is not percent-encoded correctly.");
  }
}

function sendBatch<Line>(client: Client<Line>): void {
  const { socket, waiting, missed } = client;
  client.waiting = [];
  client.missed = 0;
  socket.send(JSON.stringify({ type: "lines", items: waiting, missed }));
}

// With the members of a batch: a client that does not look at the type reads an empty one.
function send(socket: WebSocket, message: { type: string; detail?: string }): void {
  socket.send(JSON.stringify({ ...message, items: [], missed: 0 }));
}
