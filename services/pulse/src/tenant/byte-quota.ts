// Byte quotas per tenant: token buckets that go into debt instead of refusing.
import type { Clock } from "@platform/kernel/time";
import type { Tenant } from "../topic/name.ts";

/** Maximum number of tenants; the least recently active one is dropped and restarts with a full bucket. */
const TENANTS_MAX = 10_000;
/** Longest pause, equal to the windows of Kafka's quotas: clients time out after longer silence. */
const THROTTLE_MS_MAX = 10_000;

/**
 * A byte rate per tenant. Nothing is refused: exceeding the rate costs a pause afterwards, like Kafka's quotas (KIP-13,
 * KIP-219).
 */
export class ByteQuota {
  readonly #clock: Clock;
  readonly #bytesPerSecond: number;
  readonly #buckets = new Map<Tenant, { tokens: number; atMs: number }>();

  /** `bytesPerSecond` is also the burst; 0 for no limit. */
  constructor(clock: Clock, bytesPerSecond: number) {
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Charges bytes that were written or read; returns the resulting pause in whole milliseconds. */
  charge(tenant: Tenant, bytes: number): number {
    const rate = this.#bytesPerSecond;
    if (rate === 0) return 0;
    const nowMs = this.#clock.monotonicMs();
    const bucket = this.#buckets.get(tenant) ?? { tokens: rate, atMs: nowMs };
    const earned = ((nowMs - bucket.atMs) / 1_000) * rate;
    const left = Math.min(rate, bucket.tokens + earned) - bytes;
    bucket.tokens = Math.max(left, (-rate * THROTTLE_MS_MAX) / 1_000);
    bucket.atMs = nowMs;
    this.#buckets.delete(tenant);
    this.#buckets.set(tenant, bucket);
    if (this.#buckets.size > TENANTS_MAX) {
      const quietest = this.#buckets.keys().next();
      if (quietest.done !== true) this.#buckets.delete(quietest.value);
    }
    return bucket.tokens >= 0 ? 0 : Math.ceil((-bucket.tokens / rate) * 1_000);
  }
}
