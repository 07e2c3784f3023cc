// `/console/live`: the live feeds of all services of a session over one WebSocket.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { PlatformError, toPlatformError } from "@platform/kernel/errors";
import { LIVE_PATH, refuseUpgrade } from "@platform/kernel/feeds";
import type { Clock } from "@platform/kernel/time";
import { WebSocket, WebSocketServer } from "ws";
import type { LiveMessage, SessionEndedCloseCode } from "../contract.ts";
import { createConsoleError } from "../errors.ts";
import type { Session } from "../session/session.ts";
import type { SessionStore } from "../session/session-store.ts";
import type { SessionCredentials } from "./credentials.ts";
import { isVerified } from "./target-request.ts";
import type { Target } from "./target.ts";

const CLIENTS_MAX = 24;
/** Pages send nothing but control frames. */
const FRAME_BYTES_MAX = 4_096;
const MESSAGE_BYTES_MAX = 1024 * 1024;
/** Unsent bytes above which a page misses messages, and those that it may miss in a row. */
const WAITING_BYTES_MAX = 1024 * 1024;
const MISSED_MAX = 200;
const PING_MS = 30_000;
const HANDSHAKE_MS = 10_000;
/** Services send figures each second: a process that hangs keeps its connection, but is silent. */
const SILENCE_MS = 10_000;
/** Pages show a service that is back within the last of these. */
const RETRY_MS = { first: 500, last: 5_000 };
/** A service that refuses the session is asked again after this time. */
const REFUSED_RETRY_MS = 60_000;
const SESSION_ENDED: SessionEndedCloseCode = 4401;
const TRY_AGAIN_LATER = 1013;

/** Options of {@link LiveHub}. */
export interface LiveHubOptions {
  targets: ReadonlyMap<string, Target>;
  credentials: SessionCredentials;
  sessions: SessionStore;
  clock: Clock;
}

