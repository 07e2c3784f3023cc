// Authorization of internal routes: the operator, holders of `gate:admin` or `gate:read`, local programs if nobody authenticates.
import type { RequestHead } from "@platform/http1";
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import { checkLoopback, type LoopbackVerdict } from "@platform/kernel/http-parts";
import { createScopeError, includesScope } from "@platform/kernel/identity";
import type { InternalRouteAccess } from "../../shared-state/index.ts";
import { readBearerToken } from "./bearer-token.ts";
import type { GateCaller, TokenClaims } from "../../exchange/caller.ts";
import type { Identity } from "./identity.ts";

const ADMIN_SCOPE = "gate:admin";
const READ_SCOPE = "gate:read";

/**
 * Authorizes a request for an admin path, synchronously if the keys are known. Throws or rejects with 401 if there is no
 * valid token, with 403 if it lacks the scope `gate:admin`. The scope `gate:read` is
 * sufficient for GET and HEAD; its holders do not see secrets.
 */
export function admitAdmin(
  head: RequestHead,
  peer: string,
  identity: Identity,
): GateCaller | Promise<GateCaller> {
  if (identity.isOpen) {
    checkLocal(head, peer);
    return { kind: "local" };
  }
  const token = readBearerToken(head.fields);
  if (identity.isOperator(token)) return { kind: "operator" };
  if (token === "" || identity.verifyUser === undefined) {
    throw createUnauthorizedError(
      token === "" ? "Credentials are required." : "The token is not valid.",
      token === "" ? "Bearer" : 'Bearer error="invalid_token"',
    );
  }
  // Read now: the head is not kept while keys are fetched.
  const isReading = head.method === "GET" || head.method === "HEAD";
  const claims = identity.verifyUser(token);
  return claims instanceof Promise
    ? claims.then((later) => admitUser(later, isReading))
    : admitUser(claims, isReading);
}

function admitUser(claims: TokenClaims, isReading: boolean): GateCaller {
  if (includesScope(claims.scope, ADMIN_SCOPE)) return { kind: "user", claims };
  if (isReading && claims.scope.includes(READ_SCOPE)) {
    return { kind: "user", claims, isReader: true };
  }
  throw createScopeError(isReading ? READ_SCOPE : ADMIN_SCOPE);
}

/** True if a request for an internal route needs no credentials. */
export function isOpenTo(
  access: InternalRouteAccess,
  head: RequestHead,
  peer: string,
  identity: Identity,
): boolean {
  switch (access) {
    case "public":
    case "console":
      return true;
    case "probe":
    case "admin":
      return false;
    case "metrics":
      if (identity.isMetricsToken(readBearerToken(head.fields))) return true;
      return !identity.hasOperator && isLocalRequest(head, peer);
    case "document":
      return !identity.hasOperator && isLocalRequest(head, peer);
    case "local":
      return isLocalRequest(head, peer);
    default:
      return access satisfies never;
  }
}

/** True for a request of a program on this machine, or of a page that the gateway itself has served to it. */
export function isLocalRequest(head: RequestHead, peer: string): boolean {
  return judgeLocal(head, peer).allowed;
}

function checkLocal(head: RequestHead, peer: string): void {
  const verdict = judgeLocal(head, peer);
  if (verdict.allowed) return;
  throw new PlatformError(
    "forbidden",
    `Without auth_token the admin API is available only to programs on this machine: ${verdict.reason}.`,
  );
}

function judgeLocal({ fields }: RequestHead, peer: string): LoopbackVerdict {
  return checkLoopback({
    peer: { kind: "tcp", address: peer },
    // Upstreams may take `_` in a name for `-`, so that a proxy may have written either.
    getHeader: (name) => fields.find(name) ?? fields.find(name.replaceAll("-", "_")),
  });
}
