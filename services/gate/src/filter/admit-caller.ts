// The identity step of a proxied route: who is calling, and whether this route is for them.
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import type { RequestHead } from "@platform/http1";
import { readBearerToken } from "./bearer-token.ts";
import type { BearerAuth, Identity, TokenClaims, TokenVerifier } from "./identity.ts";

/** Who got through. */
export type RouteCaller =
  | { kind: "anonymous" }
  | { kind: "operator" }
  | { kind: "user"; claims: TokenClaims };

const ANONYMOUS: RouteCaller = { kind: "anonymous" };
const OPERATOR: RouteCaller = { kind: "operator" };

/** A route with `auth: {type: "none"}`: anyone; the operator is still known. */
export function admitAnyone(head: RequestHead, identity: Identity): RouteCaller {
  return identity.isOperator(readBearerToken(head.fields)) ? OPERATOR : ANONYMOUS;
}

/** A route without `auth`: anyone where nothing is configured, else the operator or a user. Throws or rejects with 401. */
export function admitByGlobals(
  head: RequestHead,
  identity: Identity,
): RouteCaller | Promise<RouteCaller> {
  if (identity.isOpen) return ANONYMOUS;
  const token = readBearerToken(head.fields);
  if (identity.isOperator(token)) return OPERATOR;
  if (token === "") throw createUnauthorizedError("Credentials are required.");
  if (identity.verifyUser === undefined) {
    throw createUnauthorizedError("The token is not valid.", 'Bearer error="invalid_token"');
  }
  return admitUser(identity.verifyUser, token, undefined);
}

/** A route with its own `auth`: users of that issuer alone, with the scope it requires (403 without). */
export function admitByRoute(
  head: RequestHead,
  auth: BearerAuth,
  verify: TokenVerifier,
): RouteCaller | Promise<RouteCaller> {
  const token = readBearerToken(head.fields);
  if (token === "") throw createUnauthorizedError("Credentials are required.");
  return admitUser(verify, token, auth.requiredScope);
}

function admitUser(
  verify: TokenVerifier,
  token: string,
  scope: string | undefined,
): RouteCaller | Promise<RouteCaller> {
  const claims = verify(token);
  if (claims instanceof Promise) return claims.then((late) => checkScope(late, scope));
  return checkScope(claims, scope);
}

function checkScope(claims: TokenClaims, scope: string | undefined): RouteCaller {
  if (scope === undefined || claims.scope.includes(scope)) return { kind: "user", claims };
  throw new PlatformError("forbidden", `The token lacks the scope ${scope}.`, {
    headers: { "WWW-Authenticate": `Bearer error="insufficient_scope", scope="${scope}"` },
  });
}
