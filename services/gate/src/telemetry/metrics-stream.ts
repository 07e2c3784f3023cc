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
  /** Requests to models; undefined if there were none. */
  ai: ModelRates | undefined;
}

/** Requests to models since the gateway started. */
interface ModelTotals {
  readonly requests: number;
  readonly tokens: number;
  readonly cacheHits: number;
}

/** Requests to models in the last second. */
export interface ModelRates {
  readonly tokensPerSecond: number;
  readonly blockedPerSecond: number;
  /** Share of requests that were answered from stored answers; null without requests. */
  readonly hitRatio: number | null;
}

/** Options of {@link MetricsStream}. */
export interface MetricsStreamOptions {
  readTotals: () => GateTotals;
  readConnections: () => ConnectionCounts;
  readBreakers: () => Record<string, string>;
  readModels: () => ModelTotals;
  /** Wall clock, for the timestamp. */
  readNow: () => Date;
  /** Monotonic milliseconds, for the rates. */
  readMonotonicMs: () => number;
  /** Called if a listener throws. */
  onError: (error: unknown) => void;
}

/** The totals at one time. */
interface Sample {
  readonly totals: GateTotals;
  readonly models: ModelTotals;
  readonly atMs: number;
}

/** Computes an update every second and passes it to its listeners. */
export class MetricsStream {
  readonly #options: MetricsStreamOptions;
  readonly #listeners = new Set<(update: MetricsUpdate) => void>();
  #before: Sample;
  #models: ModelRates | undefined;
  #latest: MetricsUpdate;
  #sums: MetricsSums | undefined;
  #timer: RepeatingTimer | undefined;

  constructor(options: MetricsStreamOptions) {
    this.#options = options;
    this.#before = this.#sample();
    this.#latest = this.#describe(this.#before.totals, this.#before, this.#before.atMs);
  }

  /** The latest update. */
  get latest(): MetricsUpdate {
    return this.#latest;
  }

  /** Sums of the latest update, computed once for all that show them. */
  get sums(): MetricsSums {
    return (this.#sums ??= { ...sumUp(this.#latest), ai: this.#models });
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
    const sample = this.#sample();
    this.#latest = this.#describe(sample.totals, this.#before, sample.atMs);
    this.#models = describeModels(sample, this.#before);
    this.#sums = undefined;
    this.#before = sample;
    for (const listener of this.#listeners) listener(this.#latest);
  }

  #sample(): Sample {
    const { readTotals, readModels, readMonotonicMs } = this.#options;
    return { totals: readTotals(), models: readModels(), atMs: readMonotonicMs() };
  }

  #describe(totals: GateTotals, before: Sample, atMs: number): MetricsUpdate {
    const seconds = countSeconds(before.atMs, atMs);
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

function countSeconds(fromMs: number, toMs: number): number {
  return Math.max(0.001, (toMs - fromMs) / 1000);
}

function describeModels(now: Sample, before: Sample): ModelRates | undefined {
  const { requests, tokens, cacheHits } = now.models;
  const blocked = now.totals.promptsBlocked;
  if (requests === 0 && blocked === 0) return undefined;
  const seconds = countSeconds(before.atMs, now.atMs);
  return {
    tokensPerSecond: roundTo(2, (tokens - before.models.tokens) / seconds),
    blockedPerSecond: roundTo(2, (blocked - before.totals.promptsBlocked) / seconds),
    hitRatio: divide(cacheHits - before.models.cacheHits, requests - before.models.requests),
  };
}

function sumUp({
  active_connections: connections,
  breakers,
}: MetricsUpdate): Omit<MetricsSums, "ai"> {
  const sums: Omit<MetricsSums, "ai"> = { active: 0, circuitsOpen: 0, circuitsHalfOpen: 0 };
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
