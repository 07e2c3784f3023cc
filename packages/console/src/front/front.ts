// The console of the whole platform on a listener of its own: page, sessions, and the way to each service.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import { CONSOLE_LIVE_PATH, refuseUpgrade } from "@platform/kernel/feeds";
import { HealthRegistry } from "@platform/kernel/health";
import { createApi, isLoopbackHost, listenHttp, type HeaderReader } from "@platform/kernel/http";
import type { Logger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { every, type Clock } from "@platform/kernel/time";
import type { Tracer } from "@platform/kernel/trace";
import type { ConsoleConfig, ServiceId } from "../contract.ts";
import { createConsoleError } from "../guard/errors.ts";
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
import { Sessions } from "../session/sessions.ts";
import { SessionCredentials } from "./credentials.ts";
import { ServiceDirectory, type ServiceDirectoryOptions } from "./directory.ts";
import { answerProblem, Forwarder } from "./forwarder.ts";
import { LiveHub } from "./live-hub.ts";
import { findTarget, type Target } from "./target.ts";

const SWEEP_MS = 30_000;
/** Uploads of objects pass here; slower bodies than the listener's pace end earlier. */
const UPLOAD_TIMEOUT_MS = 3_600_000;
const CONNECTIONS_MAX = 1_024;
const CALLBACK_PATH = "/console/oidc/callback";

/** Options of {@link startFront}. */
export interface FrontOptions {
  address: { host: string; port: number };
  /** Address at which browsers open it; default `http://localhost:<port>`. */
  url?: string | undefined;
  targets: readonly Target[];
  /** Descriptions of services that have no console of their own. */
  known: ServiceDirectoryOptions["known"];
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
  readonly port: number;
  close(drainMs: number): Promise<void>;
}

/** Starts the front. Rejects with the system's error if it cannot listen. */
export async function startFront(options: FrontOptions): Promise<Front> {
  const ready: { parts?: FrontParts } = {};
  const listener = await listenHttp({
    address: options.address,
    fetch: (request, bindings) => ready.parts!.api.fetch(request, bindings),
    intercept: (request, response) => ready.parts!.intercept(request, response),
    onUpgrade: (request, socket, head) => ready.parts!.upgrade(request, socket, head),
    connectionsMax: CONNECTIONS_MAX,
    requestTimeoutMs: UPLOAD_TIMEOUT_MS,
  });
  const port = listener.port ?? options.address.port;
  const url = new URL(options.url ?? `http://localhost:${port}`).origin;
  const running = new FrontParts(options, url);
  ready.parts = running;
  return {
    url,
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
  readonly #sessions: Sessions;
  readonly #targets: ReadonlyMap<string, Target>;
  readonly #forwarder: Forwarder;
  readonly #live: LiveHub;
  readonly #sweeps: ReturnType<typeof every>;

  constructor(options: FrontOptions, url: string) {
    const { targets, known, identity, version, logger, tracer, clock } = options;
    this.#url = new URL(url);
    const isSecure = this.#url.protocol === "https:";
    this.#rule = { origin: url, isTls: isSecure };
    this.#clock = clock;
    this.#cookie = new ConsoleCookie("platform_console", { isSecure, sameSite: "Strict" });
    this.#sessions = new Sessions(clock);
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
          describe: async (): Promise<ConsoleConfig> => ({
            mode: "platform",
            sign_in: client === undefined ? ["credentials"] : ["oidc", "credentials"],
            services: await directory.list(),
          }),
          login: (body, _request, current) => directory.login(body, current),
          listServices: (session) => listServices(session, ids),
          findLoopback: () => undefined,
          endElsewhere: async ({ tokens }) =>
            tokens === undefined || client === undefined
              ? null
              : client.end(tokens, `${url}/ui/sign-in`).catch(() => null),
        }),
        ...(client === undefined ? [] : createOidcRoutes({ ...shared, client, cookie, isSecure })),
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
    const { url = "/", method = "GET" } = request;
    try {
      if (this.#redirect(request, response)) return true;
      if (url !== "/svc" && !url.startsWith("/svc/")) return false;
      const headers = readHeaders(request);
      const session = this.#admit(method, headers);
      const found = findTarget(this.#targets, url)!;
      checkRecentSignIn(method, found.path.split("?", 1)[0]!, session, this.#clock);
      void this.#forwarder.forward(request, response, found, session);
    } catch (error) {
      answerProblem(response, request, error);
    }
    return true;
  }

  /** Handles WebSockets: the live feed, and those of services. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    try {
      this.#checkHost(request);
      const session = this.#admit(request.method ?? "GET", readHeaders(request));
      const { url = "/" } = request;
      if (url.split("?", 1)[0] === CONSOLE_LIVE_PATH) {
        this.#live.accept(request, socket, head, session);
        return;
      }
      const found = findTarget(this.#targets, url);
      if (found === undefined) throw new PlatformError("not_found", "There is no WebSocket here.");
      void this.#forwarder.upgrade(request, socket, head, found, session);
    } catch (error) {
      refuseUpgrade(socket, request, error);
    }
  }

  async close(): Promise<void> {
    this.#live.close();
    this.#forwarder.close();
    await this.#sweeps.stop();
  }

  #admit(method: string, headers: HeaderReader): Session {
    checkPageRequest(method, headers, this.#rule);
    const token = this.#cookie.read(headers.get("cookie"));
    if (token === undefined) throw createConsoleError("no_session");
    // A live view alone does not keep a session.
    const isStream = !isRead(method, headers) && method === "GET";
    const session = isStream ? this.#sessions.peek(token) : this.#sessions.use(token);
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
      response.writeHead(302, { Location: `${this.#url.origin}${path}`, "Content-Length": "0" });
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
