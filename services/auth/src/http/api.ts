// The service's API: the shared frame of every service's API around the service's own operations.
import { createApi } from "@platform/kernel/http";
import type { Api, ApiOptions, ApiRoute } from "@platform/kernel/http";
import { PlatformError } from "@platform/kernel/errors";
import type { Caller } from "@platform/kernel/identity";
import { hasPermission } from "../rbac/permission.ts";
import type { Principal } from "./principal.ts";
import { authVersion } from "../config.ts";

/** What the API works with. */
export type AuthApiParts = Pick<
  ApiOptions,
  "clock" | "health" | "logger" | "tracer" | "metrics" | "httpMetrics" | "guard"
> & { routes: readonly ApiRoute[] };

/** Builds the API. */
export function createAuthApi(parts: AuthApiParts): Api {
  return createApi({
    ...parts,
    service: "auth",
    title: "Identity",
    version: authVersion,
    bodyBytesMax: 65_536,
    docsAccess: "public",
    metricsAccess: requireMetricsAccess,
  });
}

function requireMetricsAccess(caller: Caller): void {
  if (caller.kind === "operator") return;
  const isAllowed =
    caller.kind === "user" &&
    "principal" in caller &&
    hasPermission((caller.principal as Principal).rights.permissions, "metrics:read");
  if (!isAllowed) throw new PlatformError("forbidden", "The permission metrics:read is required.");
}
