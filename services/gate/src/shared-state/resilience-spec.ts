// Settings of a route for failing targets.

/** Circuit breaker of each target of a route. */
export interface CircuitBreakerSpec {
  /** Share of failures, 0 … 1, at which the circuit opens. */
  errorRate: number;
  /** Requests in the window below which it does not open. */
  requestsMin: number;
  windowSeconds: number;
  /** Length of the first opening; it doubles with each further one up to `openMsMax`. */
  openMs: number;
  openMsMax: number;
  /** Requests that are let through afterwards; all must succeed. */
  probes: number;
}

/** Retries of a route beyond the defaults. */
export interface RetrySpec {
  /** Maximum retries of a request. */
  attemptsMax: number;
  /** Statuses that are retried like failures. */
  statuses: readonly number[];
  /** Also retry after a response timeout. */
  onTimeout: boolean;
}

/** Automatic promotion of the last of two weighted targets. */
export interface CanarySpec {
  /** Percentage points per step. */
  stepPoints: number;
  stepMs: number;
  /** Share of failures, 0 … 1, above which the canary is rolled back. */
  errorRateMax: number;
}

/** Active health check of the targets of a route. */
export interface HealthCheckSpec {
  /** Path and query on the origin of the target. */
  path: string;
  intervalMs: number;
  timeoutMs: number;
  /** Consecutive passed checks after which a target is healthy again. */
  healthyAfter: number;
  /** Consecutive failed checks after which it is not. */
  unhealthyAfter: number;
}

/** Settings of a route for failing targets; absent ones are not used. */
export interface ResilienceSpec {
  breaker?: CircuitBreakerSpec;
  retry?: RetrySpec;
  canary?: CanarySpec;
  /** Statuses that count against the health of a target like a failed connection. */
  outlierStatuses?: readonly number[];
}
