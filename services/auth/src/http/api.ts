// The service's API: the shared frame of every service's API around the service's own operations.
import { createUnauthorizedError } from "@platform/kernel/errors";
import { checkLoopback, createApi } from "@platform/kernel/http";
import type { Api, ApiOptions, ApiRoute, GuardedRequest } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import { authVersion } from "../config.ts";

/** What the API works with. */
export type AuthApiParts = Pick<
  ApiOptions,
  "clock" | "health" | "logger" | "tracer" | "metrics" | "httpMetrics"
> & { routes: readonly ApiRoute[] };

/** Builds the API. */
export function createAuthApi(parts: AuthApiParts): Api {
  return createApi({
    ...parts,
    service: "auth",
    title: "Identity",
    version: authVersion,
    guard: admitCaller,
    bodyBytesMax: 65_536,
    docsAccess: "public",
  });
}

// Metrics are for this machine's programs, such as a scraper beside it.
function admitCaller(request: GuardedRequest): Caller {
  const verdict = checkLoopback({
    peer: request.peer,
    getHeader: (name) => request.headers.get(name),
  });
  if (request.path === "/metrics" && verdict.allowed) return { kind: "operator" };
  throw createUnauthorizedError("A bearer token is required.");
}
