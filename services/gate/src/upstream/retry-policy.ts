// Says whether a failed attempt may be repeated. The target of the next one is the balancer's to pick.

/** What is known of a failed attempt. */
export interface FailedAttempt {
  /** The request's method may be repeated without harm (RFC 9110 section 9.2.2). */
  idempotent: boolean;
  /** Any byte of the request reached a socket. */
  requestSent: boolean;
  /** The whole request is still at hand. */
  replayable: boolean;
  /**
   * A pooled connection was lost before any byte of the answer, as most likely the upstream closed it as idle; or the
   * gateway had no file descriptor for another connection.
   */
  isTargetBlameless: boolean;
  /** Retries so far, those on a fresh connection to the same target not counted. */
  retries: number;
  /** A retry on the same target for that reason was made already. */
  refreshed: boolean;
}

/** What to do next; `spend`: the retry comes out of the budget. */
export type RetryDecision =
  | { kind: "give-up" }
  | { kind: "same-target" }
  | { kind: "other-target"; spend: boolean };

/** Most retries of a request at other targets. */
export const RETRIES_MAX = 2;

const GIVE_UP: RetryDecision = { kind: "give-up" };
const SAME_TARGET: RetryDecision = { kind: "same-target" };
const OTHER_TARGET: RetryDecision = { kind: "other-target", spend: true };
const OTHER_TARGET_FREE: RetryDecision = { kind: "other-target", spend: false };

/**
 * The next step after an attempt failed before any byte of an answer. A request of which nothing was sent may always
 * go elsewhere; one that was sent only if its method is idempotent, and that is what the budget bounds.
 */
export function decideRetry(attempt: FailedAttempt): RetryDecision {
  if (!attempt.replayable) return GIVE_UP;
  if (attempt.requestSent && !attempt.idempotent) return GIVE_UP;
  if (attempt.isTargetBlameless && !attempt.refreshed) return SAME_TARGET;
  if (attempt.retries >= RETRIES_MAX) return GIVE_UP;
  return attempt.requestSent ? OTHER_TARGET : OTHER_TARGET_FREE;
}
