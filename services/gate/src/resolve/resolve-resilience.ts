// Resolves the fields of a route for failing targets.
import { BREAKER_DEFAULT } from "../config/route-resilience.ts";
import type { RouteConfig } from "../config/route.ts";
import type { HealthCheckSpec, ResilienceSpec } from "../shared-state/index.ts";

const CANARY_STEP_POINTS_DEFAULT = 10;
const CANARY_STEP_SECONDS_DEFAULT = 60;
const CANARY_ERROR_RATE_DEFAULT = 0.05;

/** The settings of a route; undefined if it uses none of them. */
export function resolveResilience(config: RouteConfig): ResilienceSpec | undefined {
  const { retry, outlier_statuses: outlierStatuses } = config;
  const breaker = config.circuit_breaker ?? BREAKER_DEFAULT;
  const spec: ResilienceSpec = {
    ...(breaker === false
      ? {}
      : {
          breaker: {
            errorRate: breaker.error_rate,
            requestsMin: breaker.min_requests,
            windowSeconds: breaker.window_sec,
            openMs: breaker.open_ms,
            openMsMax: Math.max(breaker.open_ms, breaker.max_open_ms),
            probes: breaker.probes,
          },
        }),
    ...(retry === undefined
      ? {}
      : {
          retry: {
            attemptsMax: retry.attempts,
            statuses: retry.statuses,
            onTimeout: retry.on_timeout,
          },
        }),
    ...(outlierStatuses === undefined ? {} : { outlierStatuses }),
    ...(config.canary_auto_promote === true
      ? {
          canary: {
            stepPoints: config.canary_promote_step ?? CANARY_STEP_POINTS_DEFAULT,
            stepMs: (config.canary_promote_sec ?? CANARY_STEP_SECONDS_DEFAULT) * 1000,
            errorRateMax: config.canary_max_error_rate ?? CANARY_ERROR_RATE_DEFAULT,
          },
        }
      : {}),
  };
  return Object.keys(spec).length === 0 ? undefined : spec;
}

/** The active health check of a route; undefined without one. */
export function resolveHealthCheck({
  health_check: check,
}: RouteConfig): HealthCheckSpec | undefined {
  if (check === undefined) return undefined;
  return {
    path: check.path,
    intervalMs: check.interval_ms,
    timeoutMs: check.timeout_ms,
    healthyAfter: check.healthy_after,
    unhealthyAfter: check.unhealthy_after,
  };
}
