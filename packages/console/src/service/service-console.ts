// The console of one service: its page, its sessions, and a guard that accepts them beside the service's own credentials.
import { toPlatformError } from "@platform/kernel/errors";
import {
  checkLoopback,
  type ApiRoute,
  type Guard,
  type GuardedRequest,
  type HeaderReader,
} from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import type { Clock } from "@platform/kernel/time";
import type {
  ConsoleConfig,
  ConsoleSession,
  CredentialForm,
  LoginRequest,
  ServiceId,
} from "../contract.ts";
import { createConsoleError } from "../errors.ts";
import { checkPageRequest, type OriginRule } from "../guard/origin.ts";
import { checkRecentSignIn } from "../guard/recent-sign-in.ts";
import { SignInThrottle } from "../guard/throttle.ts";
import { Bundle } from "../page/bundle.ts";
import { createPageRoutes } from "../page/page-routes.ts";
import { createSessionRoutes } from "../routes/session-routes.ts";
import { ConsoleCookie } from "../session/cookies.ts";
import { describeCaller, type Credential, type Grant } from "../session/session.ts";
import { MemorySessions } from "../session/memory-sessions.ts";
import { AGE_MS, IDLE_MS, nameSession } from "../session/session-store.ts";

/** Checks credentials that are not bearer tokens; throws 401 if they are wrong. */
type CredentialCheck = (
  login: Exclude<LoginRequest, { token: string }>,
  request: GuardedRequest,
) => Promise<CheckedCredential>;

export interface CheckedCredential {
  caller: Caller;
  credential: Credential;
  /** Default: the user of `caller`. */
  user?: { id: string; name: string };
  /** Default: the scopes of `caller`. */
  permissions?: readonly string[];
}

/** Options of {@link ServiceConsole}. */
export interface ServiceConsoleOptions {
  id: ServiceId;
  version: string;
  /** Parts of the API that the page shows; others are hidden. */
  features: readonly string[];
  /** Form of the service's own credentials; undefined if none are configured, so that only this machine has access. */
  credentials: CredentialForm | undefined;
  /** Checks credentials of the forms `password` and `keys`. */
  check?: CredentialCheck;
  /** The service's guard; a session's credentials are checked by it with each request. */
  guard: Guard;
  /**
   * Called with the caller of each request of a session. Returns a token that replaces the session's, if the service has
   * renewed it, and the caller without it.
   */
  renew?: (caller: Caller) => { caller: Caller; token: string } | undefined;
  /** Ends what a credential stands for when its session is signed out. */
  end?: (credential: Credential) => Promise<void>;
  /** Public address of the listener, if it has one. */
  publicUrl?: string | undefined;
  /** True if the listener uses TLS. */
  isTls?: boolean;
  clock: Clock;
  /** Folder of the page's files. */
  pageFolder?: string;
}

/** The console of a service. Its routes belong to the service's API, and `guard` replaces the service's guard. */
export class ServiceConsole {
  readonly #options: ServiceConsoleOptions;
  readonly #rule: OriginRule;
  readonly #cookie: ConsoleCookie;
  readonly #sessions: MemorySessions;

