// Options of an API.
import type { HealthRegistry } from "../health/index.ts";
import type { Caller } from "../identity/caller.ts";
import type { Logger } from "../log/index.ts";
import type { HttpMetrics, MetricRegistry } from "../metrics/index.ts";
import type { Clock } from "../time/index.ts";
import type { Tracer } from "../trace/index.ts";
import type { JsonObject } from "./openapi.ts";
import type { Access, ApiRoute, GuardedRequest } from "./route.ts";

/** Identifies the caller, or throws the PlatformError (401, 403) that refuses the request. */
export type Guard = (request: GuardedRequest) => Caller | Promise<Caller>;

/** Options of {@link createApi}. */
export interface ApiOptions {
  service: string;
  version: string;
  /** Title of the documentation; default the service's name. */
  title?: string;
  description?: string;
  routes: readonly ApiRoute[];
  guard: Guard;
  health: HealthRegistry;
  metrics: MetricRegistry;
  /** The request metrics made from `metrics`, where something beside this API counts in them too. */
  httpMetrics?: HttpMetrics;
  logger: Logger;
  tracer: Tracer;
  clock: Clock;
  /** Bound of a request's body where the route has none of its own. Default 1 MiB. */
  bodyBytesMax?: number;
  /** Who may read `/metrics`. Default `guarded`. */
  metricsAccess?: Access;
  /** Who may read `/api/docs`. Default `guarded`. */
  docsAccess?: Access;
  /** Adds to the OpenAPI document at each request, for operations that come and go. */
  extendOpenApi?: (document: JsonObject) => JsonObject;
}
