// Options of an API.
import type { HealthRegistry } from "../health/index.ts";
import type { Caller } from "../identity/caller.ts";
import type { Logger } from "../log/index.ts";
import type { HttpMetrics, MetricRegistry } from "../metrics/index.ts";
import type { Secret } from "../secrets/index.ts";
import type { Clock } from "../time/index.ts";
import type { Tracer } from "../trace/index.ts";
import type { JsonObject } from "./openapi.ts";
import type { BodyBudget } from "./body-budget.ts";
import type { Access, ApiRoute, GuardedRequest } from "./route.ts";

/** Identifies the caller, or throws a PlatformError (401, 403) to reject the request. */
export type Guard = (request: GuardedRequest) => Caller | Promise<Caller>;

/** Options of {@link createApi}. */
export interface ApiOptions {
  service: string;
  version: string;
  /** Title of the documentation; default: the service's name. */
  title?: string;
  description?: string;
  routes: readonly ApiRoute[];
  guard: Guard;
  health: HealthRegistry;
  metrics: MetricRegistry;
  /** Request metrics in `metrics`, if other components of the service share them. */
  httpMetrics?: HttpMetrics;
  logger: Logger;
  tracer: Tracer;
  clock: Clock;
  /** Maximum size of a request body for routes without their own maximum, in bytes. Default 1 MiB. */
  bodyBytesMax?: number;
  /**
   * Bounds the bodies of all requests until they are answered; beyond it they fail with 503. A client is the subject of
   * the token; other callers are told apart by address.
   */
  bodyBudget?: BodyBudget;
  /**
   * Access of other machines to `/metrics`, which programs on this machine can read. Default: the operator, the scope
   * `metrics:read`.
   */
  metricsAccess?: (caller: Caller) => void;
  /** Bearer token that gives access to `/metrics` only. */
  metricsToken?: Secret | undefined;
  /** Access to `/api/docs`. Default: programs on this machine, and callers that the guard accepts. */
  docsAccess?: Access;
  /** Extends the OpenAPI document at each request, for operations that change at runtime. */
  extendOpenApi?: (document: JsonObject) => JsonObject;
}
