// The console of the whole platform: page, sessions, and the way to each service.
import type { IncomingMessage, ServerResponse } from "node:http";
import { randomBytes } from "node:crypto";
import { finished, type Duplex } from "node:stream";
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import { CONSOLE_LIVE_PATH, refuseUpgrade } from "@platform/kernel/feeds";
import { HealthRegistry } from "@platform/kernel/health";
import { createApi, isLoopbackHost, listenHttp, type HeaderReader } from "@platform/kernel/http";
import type { Logger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { createSecretBox } from "@platform/kernel/secrets";
import { every, type Clock } from "@platform/kernel/time";
import type { Tracer } from "@platform/kernel/trace";
import type { ConsoleConfig, ServiceId } from "../contract.ts";
import { createConsoleError } from "../errors.ts";
import { ClientBounds } from "../guard/client-bounds.ts";
import { checkPageRequest, isRead } from "../guard/origin.ts";
import { checkRecentSignIn } from "../guard/recent-sign-in.ts";
import { SignInThrottle } from "../guard/throttle.ts";
import { IdentityClient, type IdentityClientOptions } from "../oidc/identity-client.ts";
import { createOidcRoutes } from "../oidc/oidc-routes.ts";
import { Bundle } from "../page/bundle.ts";
import { createPageRoutes } from "../page/page-routes.ts";
import { createSessionRoutes } from "../routes/session-routes.ts";
import { ConsoleCookie } from "../session/cookies.ts";
import type { Session } from "../session/session.ts";
import { MemorySessions } from "../session/memory-sessions.ts";
import { RedisSessions } from "../session/redis-sessions.ts";
import { nameSession, SWEEP_MS, type SessionStore } from "../session/session-store.ts";
import { SessionCredentials } from "./credentials.ts";
import { ServiceDirectory, type ServiceDirectoryOptions } from "./directory.ts";
import { answerProblem, Forwarder, PLAIN_HEADERS } from "./forwarder.ts";
import { LiveHub } from "./live-hub.ts";
import { findTarget, type Target } from "./target.ts";

/** Uploads of objects pass here; slower bodies than the listener's pace end earlier. */
const UPLOAD_TIMEOUT_MS = 3_600_000;
/** Behind a proxy it is the number of requests in flight: its connections are not those of clients. */
const CONNECTIONS_MAX = 1_024;
/** Methods that are forwarded. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]);
const CALLBACK_PATH = "/console/oidc/callback";

/** Names the setting of the keys in errors: `PLATFORM_GATE_CONSOLE_ENCRYPTION_KEYS`. */
const SECRETS = "gate_console";
const KEY_BYTES = 32;

/** Options of {@link startFront}. */
export interface FrontOptions {
  /** A Unix socket lies behind a proxy; it needs `url`. */
  address: { host?: string | undefined; port: number } | { path: string };
  /** Address at which browsers open it; default `http://localhost:<port>`. */
  url?: string | undefined;
  /** Field in which the proxy in front of a Unix socket sends the client's address; it removes the one of clients. */
  clientHeader?: string;
  targets: readonly Target[];
  /** Descriptions of services that have no console of their own. */
  known: ServiceDirectoryOptions["known"];
  /** Sessions in Redis, shared with other consoles that have the same keys and the same `url`; default: in memory. */
  shared?: { redisUrl: string; encryptionKeys: readonly Buffer[] } | undefined;
  /** Undefined without identity. */
  identity: Omit<IdentityClientOptions, "redirectUri" | "clock"> | undefined;
  version: string;
  logger: Logger;
  tracer: Tracer;
  clock: Clock;
  /** Folder of the page's files. */
  pageFolder?: string;
}

/** A running front. */
export interface Front {
  readonly url: string;
  /** Undefined for a Unix socket. */
  readonly port: number | undefined;
  /** Undefined for a Unix socket. */
  readonly host: string | undefined;
  close(drainMs: number): Promise<void>;
}

/** Starts the front. Rejects with the system's error if it cannot listen. */
export async function startFront(options: FrontOptions): Promise<Front> {
  const ready: { parts?: FrontParts } = {};
  const listener = await listenHttp({
    address: options.address,
    fetch: (request, bindings) => ready.parts!.api.fetch(request, bindings),
    intercept: (request, response) => ready.parts!.intercept(request, response),
    onUpgrade: (request, socket, head) => void ready.parts!.upgrade(request, socket, head),
    // Requests above the limit get their answer, too.
    connectionsMax: "path" in options.address ? 4 * CONNECTIONS_MAX : CONNECTIONS_MAX,
    requestTimeoutMs: UPLOAD_TIMEOUT_MS,
  });
  const { host, port } = listener;
  const url = new URL(options.url ?? `http://localhost:${port}`).origin;
  const running = new FrontParts(options, url);
  ready.parts = running;
  return {
    url,
    host,
    port,
    close: async (drainMs) => {
      await running.close();
      await listener.close(drainMs);
    },
  };
}

class FrontParts {
  readonly api: ReturnType<typeof createApi>;
  readonly #url: URL;
  readonly #rule: { origin: string; isTls: boolean };
  readonly #clock: Clock;
  readonly #cookie: ConsoleCookie;
  readonly #sessions: SessionStore;
  readonly #targets: ReadonlyMap<string, Target>;
  readonly #forwarder: Forwarder;
  readonly #live: LiveHub;
  readonly #clientHeader: string | undefined;
  readonly #clients = new ClientBounds(CONNECTIONS_MAX);
  readonly #sweeps: ReturnType<typeof every>;

  constructor(options: FrontOptions, url: string) {
    const { targets, known, identity, version, logger, tracer, clock } = options;
    this.#url = new URL(url);
    const isSecure = this.#url.protocol === "https:";
    this.#rule = { origin: url, isTls: isSecure };
    this.#clock = clock;
    this.#clientHeader = options.clientHeader;
    this.#cookie = new ConsoleCookie("platform_console", { isSecure, sameSite: "Strict" });
    const keys = options.shared?.encryptionKeys ?? [randomBytes(KEY_BYTES)];
    const box = createSecretBox(SECRETS, keys);
    this.#sessions =
      options.shared === undefined
        ? new MemorySessions(clock)
        : new RedisSessions({ url: options.shared.redisUrl, box, clock, logger });
    this.#targets = new Map(targets.map((target) => [target.id, target]));
    const client =
      identity === undefined
        ? undefined
        : new IdentityClient({ ...identity, redirectUri: `${url}${CALLBACK_PATH}`, clock });
    const shared = { sessions: this.#sessions, clock };
    const directory = new ServiceDirectory({ targets: this.#targets, known, clock });
    const requireCredentials = (id: ServiceId): Promise<void> => directory.requireCredentials(id);
    const credentials = new SessionCredentials({ ...shared, client, requireCredentials });
    this.#forwarder = new Forwarder({ credentials, sessions: this.#sessions });
    this.#live = new LiveHub({ ...shared, targets: this.#targets, credentials });
    this.#sweeps = every(
      SWEEP_MS,
      () => this.#sessions.sweep(),
      (error) => logger.error("ending sessions failed", { error }),
    );
    const ids = targets.map(({ id }) => id);
    const health = new HealthRegistry({ service: "console", version });
    health.setState("ready");
    const cookie = this.#cookie;
    this.api = createApi({
      service: "console",
      version,
      title: "Console",
      routes: [
        ...createSessionRoutes({
          ...shared,
          cookie,
          throttle: new SignInThrottle(clock),
          rule: this.#rule,
          clientHeader: options.clientHeader,
          describe: async (): Promise<ConsoleConfig> => ({
            mode: "platform",
            sign_in: client === undefined ? ["credentials"] : ["oidc", "credentials"],
            services: await directory.list(),
          }),
          login: (body, _request, current) => directory.login(body, current),
          listServices: (session) => listServices(session, ids),
          refresh: (session) => credentials.refresh(session),
          findLoopback: () => undefined,
          endElsewhere: async ({ tokens }) =>
            tokens === undefined || client === undefined
              ? null
              : client.end(tokens, `${url}/ui/sign-in`).catch(() => null),
        }),
        ...(client === undefined
          ? []
          : createOidcRoutes({ ...shared, client, cookie, box, isSecure })),
        ...createPageRoutes(new Bundle(clock, options.pageFolder)),
      ],
      guard: () => {
        throw createUnauthorizedError("The console's own documentation is for this machine.");
      },
      health,
      metrics: new MetricRegistry(),
      logger,
      tracer,
      clock,
    });
  }

  /** Handles requests for services, and those with a Host that is not the console's. */
  intercept(request: IncomingMessage, response: ServerResponse): boolean {
    const { url = "/" } = request;
    try {
      this.#countUntilEnd(request, response);
      if (this.#redirect(request, response)) return true;
      if (url !== "/svc" && !url.startsWith("/svc/")) return false;
      void this.#forward(request, response);
    } catch (error) {
      answerProblem(response, request, error);
    }
    return true;
  }

  /** Handles WebSockets: the live feed, and those of services. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on("error", () => socket.destroy());
    try {
      this.#countUntilEnd(request, socket);
      this.#checkHost(request);
      if (request.method !== "GET") throw createMethodError();
      const session = await this.#admit(request.method ?? "GET", readHeaders(request));
      if (socket.destroyed) return;
      const { url = "/" } = request;
      if (url.split("?", 1)[0] === CONSOLE_LIVE_PATH) {
        this.#live.accept(request, socket, head, session);
        return;
      }
      const found = findTarget(this.#targets, url);
      if (found === undefined) throw new PlatformError("not_found", "There is no WebSocket here.");
      await this.#forwarder.upgrade(request, socket, head, found, session);
    } catch (error) {
      refuseUpgrade(socket, request, error);
    }
  }

  async close(): Promise<void> {
    this.#live.close();
    this.#forwarder.close();
    await this.#sweeps.stop();
    this.#sessions.close();
  }

  #countUntilEnd({ headers }: IncomingMessage, stream: ServerResponse | Duplex): void {
    const address = this.#clientHeader === undefined ? undefined : headers[this.#clientHeader];
    if (typeof address !== "string") return;
    finished(stream, this.#clients.admit(address));
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = "/", method = "GET" } = request;
    try {
      // TRACE would show a service's echo of the session's token.
      if (!METHODS.has(method)) throw createMethodError();
      const session = await this.#admit(method, readHeaders(request));
      const found = findTarget(this.#targets, url)!;
      checkRecentSignIn(method, found.path.split("?", 1)[0]!, session, this.#clock);
      await this.#forwarder.forward(request, response, found, session);
    } catch (error) {
      answerProblem(response, request, error);
    }
  }

  async #admit(method: string, headers: HeaderReader): Promise<Session> {
    checkPageRequest(method, headers, this.#rule);
    const token = this.#cookie.read(headers.get("cookie"));
    if (token === undefined) throw createConsoleError("no_session");
    // A live view alone does not keep a session.
    const isStream = !isRead(method, headers) && method === "GET";
    const id = nameSession(token);
    const session = await (isStream ? this.#sessions.find(id) : this.#sessions.use(id));
    if (session === undefined) throw createConsoleError("session_expired");
    return session;
  }

  // Sessions and origins belong to one name; the root and pages under another name of this machine lead to it.
  #redirect(request: IncomingMessage, response: ServerResponse): boolean {
    const { url = "/", method = "GET", headers } = request;
    const isPage =
      (method === "GET" || method === "HEAD") && (url === "/" || /^\/ui(?:[/?]|$)/.test(url));
    const isOwn = headers.host?.toLowerCase() === this.#url.host;
    if (isPage && (isOwn ? url === "/" : isLoopbackHost(headers.host ?? ""))) {
      const path = url === "/" ? "/ui/" : url;
      response.writeHead(302, {
        ...PLAIN_HEADERS,
        Location: `${this.#url.origin}${path}`,
        "Content-Length": "0",
      });
      response.end();
      return true;
    }
    // Probes come by address.
    if (url !== "/healthz" && url !== "/readyz") this.#checkHost(request);
    return false;
  }

  // A foreign name that resolves to this machine would make its pages same-origin.
  #checkHost({ headers: { host } }: IncomingMessage): void {
    if (host?.toLowerCase() === this.#url.host) return;
    throw new PlatformError(
      "misdirected_request",
      `The console is at ${this.#url.origin}; console_url changes its address.`,
    );
  }
}

function createMethodError(): PlatformError {
  return new PlatformError("method_not_allowed", "The console does not forward this method.", {
    headers: { Allow: [...METHODS].join(", ") },
  });
}

function listServices({ tokens, credentials }: Session, ids: readonly ServiceId[]): ServiceId[] {
  return ids.filter((id) => tokens !== undefined || credentials.has(id));
}

function readHeaders({ headers }: IncomingMessage): HeaderReader {
  return {
    get: (name) => {
      const value = headers[name.toLowerCase()];
      return Array.isArray(value) ? value.join(", ") : (value ?? null);
    },
    has: (name) => headers[name.toLowerCase()] !== undefined,
  };
}
