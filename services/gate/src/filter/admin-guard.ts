// Who may use the gateway's own API: the operator, an administrator, or the machine itself while nothing is configured.
import { Known, type RequestHead } from "@platform/http1";
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import { isLoopback } from "@platform/kernel/network";
import { readHostName } from "../client/host-name.ts";
import { readBearerToken } from "./bearer-token.ts";
import type { Identity, TokenClaims } from "./identity.ts";

const ADMIN_ROLE = "admin";
const ADMIN_SCOPE = "gate:admin";

/** Who got through the guard. */
export type AdminCaller =
  | { kind: "operator" }
  | { kind: "user"; claims: TokenClaims }
  | { kind: "local" };

/**
 * Judges a request for an admin path, at once where the keys are known. Throws, or rejects with, 401 without a valid
 * token and 403 with one that lacks both role `admin` and scope `gate:admin`.
 */
export function admitAdmin(
  head: RequestHead,
  peer: string,
  identity: Identity,
): AdminCaller | Promise<AdminCaller> {
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
  const claims = identity.verifyUser(token);
  return claims instanceof Promise ? claims.then(admitUser) : admitUser(claims);
}

function admitUser(claims: TokenClaims): AdminCaller {
  if (claims.roles.includes(ADMIN_ROLE) || claims.scope.includes(ADMIN_SCOPE)) {
    return { kind: "user", claims };
  }
  throw new PlatformError("forbidden", "This takes the role admin or the scope gate:admin.", {
    headers: { "WWW-Authenticate": `Bearer error="insufficient_scope", scope="${ADMIN_SCOPE}"` },
  });
}

// Neither a neighbour behind a local proxy nor a page in the operator's own browser may use it.
function checkLocal(head: RequestHead, peer: string): void {
  const { fields } = head;
  const host = fields.get(Known.Host) ?? "";
  if (!isLoopback(peer)) refuse("Without auth_token the admin API answers this machine alone.");
  if (!isLoopbackName(readHostName(host))) {
    refuse("Without auth_token the admin API answers to a loopback Host alone.");
  }
  for (let line = 0; line < fields.count; line++) {
    const known = fields.knownAt(line);
    if (FORWARDED_BY.includes(known)) {
      refuse("Without auth_token the admin API does not answer through a proxy.");
    }
  }
  const site = fields.get(Known.SecFetchSite) ?? "none";
  const origin = fields.get(Known.Origin);
  const isOwn = origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
  if (!isOwn || (site !== "none" && site !== "same-origin")) {
    refuse("The admin API does not answer pages of another origin.");
  }
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

function refuse(detail: string): never {
  throw new PlatformError("forbidden", detail);
}
