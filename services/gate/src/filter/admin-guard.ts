// Authorization of internal routes: the operator, holders of the scopes `gate:admin` and `gate:read`, or local programs without any authentication.
import { Known, readHostName, type RequestHead } from "@platform/http1";
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import { createScopeError, includesScope } from "@platform/kernel/identity";
import { isLoopback } from "@platform/kernel/network";
import type { InternalRouteAccess } from "../shared-state/index.ts";
import { readBearerToken } from "./bearer-token.ts";
import type { GateCaller, TokenClaims } from "../exchange/caller.ts";
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
      return identity.isMetricsToken(readBearerToken(head.fields)) || isLocalRequest(head, peer);
    case "local":
      return isLocalRequest(head, peer);
    default:
      return access satisfies never;
  }
}

/** True for a request of a program on this machine, or of a page that the gateway itself has served to it. */
export function isLocalRequest(head: RequestHead, peer: string): boolean {
  return findForeignTrait(head, peer) === undefined;
}

function checkLocal(head: RequestHead, peer: string): void {
  const reason = findForeignTrait(head, peer);
  if (reason !== undefined) throw new PlatformError("forbidden", reason);
}

// Keeps out requests through a local proxy and web pages in a local browser.
function findForeignTrait(head: RequestHead, peer: string): string | undefined {
  const { fields } = head;
  const host = fields.get(Known.Host) ?? "";
  if (!isLoopback(peer))
    return "Without auth_token the admin API is available only on this machine.";
  if (!isLoopbackName(readHostName(host)))
    return "Without auth_token the admin API requires a loopback Host.";
  for (let line = 0; line < fields.count; line++) {
    if (FORWARDED_BY.includes(fields.knownAt(line)))
      return "Without auth_token the admin API is not available through a proxy.";
  }
  const site = fields.get(Known.SecFetchSite) ?? "none";
  const origin = fields.get(Known.Origin);
  const isOwn = origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
  if (!isOwn || (site !== "none" && site !== "same-origin"))
    return "The admin API is not available to pages of another origin.";
  return undefined;
}

const FORWARDED_BY: readonly number[] = [
  Known.Forwarded,
  Known.Via,
  Known.XForwardedFor,
  Known.XForwardedHost,
  Known.XForwardedPort,
  Known.XForwardedPrefix,
  Known.XForwardedProto,
  Known.XRealIp,
];

function isLoopbackName(host: string): boolean {
  if (host === "localhost" || host.endsWith(".localhost")) return true;
  return isLoopback(host.startsWith("[") ? host.slice(1, -1) : host);
}
