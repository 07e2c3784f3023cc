// Forwards requests and WebSockets of the page to the services, with the credentials of the session.
import {
  Agent,
  request as httpRequest,
  type ClientRequest,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
} from "node:http";
import { Agent as TlsAgent, request as tlsRequest } from "node:https";
import { pipeline, type Duplex } from "node:stream";
import { getProblemHeaders, PlatformError, toProblem } from "@platform/kernel/errors";
import { refuseUpgrade } from "@platform/kernel/feeds";
import { OWN_REQUEST } from "@platform/kernel/metrics";
import { createConsoleError } from "../errors.ts";
import type { Session } from "../session/session.ts";
import type { SessionStore } from "../session/session-store.ts";
import type { RefusedCredentials, SessionCredentials } from "./credentials.ts";
import { isVerified, readHostname } from "./target-request.ts";
import { pickRequestHeaders, pickResponseHeaders, type Target, type TargetPath } from "./target.ts";

/** Time in which a service must accept or send something before its response begins. */
const SILENT_MS_MAX = 120_000;
const SOCKETS_MAX = 256;
/** Open WebSockets of all sessions, and of one. */
const STREAMS_MAX = 512;
const STREAMS_PER_SESSION_MAX = 64;
const UPGRADE_HEADERS = [
  "sec-websocket-key",
  "sec-websocket-version",
  "sec-websocket-protocol",
  "sec-websocket-extensions",
] as const;
const ACCEPT_HEADERS = [
  "sec-websocket-accept",
  "sec-websocket-protocol",
  "sec-websocket-extensions",
] as const;

/** Headers of answers that are no page: nothing in them may act, be framed, or be kept. */
export const PLAIN_HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
} as const;

/** Options of {@link Forwarder}. */
export interface ForwarderOptions {
  credentials: SessionCredentials;
  sessions: SessionStore;
}

