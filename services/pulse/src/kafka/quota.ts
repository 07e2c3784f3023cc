// How many bytes a tenant may write or read over Kafka: a token bucket each, in debt instead of in refusal.
import type { Clock } from "@platform/kernel/time";
import type { Tenant } from "../topic/name.ts";

/** Tenants remembered; the one that was quiet longest goes first, with a full bucket when it comes back. */
const TENANTS_MAX = 10_000;
/** Longest pause, as long as the windows over which Kafka measures: clients give up on silence that lasts longer. */
const THROTTLE_MS_MAX = 10_000;

/**
 * A rate of bytes for each tenant. Nothing is refused: what was let through too early is paid for by a pause, as Kafka's
 * quotas do it (KIP-13, KIP-219).
 */
export class ByteQuota {
  readonly #clock: Clock;
  readonly #bytesPerSecond: number;
  readonly #buckets = new Map<Tenant, { tokens: number; atMs: number }>();

  /** `bytesPerSecond`: also what may come at once; 0 for no limit. */
  constructor(clock: Clock, bytesPerSecond: number) {
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
  }

  /** Takes bytes that were written or read; gives the pause that they cost, in whole milliseconds. */
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
