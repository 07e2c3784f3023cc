// Decides whether a failed attempt may be retried. The balancer picks the target of the retry.

/** A failed attempt. */
export interface FailedAttempt {
  /** The request's method is idempotent (RFC 9110 section 9.2.2). */
  idempotent: boolean;
  /** At least one byte of the request was written to a socket. */
  requestSent: boolean;
  /** The whole request is still in memory. */
  replayable: boolean;
  /**
   * A pooled connection was lost before any byte of the response, most likely because the upstream closed it as idle; or
   * the gateway had no file descriptor for a new connection.
   */
  isTargetBlameless: boolean;
  /** Number of retries so far, and their maximum. */
  retries: number;
  retriesMax: number;
  /** The request was already retried on the same target for that reason. */
  refreshed: boolean;
}

/** The next step; `spend` means that the retry counts against the budget. */
export type RetryDecision =
  | { kind: "give-up" }
  | { kind: "same-target" }
  | { kind: "other-target"; spend: boolean };

/** Default maximum of retries of a request. */
export const RETRIES_MAX_DEFAULT = 2;

const GIVE_UP: RetryDecision = { kind: "give-up" };
const SAME_TARGET: RetryDecision = { kind: "same-target" };
const OTHER_TARGET: RetryDecision = { kind: "other-target", spend: true };
const OTHER_TARGET_FREE: RetryDecision = { kind: "other-target", spend: false };

/**
 * Decides the next step after an attempt that failed before any byte of a response. A request that was not sent may
 * always go to another target. A request that was sent may only if its method is idempotent, within the retry budget.
 */
export function decideRetry(attempt: FailedAttempt): RetryDecision {
  if (!attempt.replayable) return GIVE_UP;
  if (attempt.requestSent && !attempt.idempotent) return GIVE_UP;
  if (attempt.isTargetBlameless && !attempt.refreshed) return SAME_TARGET;
  if (attempt.retries >= attempt.retriesMax) return GIVE_UP;
  return attempt.requestSent ? OTHER_TARGET : OTHER_TARGET_FREE;
}
