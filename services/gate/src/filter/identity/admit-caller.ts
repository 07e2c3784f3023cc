// Authenticates and authorizes the caller of a proxied route.
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import type { RequestHead } from "@platform/http1";
import { readBearerToken } from "./bearer-token.ts";
import type { GateCaller, TokenClaims } from "../../exchange/caller.ts";
import type { Identity, TokenVerifier } from "./identity.ts";

const ANONYMOUS: GateCaller = { kind: "anonymous" };
const OPERATOR: GateCaller = { kind: "operator" };

/** Admits any caller of a route with `auth: {type: "none"}`; recognizes the operator. */
export function admitAnyone(head: RequestHead, identity: Identity): GateCaller {
  return identity.isOperator(readBearerToken(head.fields)) ? OPERATOR : ANONYMOUS;
}

/**
 * Admits the operator and users to a route without `auth`; any caller if no authentication is configured. Throws or
 * rejects with 401.
 */
export function admitByGlobals(
  head: RequestHead,
  identity: Identity,
): GateCaller | Promise<GateCaller> {
  if (identity.isOpen) return ANONYMOUS;
  const token = readBearerToken(head.fields);
  if (identity.isOperator(token)) return OPERATOR;
  if (token === "") throw createUnauthorizedError("Credentials are required.");
  if (identity.verifyUser === undefined) {
    throw createUnauthorizedError("The token is not valid.", 'Bearer error="invalid_token"');
  }
  return admitUser(identity.verifyUser, token, undefined);
}

/** Admits users of the route's own issuer that have the required scope. Throws or rejects with 401 or 403. */
export function admitByRoute(
  head: RequestHead,
  scope: string | undefined,
  verify: TokenVerifier,
): GateCaller | Promise<GateCaller> {
  const token = readBearerToken(head.fields);
  if (token === "") throw createUnauthorizedError("Credentials are required.");
  return admitUser(verify, token, scope);
}

function admitUser(
  verify: TokenVerifier,
  token: string,
  scope: string | undefined,
): GateCaller | Promise<GateCaller> {
  const claims = verify(token);
  if (claims instanceof Promise) return claims.then((late) => checkScope(late, scope));
  return checkScope(claims, scope);
}

function checkScope(claims: TokenClaims, scope: string | undefined): GateCaller {
  if (scope === undefined || claims.scope.includes(scope)) return { kind: "user", claims };
  throw new PlatformError("forbidden", `The token lacks the scope ${scope}.`, {
    headers: { "WWW-Authenticate": `Bearer error="insufficient_scope", scope="${scope}"` },
  });
}
