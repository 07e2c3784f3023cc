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

/** The scope of administrators, which includes every other scope. */
export const EVERY_SCOPE = "*:*";

/**
 * True if the caller has at least one of the scopes. The operator has every scope, and so do holders of `*:*`. Roles of a
 * token are no rights.
 */
export function hasScope(caller: Caller, ...scopes: readonly string[]): boolean {
  switch (caller.kind) {
    case "operator":
      return true;
    case "anonymous":
      return false;
    case "user":
      return includesScope(caller.claims.scope, ...scopes);
    default:
      return caller satisfies never;
  }
}

/** True if a token with the `granted` scopes may do what requires one of `scopes`. */
export function includesScope(granted: readonly string[], ...scopes: readonly string[]): boolean {
  return granted.includes(EVERY_SCOPE) || scopes.some((scope) => granted.includes(scope));
}

/**
 * Throws 401 for anonymous callers and 403 for users who have none of the scopes (RFC 6750 section 3.1). The error names
 * the first scope, which should be the smallest that is sufficient.
 */
export function requireScope(caller: Caller, scope: string, ...others: readonly string[]): void {
  if (hasScope(caller, scope, ...others)) return;
  if (caller.kind === "anonymous") throw createUnauthorizedError("Credentials are required.");
  throw createScopeError(scope);
}

/** A check of callers with the scopes of which it requires one. */
export interface ScopeCheck {
  (caller: Caller): void;
  readonly requires: readonly string[];
}

/** Creates the check of {@link requireScope} for operations, whose documentation names the scopes. */
export function needScope(scope: string, ...others: readonly string[]): ScopeCheck {
  const check = (caller: Caller): void => requireScope(caller, scope, ...others);
  return declareScopes(check, scope, ...others);
}

/** Declares the scopes of which a check requires one. */
export function declareScopes(
  check: (caller: Caller) => void,
  ...requires: readonly string[]
): ScopeCheck {
  return Object.assign((caller: Caller): void => check(caller), { requires });
}

/** The 403 for a token that lacks a scope; its challenge names the scope (RFC 6750 section 3.1). */
export function createScopeError(scope: string): PlatformError {
  return new PlatformError("forbidden", `The scope ${scope} is required.`, {
    headers: { "WWW-Authenticate": `Bearer error="insufficient_scope", scope="${scope}"` },
  });
}
