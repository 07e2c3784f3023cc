// Rate limit of HTTP publishing: one token bucket per tenant.
import { createRetryLaterError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { Tenant } from "../topic/name.ts";

/** Maximum number of tenants; the least recently active one is dropped and restarts with a full bucket. */
const TENANTS_MAX = 10_000;

/** Token buckets by tenant. `rate` in messages per second, 0 for no limit; `capacity` is the burst. */
export class RateLimit {
  readonly #clock: Clock;
  readonly #rate: number;
  readonly #capacity: number;
  readonly #buckets = new Map<Tenant, { tokens: number; at: number }>();

  constructor(clock: Clock, rate: number, capacity: number) {
    this.#clock = clock;
    this.#rate = rate;
    this.#capacity = capacity;
  }

  /**
   * Takes tokens for `count` messages; throws `too_many_requests` if there are too few. Batches larger than the bucket need
   * a full bucket and leave a debt, so that they are slow but not impossible.
   */
  take(tenant: Tenant, count: number): void {
    if (this.#rate === 0) return;
    const now = this.#clock.monotonicMs();
    const bucket = this.#buckets.get(tenant) ?? { tokens: this.#capacity, at: now };
    const earned = ((now - bucket.at) / 1000) * this.#rate;
    bucket.tokens = Math.min(this.#capacity, bucket.tokens + earned);
    bucket.at = now;
    this.#buckets.delete(tenant);
    this.#buckets.set(tenant, bucket);
    if (this.#buckets.size > TENANTS_MAX) {
      const oldest = this.#buckets.keys().next();
      if (oldest.done !== true) this.#buckets.delete(oldest.value);
    }
    const needed = Math.min(count, this.#capacity);
    if (bucket.tokens >= needed) {
      bucket.tokens -= count;
      return;
    }
    const waitSeconds = (needed - bucket.tokens) / this.#rate;
    throw createRetryLaterError(
      "too_many_requests",
      "Messages are published faster than the rate limit allows.",
      waitSeconds,
      {
        RateLimit: `"publish";r=${Math.max(0, Math.floor(bucket.tokens))};t=${Math.ceil(waitSeconds)}`,
        "RateLimit-Policy": `"publish";q=${this.#capacity};w=${Math.max(1, Math.ceil(this.#capacity / this.#rate))}`,
      },
    );
  }
}
