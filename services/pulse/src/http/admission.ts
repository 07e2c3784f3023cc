// Access to the HTTP API: the tenant and the rights of a caller, and tokens outside of the Authorization header.
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import type { Guard, GuardedRequest, HeaderReader } from "@platform/kernel/http";
import { declareScopes, hasScope, type Caller, type ScopeCheck } from "@platform/kernel/identity";
import type { TopicRules } from "../access/topic-rules.ts";
import { isTenant, TENANT_FORM, type Tenant } from "../topic/name.ts";
import {
  ADMIN_SCOPE,
  ALL_RIGHTS,
  coversAny,
  hasAnyRight,
  RIGHTS,
  scopeOf,
  type Right,
  type Rights,
} from "../topic/rights.ts";

/** Cookie that may contain a browser's token. */
const TOKEN_COOKIE = "platform_token";

/** Query parameter with which the operator chooses a tenant. */
const TENANT_PARAMETER = "tenant";
/** Its value for the topics of all tenants. */
const ALL_TENANTS = "*";

/**
 * Wraps a guard: the operator, and users with the scope `pulse:admin`, act for the tenant of the query
 * parameter `tenant`. Other users get 403 if it is not their own.
 */
export function createTenantGuard(guard: Guard): Guard {
  return (request) => {
    const caller = guard(request);
    const { search = "" } = request;
    const tenant = search === "" ? null : new URLSearchParams(search).get(TENANT_PARAMETER);
    return caller instanceof Promise
      ? caller.then((late) => chooseTenant(late, tenant))
      : chooseTenant(caller, tenant);
  };
}

/** The tenant that an administrator has chosen, or `*`: administrators are users that act as the operator. */
const administered = new WeakMap<Caller, string>();

function chooseTenant(caller: Caller, tenant: string | null): Caller {
  if (caller.kind === "operator") return tenant === null ? caller : { kind: "operator", tenant };
  if (caller.kind === "user" && hasScope(caller, ADMIN_SCOPE)) {
    // A caller of its own: the same token may be used for another tenant at the same time.
    const own: Caller = { ...caller };
    administered.set(own, checkTenant(tenant ?? caller.claims.tenant ?? ""));
    return own;
  }
  if (tenant === null) return caller;
  if (caller.kind === "user" && caller.claims.tenant === tenant) return caller;
  throw new PlatformError("forbidden", "Only the operator may choose another tenant.");
}

function checkTenant(tenant: string): string {
  if (tenant === "" || tenant === ALL_TENANTS || isTenant(tenant)) return tenant;
  throw new PlatformError("validation_failed", `tenant is not valid: ${TENANT_FORM}.`);
}

/** True if the operator, or an administrator, has chosen all tenants. */
export function isForAllTenants(caller: Caller): boolean {
  if (caller.kind === "operator") return caller.tenant === ALL_TENANTS;
  return administered.get(caller) === ALL_TENANTS;
}

/**
 * The tenant of a caller: the chosen one or "" for the operator, the claim `tenant` for a user. Administrators choose one,
 * or have that of their claim. Other users without the claim get 403.
 */
export function tenantOf(caller: Caller): Tenant {
  switch (caller.kind) {
    case "operator":
      return requireOneTenant(caller.tenant ?? "");
    case "user": {
      const chosen = administered.get(caller);
      if (chosen !== undefined) return requireOneTenant(chosen);
      const { tenant } = caller.claims;
      if (tenant === undefined)
        throw new PlatformError("forbidden", "The token has no tenant claim.");
      if (isTenant(tenant)) return tenant;
      throw new PlatformError("forbidden", `The token's tenant is not valid: ${TENANT_FORM}.`);
    }
    case "anonymous":
      throw new PlatformError("unauthorized", "Credentials are required.");
    default:
      return caller satisfies never;
  }
}

function requireOneTenant(tenant: string): Tenant {
  if (tenant === "" || isTenant(tenant)) return tenant;
  throw new PlatformError("validation_failed", `tenant is not valid: ${TENANT_FORM}.`);
}

/** Checks the rights of callers for topics. */
export class Admission {
  readonly #rules: Pick<TopicRules, "rightsOf">;

