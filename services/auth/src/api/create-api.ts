// The JSON API of the service.
import { PlatformError } from "@platform/kernel/errors";
import { createApi, type Api, type ApiOptions, type ApiRoute } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import { VERSION } from "../config.ts";
import { documentOAuth } from "../oauth/endpoint/openapi.ts";
import { hasPermission } from "../rbac/permission.ts";
import type { Principal } from "./principal.ts";

/** Options of the API. */
export type AuthApiOptions = Pick<
  ApiOptions,
  "clock" | "health" | "logger" | "tracer" | "metrics" | "httpMetrics" | "metricsToken" | "guard"
> & { routes: readonly ApiRoute[] };

/** Creates the API. */
export function createAuthApi(options: AuthApiOptions): Api {
  return createApi({
    ...options,
    routes: options.routes.map(refuseNul),
    service: "auth",
    title: "Identity",
    version: VERSION,
    bodyBytesMax: 65_536,
    docsAccess: "public",
    extendOpenApi: documentOAuth,
    metricsAccess: requireMetricsAccess,
  });
}

// PostgreSQL cannot store U+0000 in text.
function refuseNul(route: ApiRoute): ApiRoute {
  const { params, query, body } = route;
  const problem = "contains the character U+0000";
  return {
    ...route,
    ...(params === undefined ? {} : { params: params.refine(hasNoNul, problem) }),
    ...(query === undefined ? {} : { query: query.refine(hasNoNul, problem) }),
    ...(body === undefined ? {} : { body: body.refine(hasNoNul, problem) }),
  };
}

function hasNoNul(input: unknown): boolean {
  const open = [input];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "string" && value.includes("\0")) return false;
    if (typeof value === "object" && value !== null) open.push(...Object.entries(value).flat());
  }
  return true;
}

/** Throws 403 unless the caller has the permission `metrics:read`: not the scope alone, rights are read at each request. */
export function requireMetricsAccess(caller: Caller): void {
  const isAllowed =
    caller.kind === "user" &&
    "principal" in caller &&
    hasPermission((caller.principal as Principal).rights.permissions, "metrics:read");
  if (!isAllowed) throw new PlatformError("forbidden", "The permission metrics:read is required.");
}
