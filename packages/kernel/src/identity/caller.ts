// Callers: the operator, a user with claims, or anonymous.
import { createUnauthorizedError, PlatformError } from "../errors/index.ts";

/** Typed claims of an access token; claims that the token lacks are absent. */
export interface Claims {
  readonly iss?: string;
  readonly sub?: string;
  readonly aud?: readonly string[];
  /** In seconds since 1970, like `iat` and `nbf`. */
  readonly exp: number;
  readonly iat?: number;
  readonly nbf?: number;
  readonly jti?: string;
  readonly sid?: string;
  readonly username?: string;
  /** The space-separated values of `scope`. */
  readonly scope: readonly string[];
  readonly roles: readonly string[];
  readonly tenant?: string;
  readonly policy_version?: number;
  /** Key id of the token's header. */
  readonly kid?: string;
  /** All claims, including unnamed ones. */
  readonly all: Readonly<Record<string, unknown>>;
}

/** The end of a token's session in seconds since 1970; undefined if the token does not name it. */
export function findSessionEnd(claims: Partial<Pick<Claims, "sid" | "all">>): number | undefined {
  const end = claims.all?.["session_exp"];
  return claims.sid !== undefined && typeof end === "number" ? end : undefined;
}

/**
 * A caller: the holder of the operator token, the subject of a JWT, or anonymous. `tenant` is the tenant that an operator
 * has chosen for a request.
 */
export type Caller =
  | { readonly kind: "operator"; readonly tenant?: string }
  | { readonly kind: "user"; readonly claims: Claims }
  | { readonly kind: "anonymous" };

/** Required scope or role; either is sufficient. The operator has all. */
export interface Requirement {
  scope?: string;
  role?: string;
}

/** True if the caller has the scope or the role. */
export function hasAccess(caller: Caller, need: Requirement): boolean {
  switch (caller.kind) {
    case "operator":
      return true;
    case "anonymous":
      return false;
    case "user":
      return (
        (need.scope !== undefined && caller.claims.scope.includes(need.scope)) ||
        (need.role !== undefined && caller.claims.roles.includes(need.role))
      );
    default:
      return caller satisfies never;
  }
}

/** Throws 401 for anonymous callers and 403 for users who lack both the scope and the role (RFC 6750 section 3.1). */
function requireAccess(caller: Caller, need: Requirement): void {
  if (hasAccess(caller, need)) return;
  if (caller.kind === "anonymous") throw createUnauthorizedError("Credentials are required.");
  const challenge = `Bearer error="insufficient_scope"${need.scope === undefined ? "" : `, scope="${need.scope}"`}`;
  const missing = need.scope === undefined ? `role ${need.role}` : `scope ${need.scope}`;
  throw new PlatformError("forbidden", `The ${missing} is required.`, {
    headers: { "WWW-Authenticate": challenge },
  });
}

/** Throws unless the caller's token has the scope; see `requireAccess`. */
export function requireScope(caller: Caller, scope: string): void {
  requireAccess(caller, { scope });
}

/** Throws unless the caller has the role; see `requireAccess`. */
export function requireRole(caller: Caller, role: string): void {
  requireAccess(caller, { role });
}