  constructor(rules: Pick<TopicRules, "rightsOf">) {
    this.#rules = rules;
  }

  /** Access to operations that require a right for the topics that they name; see `allow`. */
  readonly publishers = this.#declare("publish");
  readonly subscribers = this.#declare("subscribe");
  readonly managers = this.#declare("manage");

  /** Access to operations that show names and counts but no messages. */
  readonly anyRight = declareScopes(
    (caller) => {
      if (!hasAnyRight(this.rightsOf(caller))) throw createScopeError("subscribe");
    },
    ...RIGHTS.map(scopeOf),
    ADMIN_SCOPE,
  );

  /** The rights of a caller. */
  rightsOf(caller: Caller): Rights {
    switch (caller.kind) {
      case "operator":
        return ALL_RIGHTS;
      case "user":
        return administered.has(caller) ? ALL_RIGHTS : this.#rules.rightsOf(caller.claims);
      case "anonymous":
        throw createUnauthorizedError("Credentials are required.");
      default:
        return caller satisfies never;
    }
  }

  #declare(right: Right): ScopeCheck {
    const check = (caller: Caller): void => this.requireRight(caller, right);
    return declareScopes(check, scopeOf(right), ADMIN_SCOPE);
  }

  /** Throws 403 unless the caller has the right for at least one topic. */
  requireRight(caller: Caller, right: Right): void {
    if (!this.rightsOf(caller).has(right)) throw createScopeError(right);
  }

  /**
   * Returns the name of a topic; throws 403 unless the caller has the right for it, or with `any` one of the rights. Callers
   * without a right do not learn whether the topic exists.
   */
  allow(caller: Caller, right: Right | "any", topic: string): string {
    const rights = this.rightsOf(caller);
    const isAllowed = right === "any" ? coversAny(rights, topic) : rights.covers(right, topic);
    if (isAllowed) return topic;
    throw new PlatformError(
      "forbidden",
      `Neither the scopes nor the roles of the token allow this for the topic ${topic}.`,
    );
  }
}

function createScopeError(right: Right): PlatformError {
  const scope = scopeOf(right);
  return new PlatformError(
    "forbidden",
    `The token lacks the scope ${scope}, and a role with a topic rule.`,
    { headers: { "WWW-Authenticate": `Bearer error="insufficient_scope", scope="${scope}"` } },
  );
}

/** True for the operator and administrators. */
export function isOperator(caller: Caller): boolean {
  return caller.kind === "operator" || administered.has(caller);
}

/** Allows only the operator and administrators. */
export const requireOperator = declareScopes((caller) => {
  if (!isOperator(caller)) throw new PlatformError("forbidden", "Only the operator may do this.");
}, ADMIN_SCOPE);

/**
 * Authenticates a subscriber. EventSource and WebSocket in browsers cannot set headers, so a token may also be the query
 * parameter `access_token` or the cookie `platform_token`; the cookie counts only for pages of `origins`.
 */
export async function admitSubscriber(
  guard: Guard,
  request: GuardedRequest,
  search: URLSearchParams,
  origins: readonly string[],
): Promise<Caller> {
  const { headers } = request;
  if (headers.has("authorization")) return guard(request);
  const token = search.get("access_token") ?? readCookie(headers, origins);
  if (token === undefined || token === "") return guard(request);
  const authorization = `Bearer ${token.replaceAll(/[^\w.~+/=-]/g, "")}`;
  const admitted: HeaderReader = {
    get: (name) => (name === "authorization" ? authorization : headers.get(name)),
    has: (name) => name === "authorization" || headers.has(name),
  };
  return guard({ ...request, headers: admitted });
}

// Any page could make a browser open a socket with our cookie (WebSockets have no same-origin policy).
function readCookie(headers: HeaderReader, origins: readonly string[]): string | undefined {
  const origin = headers.get("origin");
  const host = headers.get("host") ?? "";
  const isOwn = origin === null || URL.parse(origin)?.host === host || origins.includes(origin);
  if (!isOwn) return undefined;
  for (const part of (headers.get("cookie") ?? "").split(";")) {
    const [name, value] = part.trim().split("=", 2);
    if (name === TOKEN_COOKIE) return value;
  }
  return undefined;
}