/** Forwards. Only addresses of targets are connected to, whatever a request contains. */
export class Forwarder {
  readonly #options: ForwarderOptions;
  readonly #agents = {
    "http:": new Agent({ keepAlive: true, maxSockets: SOCKETS_MAX }),
    "https:": new TlsAgent({ keepAlive: true, maxSockets: SOCKETS_MAX }),
  };
  /** By session. */
  readonly #streams = new Map<string, number>();
  readonly #open = new Set<Duplex>();

  constructor(options: ForwarderOptions) {
    this.#options = options;
  }

  /** Forwards a request of an admitted session. Never rejects. */
  async forward(
    request: IncomingMessage,
    response: ServerResponse,
    { target, path }: TargetPath,
    session: Session,
  ): Promise<void> {
    try {
      const authorization = await this.#options.credentials.authorize(session, target);
      if (response.destroyed) return;
      const headers = { ...pickRequestHeaders(request.headers), ...authorization, ...OWN_REQUEST };
      const outgoing = this.#connect(target, { method: request.method, path, headers });
      response.once("close", () => outgoing.destroy());
      pipeline(request, outgoing, () => undefined);
      const incoming = await readResponse(outgoing);
      if (incoming.statusCode === 401) {
        incoming.resume();
        throw await this.#explain(incoming, { target, session, authorization });
      }
      answer(incoming, response);
    } catch (error) {
      answerProblem(response, request, error);
    }
  }

  /** Forwards a WebSocket of an admitted session, which it ends with. */
  async upgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    { target, path }: TargetPath,
    session: Session,
  ): Promise<void> {
    socket.on("error", () => socket.destroy());
    try {
      if (String(request.headers.upgrade).toLowerCase() !== "websocket") {
        throw new PlatformError("bad_request", "Only WebSockets are forwarded.");
      }
      this.#count(session);
    } catch (error) {
      refuseUpgrade(socket, request, error);
      return;
    }
    socket.once("close", () => this.#uncount(session));
    try {
      const authorization = await this.#options.credentials.authorize(session, target);
      const headers = {
        ...pick(request, UPGRADE_HEADERS),
        ...authorization,
        connection: "Upgrade",
        upgrade: "websocket",
      };
      const outgoing = this.#connect(target, { method: "GET", path, headers, agent: false });
      socket.once("close", () => outgoing.destroy());
      outgoing.end();
      const { incoming, upstream, rest } = await readUpgrade(outgoing);
      if (upstream === undefined) {
        incoming.resume();
        throw await this.#explain(incoming, { target, session, authorization });
      }
      if (socket.destroyed) {
        upstream.destroy();
        return;
      }
      const lines = Object.entries(pick(incoming, ACCEPT_HEADERS)).map(
        ([name, value]) => `${name}: ${value}\r\n`,
      );
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${lines.join("")}\r\n`,
      );
      if (rest.length > 0) socket.write(rest);
      if (head.length > 0) upstream.write(head);
      this.#join(socket, upstream, session);
    } catch (error) {
      refuseUpgrade(socket, request, error);
    }
  }

  /** Ends all WebSockets and idle connections. */
  close(): void {
    for (const socket of this.#open) socket.destroy();
    this.#agents["http:"].destroy();
    this.#agents["https:"].destroy();
  }

  #connect(target: Target, options: RequestOptions): ClientRequest {
    const { port, protocol, host } = target.url;
    const isTls = protocol === "https:";
    const outgoing = (isTls ? tlsRequest : httpRequest)({
      agent: this.#agents[isTls ? "https:" : "http:"],
      ...options,
      ...(isTls ? { rejectUnauthorized: isVerified(target.url) } : {}),
      hostname: readHostname(target.url),
      port,
      headers: { ...(options.headers as Record<string, string>), host },
      setHost: false,
    });
    outgoing.setTimeout(SILENT_MS_MAX, () => outgoing.destroy());
    return outgoing;
  }

  async #explain(
    { statusCode = 502, headers }: IncomingMessage,
    refused: RefusedCredentials,
  ): Promise<Error> {
    if (statusCode === 401) {
      const isStepUp = headers["www-authenticate"]?.includes("insufficient_user_authentication");
      if (isStepUp === true) return createConsoleError("recent_sign_in_required");
      return this.#options.credentials.forget(refused);
    }
    return new PlatformError("forbidden", `The service refused with ${statusCode}.`, {
      status: statusCode >= 400 ? statusCode : 502,
    });
  }

  #join(socket: Duplex, upstream: Duplex, session: Session): void {
    const end = (): void => {
      forget();
      this.#open.delete(socket);
      socket.destroy();
      upstream.destroy();
    };
    const forget = this.#options.sessions.watch(session.id, end);
    this.#open.add(socket);
    upstream.on("error", end);
    socket.on("close", end);
    upstream.on("close", end);
    socket.pipe(upstream);
    upstream.pipe(socket);
  }

  #count({ id }: Session): void {
    const own = this.#streams.get(id) ?? 0;
    const all = [...this.#streams.values()].reduce((sum, count) => sum + count, 0);
    if (own >= STREAMS_PER_SESSION_MAX || all >= STREAMS_MAX) {
      throw new PlatformError("overloaded", "Too many live views are open.", {
        headers: { "Retry-After": "5" },
      });
    }
    this.#streams.set(id, own + 1);
  }

  #uncount({ id }: Session): void {
    const own = (this.#streams.get(id) ?? 1) - 1;
    if (own === 0) this.#streams.delete(id);
    else this.#streams.set(id, own);
  }
}

/** Answers with a problem document; ends a response that has already begun. */
export function answerProblem(
  response: ServerResponse,
  request: IncomingMessage,
  error: unknown,
): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const problem = toProblem(error, { instance: request.url ?? "/" });
  const body = JSON.stringify(problem);
  response.writeHead(problem.status, {
    ...getProblemHeaders(error),
    ...PLAIN_HEADERS,
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
}

function answer(incoming: IncomingMessage, response: ServerResponse): void {
  // A stream may be silent for as long as it likes.
  incoming.socket.setTimeout(0);
  response.writeHead(incoming.statusCode ?? 502, pickResponseHeaders(incoming.headers));
  response.flushHeaders();
  pipeline(incoming, response, () => undefined);
}

function pick(message: IncomingMessage, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = message.headers[name];
      return typeof value === "string" ? [[name, value]] : [];
    }),
  );
}

function readResponse(outgoing: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  outgoing.once("response", resolve);
  outgoing.on("error", (cause) => reject(createConsoleError("service_down", { cause })));
  outgoing.once("close", () => reject(createConsoleError("service_down")));
  return promise;
}

async function readUpgrade(outgoing: ClientRequest): Promise<{
  incoming: IncomingMessage;
  upstream: Duplex | undefined;
  rest: Buffer;
}> {
  const { promise, resolve, reject } = Promise.withResolvers<{
    incoming: IncomingMessage;
    upstream: Duplex | undefined;
    rest: Buffer;
  }>();
  outgoing.once("upgrade", (incoming, upstream, rest) => {
    upstream.setTimeout(0);
    resolve({ incoming, upstream, rest });
  });
  readResponse(outgoing).then(
    (incoming) => resolve({ incoming, upstream: undefined, rest: Buffer.alloc(0) }),
    reject,
  );
  return promise;
}
