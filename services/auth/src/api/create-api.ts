// The JSON API of the service.
import type { Operation, Service } from "@platform/chassis";
import type { Api, ApiRoute } from "@platform/kernel/http";
import type { HttpMetrics } from "@platform/kernel/metrics";
import { documentOAuth } from "../oauth/endpoint/openapi.ts";
import { needPermission } from "./principal.ts";

/** Access to metrics and figures: the permission, not the scope alone, because rights are read at each request. */
export const METRICS_ACCESS = needPermission("metrics:read");

/** Options of the API. */
export interface AuthApiOptions {
  service: Service;
  operation: Operation;
  httpMetrics: HttpMetrics;
  routes: readonly ApiRoute[];
}

export function createAuthApi({ service, routes, ...options }: AuthApiOptions): Api {
  return service.createApi({
    ...options,
    routes: routes.map(refuseNul),
    title: "Identity",
    bodyBytesMax: 65_536,
    docsAccess: "public",
    extendOpenApi: documentOAuth,
    metricsAccess: METRICS_ACCESS,
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
