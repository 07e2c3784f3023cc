// Identifies callers by their credentials and checks their rights.
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import type { Exchange, Guard, GuardedRequest } from "@platform/kernel/http";
import {
  declareScopes,
  type Caller,
  type Claims,
  type ScopeCheck,
} from "@platform/kernel/identity";
import { PLATFORM_CLIENT_ID } from "../oauth/core/lifetimes.ts";
import type { OAuth } from "../oauth/oauth.ts";
import { hasPermission } from "../rbac/permission.ts";
import type { Rbac, Rights } from "../rbac/rights.ts";
import type { SessionInfo } from "../session/session.ts";
import type { Origin, Sessions } from "../session/sessions.ts";
import { isSessionToken } from "../session/token.ts";
import type { Account } from "../user/account.ts";
import type { Users } from "../user/users.ts";
import type { ClientAddress } from "../web/client-address.ts";
import { FRESH_MS, type SessionResolver } from "../web/session-resolver.ts";

const BEARER_PATTERN = /^bearer +([A-Za-z0-9._~+/=-]{1,16384}) *$/i;

/** An identified caller. */
export interface Principal {
  kind: "user" | "client";
  /** The id of the user or the client. */
  id: string;
  account: Account | undefined;
  session: SessionInfo | undefined;
  /** The caller's rights, limited to those that the credential conveys. */
  rights: Rights;
  /** The scope of an access token; `undefined` for sessions. */
  scope: readonly string[] | undefined;
  /** `undefined` for sessions. */
  clientId: string | undefined;
  /** Time of the authentication in ms; 0 if unknown. */
  authTime: number;
  /** Authentication level of the credential's sign-in. */
  acr: string;
  /** The session's new token if it was renewed; the caller must receive it. */
  renewedToken: string | undefined;
}

/** Options of `Identification`. */
export interface IdentificationOptions {
  publicUrl: string;
  users: Users;
  sessions: Sessions;
  resolver: SessionResolver;
  rbac: Rbac;
  oauth: OAuth;
  addresses: ClientAddress;
  /** True if the user has a second factor or a passkey. */
  hasFactor: (userId: string) => Promise<boolean>;
}

type IdentifiedCaller = Extract<Caller, { kind: "user" }> & { principal: Principal };
type AnyExchange = Exchange<unknown, unknown, unknown>;

/** Identifies callers. */
export class Identification {
  readonly #options: IdentificationOptions;

  constructor(options: IdentificationOptions) {
    this.#options = options;
  }

  /** The API's guard: 401 without valid credentials. */
  readonly guard: Guard = async (request) => {
    const principal = await this.identify(request);
    if (principal === undefined) {
      const hasTried = request.headers.has("authorization");
      throw createUnauthorizedError(
        hasTried ? "The token is not valid." : "A bearer token or a session is required.",
        hasTried ? 'Bearer error="invalid_token"' : "Bearer",
      );
    }
    return toCaller(principal);
  };

  /**
   * The caller; `undefined` without valid credentials. Cookies are accepted only from pages of the service's own
   * origin.
   */
  async identify(request: GuardedRequest): Promise<Principal | undefined> {
    const header = request.headers.get("authorization");
    if (header !== null) {
      const token = BEARER_PATTERN.exec(header)?.[1];
      if (token === undefined) return undefined;
      return isSessionToken(token) ? this.#bySession(token) : this.#byAccessToken(token);
    }
    const cookie = this.#options.resolver.readCookie(request.headers);
    if (cookie === undefined) return undefined;
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (!isRead && request.headers.get("origin") !== this.#options.publicUrl) {
      throw new PlatformError(
        "forbidden",
        "Requests with a cookie must come from the service's own origin.",
      );
    }
    return this.#bySession(cookie);
  }

  /** The permissions of a caller of `guard`. */
  listPermissions(caller: Caller): readonly string[] {
    return findPrincipal(caller)?.rights.permissions ?? [];
  }

  /** Removes a renewed token from a caller of `guard`; undefined if it has none. */
  takeRenewedToken(caller: Caller): { caller: Caller; token: string } | undefined {
    const principal = findPrincipal(caller);
    if (principal?.renewedToken === undefined) return undefined;
    const { renewedToken: token } = principal;
    return { caller: toCaller({ ...principal, renewedToken: undefined }), token };
  }

  /** The caller of a guarded route; returns a renewed token to them. */
  require(exchange: AnyExchange): Principal {
    const principal = findPrincipal(exchange.caller);
    if (principal === undefined) {
      throw createUnauthorizedError("A bearer token or a session is required.");
    }
    if (principal.renewedToken !== undefined) {
      exchange.answerHeaders.set("X-Session-Token", principal.renewedToken);
      this.setSessionCookie(exchange.answerHeaders, principal.renewedToken);
    }
    return principal;
  }

  /** The caller, who must be a user with a session or a token of the service's own sign-in. */
  requireUser(exchange: AnyExchange): Principal & { account: Account } {
    const principal = this.require(exchange);
    const isOwn = principal.clientId === undefined || principal.clientId === PLATFORM_CLIENT_ID;
    if (principal.account === undefined || !isOwn) {
      throw new PlatformError(
        "forbidden",
        "This requires a session or token of the service's own sign-in.",
      );
    }
    return principal as Principal & { account: Account };
  }