/** The live views of all sessions. */
export class LiveHub {
  readonly #options: LiveHubOptions;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: FRAME_BYTES_MAX,
    perMessageDeflate: false,
    handleProtocols: () => false,
  });

  constructor(options: LiveHubOptions) {
    this.#options = options;
  }

  /** Accepts the upgrade request of an admitted session. */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer, session: Session): void {
    socket.on("error", () => socket.destroy());
    if (this.#server.clients.size >= CLIENTS_MAX) {
      const error = new PlatformError("overloaded", "Too many live views are open.", {
        headers: { "Retry-After": "5" },
      });
      refuseUpgrade(socket, request, error);
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (client) => this.#begin(client, session));
  }

  /** Closes all with 1001 (going away). */
  close(): void {
    for (const client of this.#server.clients) client.close(1001, "the console is stopping");
    this.#server.close();
  }

  #begin(client: WebSocket, session: Session): void {
    const { targets, sessions } = this.#options;
    const page = new LivePage(client);
    const feeds = [...targets.values()].map(
      (target) => new ServiceFeed(target, session.id, page, this.#options),
    );
    const forget = sessions.watch(session.id, (reason) => {
      if (reason === "ended") page.close(SESSION_ENDED, "the session has ended");
      else page.close(TRY_AGAIN_LATER, "sessions cannot be read now");
    });
    client.on("close", () => {
      forget();
      page.stop();
      for (const feed of feeds) feed.stop();
    });
    for (const feed of feeds) void feed.connect();
  }
}

/** The socket of one page. */
class LivePage {
  readonly #client: WebSocket;
  readonly #pings: NodeJS.Timeout;
  #missed = 0;
  #isAlive = true;

  constructor(client: WebSocket) {
    this.#client = client;
    client.on("error", () => client.terminate());
    client.on("pong", () => void (this.#isAlive = true));
    this.#pings = setInterval(() => {
      if (!this.#isAlive) client.terminate();
      this.#isAlive = false;
      client.ping();
    }, PING_MS);
  }

  send(text: string): void {
    if (this.#client.readyState !== WebSocket.OPEN) return;
    if (this.#client.bufferedAmount <= WAITING_BYTES_MAX) {
      this.#missed = 0;
      this.#client.send(text);
    } else if (++this.#missed > MISSED_MAX) this.#client.terminate();
  }

  close(code: number, reason: string): void {
    this.#client.close(code, reason);
  }

  stop(): void {
    clearInterval(this.#pings);
  }
}

/** The feed of one service, connected again after it was lost. */
class ServiceFeed {
  readonly #target: Target;
  readonly #sessionId: string;
  readonly #page: LivePage;
  readonly #options: LiveHubOptions;
  #socket: WebSocket | undefined;
  #retry: NodeJS.Timeout | undefined;
  #delayMs = RETRY_MS.first;
  #lostMs: number | undefined;
  #isStopped = false;

  constructor(target: Target, sessionId: string, page: LivePage, options: LiveHubOptions) {
    this.#target = target;
    this.#sessionId = sessionId;
    this.#page = page;
    this.#options = options;
  }

  async connect(): Promise<void> {
    const { sessions, credentials } = this.#options;
    let session: Session | undefined;
    let headers: Record<string, string>;
    try {
      // Credentials change while the feed is open.
      session = await sessions.find(this.#sessionId);
      if (session === undefined) throw createConsoleError("session_expired");
      headers = await credentials.authorize(session, this.#target);
    } catch (error) {
      const { status, detail } = toPlatformError(error);
      this.#lose(status >= 500 ? 0 : status, detail);
      return;
    }
    if (this.#isStopped) return;
    const { origin: _origin, ...rest } = headers;
    const url = new URL(LIVE_PATH, this.#target.url);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url, {
      headers: rest,
      ...(headers["origin"] === undefined ? {} : { origin: headers["origin"] }),
      handshakeTimeout: HANDSHAKE_MS,
      maxPayload: MESSAGE_BYTES_MAX,
      perMessageDeflate: false,
      followRedirects: false,
      rejectUnauthorized: isVerified(url),
    });
    this.#socket = socket;
    let status = 0;
    socket.on("unexpected-response", (request, response) => {
      status = response.statusCode ?? 0;
      // A session that identity has ended ends in a page that only watches, too.
      if (status === 401) {
        const refused = { session, target: this.#target, authorization: headers };
        credentials.forget(refused).catch(() => undefined);
      }
      request.destroy();
      socket.terminate();
    });
    let silence: NodeJS.Timeout | undefined;
    const expectMessage = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => socket.terminate(), SILENCE_MS);
    };
    socket.on("open", expectMessage);
    socket.on("message", (data, isBinary) => {
      expectMessage();
      if (isBinary || !Buffer.isBuffer(data)) return;
      this.#delayMs = RETRY_MS.first;
      this.#lostMs = undefined;
      this.#page.send(data.toString("utf8"));
    });
    socket.on("error", () => socket.terminate());
    socket.on("close", (code) => {
      clearTimeout(silence);
      if (socket !== this.#socket) return;
      // The token had expired: a new one follows without a gap.
      if (code === SESSION_ENDED && this.#lostMs === undefined) this.#schedule(0);
      else
        this.#lose(
          status,
          status === 0 ? "The service does not answer." : "The service refused the session.",
        );
    });
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#retry);
    this.#socket?.terminate();
  }

  #lose(status: number, detail: string): void {
    if (this.#isStopped) return;
    this.#lostMs ??= this.#options.clock.now();
    const { id: service } = this.#target;
    const message: LiveMessage = { type: "down", service, since: this.#lostMs, status, detail };
    this.#page.send(JSON.stringify(message));
    const isRefused = status >= 400 && status < 500;
    this.#schedule(isRefused ? REFUSED_RETRY_MS : this.#delayMs);
    this.#delayMs = Math.min(this.#delayMs * 2, RETRY_MS.last);
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return;
    this.#retry = setTimeout(() => void this.connect(), delayMs);
  }
}