  constructor(options: ServiceConsoleOptions) {
    const { id, publicUrl, isTls = false, clock } = options;
    this.#options = options;
    const origin = publicUrl === undefined ? undefined : new URL(publicUrl).origin;
    this.#rule = { origin, isTls };
    this.#cookie = new ConsoleCookie(`platform_${id}_console`, {
      isSecure: origin?.startsWith("https:") ?? isTls,
      sameSite: "Strict",
    });
    this.#sessions = new MemorySessions(clock);
  }

  /** Accepts the service's own credentials, and the cookie of a session from the console's page. */
  readonly guard: Guard = (request) => {
    const { guard } = this.#options;
    if (request.headers.has("authorization")) return guard(request);
    const token = this.#cookie.read(request.headers.get("cookie"));
    return token === undefined ? guard(request) : this.#admit(token, request);
  };

  /** The page and its endpoints. */
  createRoutes(): ApiRoute[] {
    const { clock, pageFolder, id } = this.#options;
    return [
      ...createSessionRoutes({
        cookie: this.#cookie,
        sessions: this.#sessions,
        throttle: new SignInThrottle(clock),
        rule: this.#rule,
        describe: () => Promise.resolve(this.#describe()),
        login: (body, request) => this.#login(body, request),
        listServices: () => [id],
        findLoopback: (request) => this.#findLoopback(request),
        endElsewhere: async (session) => {
          const credential = session.credentials.get(id);
          if (credential !== undefined) await this.#options.end?.(credential);
          return null;
        },
      }),
      ...createPageRoutes(new Bundle(clock, pageFolder)),
    ];
  }

  async #admit(token: string, request: GuardedRequest): Promise<Caller> {
    const { clock, credentials, guard, id, renew } = this.#options;
    const { method, headers, path } = request;
    // A live stream alone does not keep a session.
    const isStream = headers.has("upgrade");
    const sessionId = nameSession(token);
    const session = await (isStream
      ? this.#sessions.find(sessionId)
      : this.#sessions.use(sessionId));
    if (session === undefined) {
      if (credentials === undefined) return guard(request);
      throw createConsoleError("session_expired");
    }
    checkPageRequest(method, headers, this.#rule);
    checkRecentSignIn(method, path, session, clock);
    const credential = session.credentials.get(id);
    if (credential?.kind === "caller") return credential.caller;
    if (credential?.kind !== "bearer") throw createConsoleError("session_expired");
    const caller = await this.#askGuard(sessionId, credential.token, request);
    const renewed = renew?.(caller);
    if (renewed === undefined) return caller;
    const renewal = [id, { kind: "bearer", token: renewed.token }] as const;
    await this.#sessions.update(sessionId, ({ credentials: held }) => ({
      credentials: new Map([...held, renewal]),
    }));
    return renewed.caller;
  }

  // The token was revoked or has expired: the session has nothing left to act with.
  async #askGuard(sessionId: string, bearer: string, request: GuardedRequest): Promise<Caller> {
    try {
      return await this.#options.guard({ ...request, headers: addBearer(request.headers, bearer) });
    } catch (error) {
      if (toPlatformError(error).code !== "unauthorized") throw error;
      await this.#sessions.end(sessionId);
      throw createConsoleError("session_expired", { cause: error });
    }
  }

  #describe(): ConsoleConfig {
    const { id, version, features, credentials } = this.#options;
    return {
      mode: "service",
      sign_in: [credentials === undefined ? "loopback" : "credentials"],
      services: [
        {
          id,
          base: "",
          version,
          features: [...features],
          credentials: credentials ?? null,
          is_up: true,
        },
      ],
    };
  }

  async #login(body: LoginRequest, request: GuardedRequest): Promise<Grant> {
    const { caller, credential, ...more } = await this.#check(body, request);
    return {
      method: "credentials",
      ...describeCaller(caller),
      ...more,
      credentials: new Map([[this.#options.id, credential]]),
    };
  }

  async #check(body: LoginRequest, request: GuardedRequest): Promise<CheckedCredential> {
    const { guard, check, credentials } = this.#options;
    if (credentials === undefined) throw wrongCredentials();
    if (!("token" in body)) {
      if (check === undefined) throw wrongCredentials();
      return check(body, request);
    }
    const { token } = body;
    try {
      const caller = await guard({ ...request, headers: addBearer(request.headers, token) });
      return { caller, credential: { kind: "bearer", token } };
    } catch (error) {
      throw toPlatformError(error).code === "unauthorized" ? wrongCredentials(error) : error;
    }
  }

  #findLoopback(request: GuardedRequest): ConsoleSession | undefined {
    const { credentials, id, clock } = this.#options;
    if (credentials !== undefined) return undefined;
    const getHeader = (name: string): string | null => request.headers.get(name);
    if (!checkLoopback({ peer: request.peer, getHeader }).allowed) return undefined;
    const now = clock.now();
    return {
      method: "loopback",
      user: { id: "operator", name: "operator" },
      services: [id],
      is_admin: true,
      permissions: [],
      roles: [],
      signed_in_at: new Date(now).toISOString(),
      idle_expires_at: new Date(now + IDLE_MS).toISOString(),
      expires_at: new Date(now + AGE_MS).toISOString(),
      recent_until: null,
    };
  }
}

function wrongCredentials(cause?: unknown) {
  return createConsoleError("no_session", { detail: "The credentials are wrong.", cause });
}

/** The headers of a request with a bearer token, without cookies. */
function addBearer(headers: HeaderReader, token: string): HeaderReader {
  const authorization = `Bearer ${token}`;
  return {
    get: (name) => {
      const lower = name.toLowerCase();
      if (lower === "cookie") return null;
      return lower === "authorization" ? authorization : headers.get(name);
    },
    has: (name) => {
      const lower = name.toLowerCase();
      return lower === "authorization" || (lower !== "cookie" && headers.has(name));
    },
  };
}
