// Times of repeated attempts: 5 minutes × 1.3ⁿ, up to 18 times, which takes about 31 hours.

/** Number of attempts after the first. */
const RETRIES_MAX = 18;

const FACTOR = 1.3;
const HINT_MS_MIN = 10_000;
const HINT_MS_MAX = 6 * 3_600_000;
const JITTER = 0.1;

/** Options of {@link planRetry}. */
export interface RetryOptions {
  /** Number of finished attempts, including the one that failed. */
  attempts: number;
  /** Delay of the first retry in ms. */
  baseMs: number;
  /** Delay that the relay requested, in ms. */
  hintMs: number | undefined;
  /** A number from 0 to 1. */
  random: number;
}

/** No retry is later than this after an attempt, in whole ms. */
export function findLongestDelay(baseMs: number): number {
  return Math.ceil(Math.max(HINT_MS_MAX, baseMs * FACTOR ** (RETRIES_MAX - 1) * (1 + JITTER)));
}

/** Returns the delay until the next attempt in ms; undefined if the message is given up. */
export function planRetry({ attempts, baseMs, hintMs, random }: RetryOptions): number | undefined {
  if (attempts > RETRIES_MAX) return undefined;
  if (hintMs !== undefined) return Math.min(Math.max(hintMs, HINT_MS_MIN), HINT_MS_MAX);
  const spread = 1 + JITTER * (2 * random - 1);
  return Math.round(baseMs * FACTOR ** (attempts - 1) * spread);
}
