// The endpoints of the page: configuration, sign-in with own credentials, sign-out, session.
import { CONSOLE_LIVE_PATH } from "@platform/kernel/feeds";
import {
  defineRoute,
  defineUpgradeRoute,
  type ApiRoute,
  type GuardedRequest,
} from "@platform/kernel/http";
import { toPlatformError } from "@platform/kernel/errors";
import { z } from "zod";
import type {
  ConsoleConfig,
  ConsoleSession,
  LoginRequest,
  LogoutAnswer,
  ServiceId,
} from "../contract.ts";
import { createConsoleError } from "../errors.ts";
import { checkPageRequest, type OriginRule } from "../guard/origin.ts";
import { RECENT_MS } from "../guard/recent-sign-in.ts";
import type { SignInThrottle } from "../guard/throttle.ts";
import type { ConsoleCookie } from "../session/cookies.ts";
import type { Grant, Session } from "../session/session.ts";
import { AGE_MS, IDLE_MS, nameSession, type SessionStore } from "../session/session-store.ts";

/** Ids of services; must match the contract. */
const SERVICE_IDS = [
  "gate",
  "auth",
  "vault",
  "pulse",
  "notify",
  "tunnel",
  "runtime",
] as const satisfies readonly ServiceId[];
const TEXT = z.string().min(1).max(16_384);
const service = z.enum(SERVICE_IDS).optional();
const loginBody = z.union([
  z.strictObject({ service, token: TEXT }),
  z.strictObject({ service, access_key: TEXT, secret_key: TEXT }),
  z.strictObject({ service, username: TEXT, password: TEXT }),
]);
const signInMethod = z.enum(["oidc", "credentials", "loopback"]);
const configAnswer = z.object({
  mode: z.enum(["service", "platform"]),
  sign_in: z.array(signInMethod),
  services: z.array(
    z.object({
      id: z.enum(SERVICE_IDS),
      base: z.string(),
      version: z.string(),
      features: z.array(z.string()),
      credentials: z.enum(["token", "password", "keys"]).nullable(),
      is_up: z.boolean(),
    }),
  ),
});
const logoutAnswer = z.object({ end_session_url: z.string().nullable() });
const sessionAnswer = z.object({
  method: signInMethod,
  user: z.object({ id: z.string(), name: z.string() }),
  services: z.array(z.enum(SERVICE_IDS)),
  is_admin: z.boolean(),
  permissions: z.array(z.string()),
  roles: z.array(z.string()),
  signed_in_at: z.string(),
  idle_expires_at: z.string(),
  expires_at: z.string(),
  recent_until: z.string().nullable(),
});
const COOKIE_SECONDS = AGE_MS / 1_000;

/** Options of {@link createSessionRoutes}. */
export interface SessionRouteOptions {
  cookie: ConsoleCookie;
  sessions: SessionStore;
  throttle: SignInThrottle;
  rule: OriginRule;
  /** Field with the client's address, of a proxy that removes the one of clients; default: the peer's address. */
  clientHeader?: string | undefined;
  /** The configuration of the page. */
  describe: () => Promise<ConsoleConfig>;
  /** Checks credentials; throws 401 if they are wrong. `current` is the session that they are added to. */
  login: (
    body: LoginRequest,
    request: GuardedRequest,
    current: Session | undefined,
  ) => Promise<Grant>;
  /** Services that a session can call. */
  listServices: (session: Session) => ServiceId[];
  /** The session with the rights that its user has now. */
  refresh?: (session: Session) => Promise<Session>;
  /** The session of a program on this machine, if no credentials are configured. */
  findLoopback: (request: GuardedRequest) => ConsoleSession | undefined;
  /** Ends the session elsewhere; returns the address at which the browser ends it too. */
  endElsewhere: (session: Session) => Promise<string | null>;
}

