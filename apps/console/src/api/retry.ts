// Times between attempts to reach what does not answer.

/** A service that is back is noticed within the last of these. */
const RETRY_MS = [500, 1_000, 2_000, 4_000, 5_000];

/** Time before the next attempt, after this number of failed ones. */
export function retryDelayMs(attempts: number): number {
  return RETRY_MS[Math.min(attempts, RETRY_MS.length - 1)]!;
}

/** True if the same request may succeed in a moment: nothing answered, or what did is overloaded. */
export function isTransient({ status }: { status: number }): boolean {
  return status === 0 || status === 429 || (status >= 502 && status <= 504);
}