  /** As `requireUser`, with a sign-in within the last ten minutes (RFC 9470 section 3). */
  requireFreshUser(exchange: AnyExchange): Principal & { account: Account } {
    const principal = this.requireUser(exchange);
    if (!this.#options.resolver.isFresh(principal)) {
      throw createUnauthorizedError(
        "Sign in again: this requires a sign-in within the last ten minutes.",
        `Bearer error="insufficient_user_authentication", error_description="A more recent authentication is required", max_age="${FRESH_MS / 1000}"`,
      );
    }
    return principal;
  }

  /**
   * Throws 401 if the user has a second factor or a passkey and did not sign in with one (RFC 9470 section 3): a
   * password alone must not change factors.
   */
  async requireSecondFactor({ id, acr }: Principal): Promise<void> {
    if (acr === "2" || !(await this.#options.hasFactor(id))) return;
    throw createUnauthorizedError(
      "Sign in with your second factor or passkey: this changes what you sign in with.",
      'Bearer error="insufficient_user_authentication", error_description="A stronger authentication is required", acr_values="2"',
    );
  }

  /**
   * The caller of a public route that adds a factor: a fresh sign-in, with a factor if the user has one. An unattended
   * session is not enough.
   */
  async identifyStrong(exchange: AnyExchange): Promise<Principal & { account: Account }> {
    const caller = await this.guard(exchange);
    const principal = this.requireFreshUser({ ...exchange, caller });
    await this.requireSecondFactor(principal);
    return principal;
  }

  /**
   * Throws 403 unless the caller's current rights and credential include the permission: for operations that require it of
   * some callers only. All others declare it (`needPermission`).
   */
  requirePermission(principal: Principal, permission: string): void {
    if (!this.may(principal, permission)) throw createPermissionError(permission);
  }

  /** True if the caller's current rights and credential include the permission. */
  may(principal: Principal, permission: string): boolean {
    return hasPermission(principal.rights.permissions, permission);
  }

  /** The origin of a request. */
  readOrigin(exchange: Pick<GuardedRequest, "headers" | "peer">): Origin {
    return this.#options.addresses.readOrigin(exchange.peer, exchange.headers);
  }

  /** Sets the session cookie. */
  setSessionCookie(headers: Headers, token: string): void {
    headers.append("Set-Cookie", this.#options.resolver.formatCookie(token));
  }

  async #bySession(token: string): Promise<Principal | undefined> {
    const found = await this.#options.resolver.use(token);
    if (found === undefined) return undefined;
    const { account, session, renewedToken } = found;
    return {
      kind: "user",
      id: account.id,
      account,
      session,
      rights: await this.#options.rbac.findRights({ kind: "user", id: account.id }),
      scope: undefined,
      clientId: undefined,
      authTime: session.authTime,
      acr: session.acr,
      renewedToken,
    };
  }

  async #byAccessToken(token: string): Promise<Principal | undefined> {
    const claims = await this.#options.oauth.verifyAccessToken(token);
    if (claims?.sub === undefined) return undefined;
    const clientId = readText(claims, "client_id");
    const base = { scope: claims.scope, clientId, renewedToken: undefined };
    const { oauth, rbac } = this.#options;
    if (claims.sub === clientId) {
      const all = await rbac.findRights({ kind: "client", id: clientId });
      const rights = oauth.limitRights(claims, all);
      const none = { account: undefined, session: undefined, authTime: 0, acr: "" };
      return { ...base, ...none, kind: "client", id: clientId, rights };
    }
    const account = await this.#options.users.find(claims.sub);
    if (account === undefined || account.disabled) return undefined;
    const session =
      claims.sid === undefined ? undefined : await this.#options.sessions.find(claims.sid);
    if (claims.sid !== undefined && session?.userId !== account.id) return undefined;
    const authTime = claims.all["auth_time"];
    const all = await rbac.findRights({ kind: "user", id: account.id });
    return {
      ...base,
      kind: "user",
      id: account.id,
      account,
      session,
      rights: oauth.limitRights(claims, all),
      authTime: typeof authTime === "number" ? authTime * 1000 : 0,
      acr: readText(claims, "acr") ?? "",
    };
  }
}

/**
 * Access to operations that require a permission of the caller, limited to what their credential conveys, before the body is
 * read.
 */
export function needPermission(permission: string): ScopeCheck {
  return declareScopes((caller) => {
    const principal = findPrincipal(caller);
    if (principal === undefined || !hasPermission(principal.rights.permissions, permission))
      throw createPermissionError(permission);
  }, permission);
}

function createPermissionError(permission: string): PlatformError {
  return new PlatformError("forbidden", `The permission ${permission} is required.`, {
    headers: { "WWW-Authenticate": `Bearer error="insufficient_scope", scope="${permission}"` },
  });
}

/** The 401 for a credential without a live session. */
export function createNoSession(): PlatformError {
  return createUnauthorizedError("There is no session: sign in again.");
}

/** The caller's name in the audit log. */
export function nameActor(principal: Principal): string {
  return `${principal.kind}:${principal.id}`;
}

function readText(claims: Claims, name: string): string | undefined {
  const value = claims.all[name];
  return typeof value === "string" ? value : undefined;
}

function findPrincipal(caller: Caller): Principal | undefined {
  return caller.kind === "user" && "principal" in caller
    ? (caller as IdentifiedCaller).principal
    : undefined;
}

function toCaller(principal: Principal): IdentifiedCaller {
  const { rights, account } = principal;
  return {
    kind: "user",
    claims: {
      sub: principal.id,
      exp: 0,
      ...(principal.session === undefined ? {} : { sid: principal.session.id }),
      ...(account === undefined ? {} : { username: account.username }),
      scope: principal.scope ?? [],
      roles: rights.roles,
      all: {},
    },
    principal,
  };
}