export function createSessionRoutes(options: SessionRouteOptions): ApiRoute[] {
  const { cookie, sessions, throttle, rule } = options;
  const own = { tag: "Console", access: "public" } as const;
  const show = (session: Session): ConsoleSession => showSession(session, options.listServices);
  return [
    defineRoute({
      ...own,
      method: "GET",
      path: "/console/config",
      isRoutine: true,
      summary: "Services and ways to sign in of the web console",
      answer: configAnswer,
      handle: () => options.describe(),
    }),
    defineRoute({
      ...own,
      method: "POST",
      path: "/console/login",
      summary: "Begin a console session with a service's own credentials",
      body: loginBody,
      answer: sessionAnswer,
      problems: { 401: "The credentials are wrong", 429: "Too many failed attempts" },
      handle: async (exchange) => {
        checkSender(exchange, rule);
        const address = nameClient(exchange, options.clientHeader);
        const before = cookie.read(exchange.headers.get("cookie"));
        const current = before === undefined ? undefined : await sessions.use(nameSession(before));
        throttle.begin(address);
        const grant = await options
          .login(exchange.body as LoginRequest, exchange, current)
          .catch((error: unknown) => {
            if (toPlatformError(error).code !== "unauthorized") throttle.forgive(address);
            throw error;
          });
        throttle.succeed(address);
        // A token that was known before the sign-in is never valid after it.
        if (before !== undefined) await sessions.end(nameSession(before));
        const { token, session } = await sessions.begin(grant);
        exchange.answerHeaders.append("Set-Cookie", cookie.format(token, COOKIE_SECONDS));
        return show(session);
      },
    }),
    defineRoute({
      ...own,
      method: "POST",
      path: "/console/logout",
      summary: "End the console session",
      answer: logoutAnswer,
      handle: async (exchange): Promise<LogoutAnswer> => {
        checkSender(exchange, rule);
        const token = cookie.read(exchange.headers.get("cookie"));
        const session = token === undefined ? undefined : await sessions.end(nameSession(token));
        exchange.answerHeaders.append("Set-Cookie", cookie.clear());
        const url = session === undefined ? null : await options.endElsewhere(session);
        return { end_session_url: url };
      },
    }),
    defineRoute({
      ...own,
      method: "GET",
      path: "/console/session",
      isRoutine: true,
      summary: "The console session and its permissions",
      description:
        "Permissions are those of the last renewal of identity's token; with `fresh=true` they are asked for, at most every five seconds.",
      query: z.object({ fresh: z.stringbool().optional() }),
      answer: sessionAnswer,
      problems: { 401: "There is no session, or it has ended (`reason`)" },
      handle: async (exchange) => {
        checkPageRequest("GET", exchange.headers, rule);
        const token = cookie.read(exchange.headers.get("cookie"));
        const session = token === undefined ? undefined : await sessions.find(nameSession(token));
        if (session !== undefined) {
          const isFresh = exchange.query.fresh === true && options.refresh !== undefined;
          return show(isFresh ? await options.refresh!(session) : session);
        }
        const local = options.findLoopback(exchange);
        if (local !== undefined) return local;
        throw createConsoleError(token === undefined ? "no_session" : "session_expired");
      },
    }),
    defineUpgradeRoute({
      ...own,
      path: CONSOLE_LIVE_PATH,
      summary: "Live figures and conditions of the page's services: a WebSocket",
      description:
        "The messages of `/api/v1/admin/live`, with the service that each is of. Authenticated by the cookie of the session.",
    }),
  ];
}

function showSession(
  session: Session,
  listServices: (session: Session) => ServiceId[],
): ConsoleSession {
  const {
    method,
    user,
    isAdmin,
    permissions,
    roles,
    signedInMs,
    authenticatedMs,
    lastUsedMs,
    endsMs,
  } = session;
  return {
    method,
    user,
    services: listServices(session),
    is_admin: isAdmin,
    permissions: [...permissions],
    roles: [...roles],
    signed_in_at: formatTime(signedInMs),
    idle_expires_at: formatTime(Math.min(lastUsedMs + IDLE_MS, endsMs)),
    expires_at: formatTime(endsMs),
    recent_until: formatTime(authenticatedMs + RECENT_MS),
  };
}

// Programs send neither Origin nor Sec-Fetch-Site; browsers send one of them at least with every POST.
function checkSender({ method, headers }: GuardedRequest, of: OriginRule): void {
  if (!headers.has("origin") && !headers.has("sec-fetch-site")) return;
  checkPageRequest(method, headers, of);
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}

function nameClient({ headers, peer }: GuardedRequest, header: string | undefined): string {
  const named = header === undefined ? null : headers.get(header);
  return named ?? (peer.kind === "tcp" ? peer.address : peer.kind);
}
