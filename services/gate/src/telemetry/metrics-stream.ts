// Live metrics: one update per second about the last second.
import { estimateQuantile } from "@platform/kernel/metrics";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { z } from "zod";
import { DURATION_BOUNDS_SECONDS } from "../shared-state/index.ts";
import { type ConnectionCounts, connectionCounts, type GateTotals } from "./gate-metrics.ts";

const PERIOD_MS = 1000;

/** One update. Rates are per second over the last second. */
export const metricsUpdate = z.object({
  timestamp: z.string().describe("ISO 8601, UTC"),
  total_requests: z.number(),
  total_errors: z.number(),
  request_rate: z.number(),
  error_rate: z.number(),
  active_connections: connectionCounts,
  p50_ms: z
    .number()
    .nullable()
    .describe("Quantile of the requests that ended in the last second; null without requests"),
  p99_ms: z.number().nullable(),
  cache_hit_ratio: z
    .number()
    .nullable()
    .describe(
      "Share of responses from the cache on routes with a cache in the last second; null without requests",
    ),
  breakers: z
    .record(z.string(), z.string())
    .describe("State of the circuit breaker of each target by URL: closed, half_open or open"),
});

export type MetricsUpdate = z.infer<typeof metricsUpdate>;

/** Numbers of the last update that are not part of it. */
export interface MetricsSums {
  /** Active requests, streams and WebSockets of all targets. */
  active: number;
  circuitsOpen: number;
  circuitsHalfOpen: number;
}

/** Options of {@link MetricsStream}. */
export interface MetricsStreamOptions {
  readTotals: () => GateTotals;
  readConnections: () => ConnectionCounts;
  readBreakers: () => Record<string, string>;
  /** Wall clock, for the timestamp. */
  readNow: () => Date;
  /** Monotonic milliseconds, for the rates. */
  readMonotonicMs: () => number;
  /** Called if a listener throws. */
  onError: (error: unknown) => void;
}

/** Computes an update every second and passes it to its listeners. */
export class MetricsStream {
  readonly #options: MetricsStreamOptions;
  readonly #listeners = new Set<(update: MetricsUpdate) => void>();
  #before: { totals: GateTotals; atMs: number };
  #latest: MetricsUpdate;
  #sums: MetricsSums | undefined;
  #timer: RepeatingTimer | undefined;

  constructor(options: MetricsStreamOptions) {
    this.#options = options;
    this.#before = { totals: options.readTotals(), atMs: options.readMonotonicMs() };
    this.#latest = this.#describe(this.#before.totals, this.#before, this.#before.atMs);
  }

  /** The latest update. */
  get latest(): MetricsUpdate {
    return this.#latest;
  }

  /** Sums of the latest update, computed once for all that show them. */
  get sums(): MetricsSums {
    return (this.#sums ??= sumUp(this.#latest));
  }

  /** Starts the updates. */
  start(): void {
    this.#timer = every(PERIOD_MS, () => this.measure(), this.#options.onError);
  }

  /** Stops the updates. */
  stop(): void {
    void this.#timer?.stop();
  }

  /** Calls the listener with every update; the returned function unsubscribes it. */
  subscribe(listener: (update: MetricsUpdate) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Computes an update since the previous one. */
  measure(): void {
    const totals = this.#options.readTotals();
    const atMs = this.#options.readMonotonicMs();
    this.#latest = this.#describe(totals, this.#before, atMs);
    this.#sums = undefined;
    this.#before = { totals, atMs };
    for (const listener of this.#listeners) listener(this.#latest);
  }

  #describe(
    totals: GateTotals,
    before: { totals: GateTotals; atMs: number },
    atMs: number,
  ): MetricsUpdate {
    const seconds = Math.max(0.001, (atMs - before.atMs) / 1000);
    const buckets = totals.buckets.map(
      (count, index) => count - (before.totals.buckets[index] ?? 0),
    );
    return {
      timestamp: this.#options.readNow().toISOString(),
      total_requests: totals.requests,
      total_errors: totals.errors,
      request_rate: roundTo(2, (totals.requests - before.totals.requests) / seconds),
      error_rate: roundTo(2, (totals.errors - before.totals.errors) / seconds),
      active_connections: this.#options.readConnections(),
      p50_ms: estimateQuantileMs(buckets, 0.5),
      p99_ms: estimateQuantileMs(buckets, 0.99),
      cache_hit_ratio: divide(
        totals.cacheHits - before.totals.cacheHits,
        totals.cacheLookups - before.totals.cacheLookups,
      ),
      breakers: this.#options.readBreakers(),
    };
  }
}

function sumUp({ active_connections: connections, breakers }: MetricsUpdate): MetricsSums {
  const sums: MetricsSums = { active: 0, circuitsOpen: 0, circuitsHalfOpen: 0 };
  for (const url in connections) sums.active += connections[url] ?? 0;
  for (const url in breakers) {
    if (breakers[url] === "open") sums.circuitsOpen += 1;
    else if (breakers[url] === "half_open") sums.circuitsHalfOpen += 1;
  }
  return sums;
}

// In ms; null without requests. Requests slower than the last bound count as that bound.
function estimateQuantileMs(buckets: readonly number[], quantile: number): number | null {
  const seconds = estimateQuantile(DURATION_BOUNDS_SECONDS, buckets, quantile);
  return Number.isNaN(seconds) ? null : roundTo(3, seconds * 1000);
}

function divide(part: number, whole: number): number | null {
  return whole <= 0 ? null : roundTo(4, part / whole);
}

function roundTo(digits: number, value: number): number {
  return Number(value.toFixed(digits));
}
