// Authentication of requests that cannot send an Authorization header, and the tenant of a caller.
import { PlatformError } from "@platform/kernel/errors";
import type { Guard, GuardedRequest, HeaderReader } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import { isTenant, TENANT_FORM, type Tenant } from "../topic/name.ts";

/** Cookie that may contain a browser's token. */
const TOKEN_COOKIE = "platform_token";

/**
 * The tenant of a caller: "" for the operator, the claim `tenant` for a user. Users without the claim get 403.
 */
export function tenantOf(caller: Caller): Tenant {
  switch (caller.kind) {
    case "operator":
      return "";
    case "user": {
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

/** Allows only the operator. */
export function requireOperator(caller: Caller): void {
  if (caller.kind !== "operator")
    throw new PlatformError("forbidden", "Only the operator may do this.");
}

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
