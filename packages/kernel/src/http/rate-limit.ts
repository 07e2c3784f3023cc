// Rate limits of an API: one token bucket per client.
import { createRetryLaterError } from "../errors/index.ts";
import type { Clock } from "../time/index.ts";

/** Maximum number of buckets; the least recently used one is dropped and restarts full. */
const BUCKETS_MAX = 10_000;

/** Options of {@link RateLimit}. */
export interface RateLimitOptions {
  /** Name of the policy in `RateLimit` headers. */
  name: string;
  /** Detail of the error. */
  detail: string;
  clock: Clock;
  /** Tokens per second; 0 for no limit. */
  ratePerSecond: number;
  /** Size of a bucket, that is, the burst. */
  capacity: number;
}

/** Token buckets by key. */
export class RateLimit {
  readonly #options: RateLimitOptions;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /**
   * Takes `count` tokens; throws `too_many_requests` if there are too few. Counts above the capacity need a full bucket
   * and leave a debt, so that they are slow but not impossible.
   */
  take(key: string, count: number): void {
    const { ratePerSecond, capacity, clock } = this.#options;
    if (ratePerSecond === 0) return;
    const now = clock.monotonicMs();
    const bucket = this.#buckets.get(key) ?? { tokens: capacity, at: now };
    const earned = ((now - bucket.at) / 1000) * ratePerSecond;
    bucket.tokens = Math.min(capacity, bucket.tokens + earned);
    bucket.at = now;
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > BUCKETS_MAX) {
      const oldest = this.#buckets.keys().next();
      if (oldest.done !== true) this.#buckets.delete(oldest.value);
    }
    const needed = Math.min(count, capacity);
    if (bucket.tokens < needed) throw this.#createError(bucket.tokens, needed);
    bucket.tokens -= count;
  }

  #createError(tokens: number, needed: number): Error {
    const { name, detail, ratePerSecond, capacity } = this.#options;
    const waitSeconds = (needed - tokens) / ratePerSecond;
    const windowSeconds = Math.max(1, Math.ceil(capacity / ratePerSecond));
    return createRetryLaterError("too_many_requests", detail, waitSeconds, {
      RateLimit: `"${name}";r=${Math.max(0, Math.floor(tokens))};t=${Math.ceil(waitSeconds)}`,
      "RateLimit-Policy": `"${name}";q=${capacity};w=${windowSeconds}`,
    });
  }
}
