// Merges the metrics of all workers on each scrape; the totals of ended workers are retained.
import {
  type Collector,
  HTTP_METRICS,
  type HistogramSample,
  type MetricFamily,
  type ScalarSample,
} from "@platform/kernel/metrics";
import { SPAN_METRICS, type SpanCounts, type SpanLoss } from "@platform/kernel/trace";
import { z } from "zod";
import {
  type ActiveCounts,
  DURATION_BOUNDS_SECONDS,
  INTERNAL_METRICS_ID,
  METRIC_SERIES_MAX,
  type MetricBlock,
  type MetricSeries,
  OVERFLOW_LABELS,
  SPAN_LOSS_COUNTERS,
  type SharedCache,
  type SharedTargetState,
  WORKER_COUNTERS,
  type WorkerCounter,
} from "../shared-state/index.ts";
import type { RoutePlanner } from "../control/planner.ts";
import { GAUGES, SHOWN_COUNTERS } from "./shown-counters.ts";

/** Options of {@link GateMetrics}. */
export interface GateMetricsOptions {
  /** The metric blocks of all running workers. */
  listBlocks: () => readonly MetricBlock[];
  planner: RoutePlanner;
  active: ActiveCounts;
  targets: SharedTargetState;
  countLiveWorkers: () => number;
  countRoutes: () => number;
  cache: Pick<SharedCache, "entries" | "bytes" | "evicted">;
  /** Milliseconds since the shared memory was allocated. */
  readSharedMs: () => number;
}

/** Sums over all workers, including those that have ended, of requests of users that have ended. */
export interface GateTotals {
  requests: number;
  errors: number;
  /** Responses from the cache, and all responses on routes with a cache. */
  cacheHits: number;
  cacheLookups: number;
  /** Requests by duration; one more entry than {@link DURATION_BOUNDS_SECONDS}. */
  buckets: number[];
  /** Requests to models that the guard has refused. */
  promptsBlocked: number;
}

/** Active requests by upstream URL. */
export const connectionCounts = z.record(z.string(), z.int());

/** Active requests, streams and WebSockets by upstream. */
export type ConnectionCounts = z.infer<typeof connectionCounts>;

/** Collector of the merged metrics of one gateway. */
export class GateMetrics implements Collector {
  readonly name = "gate";
  readonly #options: GateMetricsOptions;
  readonly #retiredSeries = new Map<string, MetricSeries>();
  readonly #retiredCounters = new Map<WorkerCounter, number>();
  readonly #retiredErrors = new Map<number, number>();
  #workersRetired = 0;

  constructor(options: GateMetricsOptions) {
    this.#options = options;
  }

  /** Adds the totals of a worker that has ended. */
  retire(block: MetricBlock): void {
    this.#workersRetired++;
    for (const series of block.readSeries()) this.#keepSeries(series);
    for (const counter of WORKER_COUNTERS) {
      if (!GAUGES.has(counter)) this.#keepCount(counter, block.readCounter(counter));
    }
    for (const { slot } of this.#options.planner.listTargets()) {
      const sum = (this.#retiredErrors.get(slot) ?? 0) + block.readUpstreamErrors(slot);
      this.#retiredErrors.set(slot, sum);
    }
  }

  /** Counts the spans of the control plane's own requests. */
  readonly spanCounts: SpanCounts = {
    exported: (spans) => this.#keepCount("spansExported", spans),
    dropped: (reason, spans) => this.#keepCount(SPAN_LOSS_COUNTERS[reason], spans),
  };

  /** Clears a target's slot for another target. */
  forgetTarget(slot: number): void {
    this.#retiredErrors.delete(slot);
    for (const block of this.#options.listBlocks()) block.clearTarget(slot);
  }

  /** Sums since the gateway started. */
  readTotals(): GateTotals {
    const buckets = Array.from({ length: DURATION_BOUNDS_SECONDS.length + 1 }, () => 0);
    let requests = 0;
    let errors = 0;
    for (const series of this.#mergeSeries().values()) {
      // The console's pages and streams would show on an idle gateway.
      if (series.metricsId === INTERNAL_METRICS_ID) continue;
      requests += series.count;
      if (series.status >= 500) errors += series.count;
      for (const [index, count] of series.buckets.entries()) {
        buckets[index] = (buckets[index] ?? 0) + count;
      }
    }
    const stored = this.#sumCounter("cacheHits") + this.#sumCounter("cacheStale");
    return {
      requests,
      errors,
      cacheHits: stored,
      cacheLookups: stored + this.#sumCounter("cacheMisses"),
      promptsBlocked: this.#sumCounter("promptsBlocked"),
      buckets,
    };
  }

  /** Active requests, streams and WebSockets of every upstream. */
  readConnections(): ConnectionCounts {
    const counts = new Map<string, number>();
    for (const { slot, url } of this.#options.planner.listTargets()) {
      counts.set(url, (counts.get(url) ?? 0) + this.#options.active.sum(slot));
    }
    return Object.fromEntries(counts);
  }

  /** True if the target in this slot is ejected. */
  isEjected(slot: number): boolean {
    const { targets, readSharedMs } = this.#options;
    return targets.isDown(slot) || targets.readEjectedUntilMs(slot) > readSharedMs();
  }

  /** Number of active requests at the target in this slot. */
  countActive(slot: number): number {
    return this.#options.active.sum(slot);
  }

  collect(): MetricFamily[] {
    return [
      ...this.#collectRequests(),
      ...this.#collectWorkers(),
      ...this.#collectSpans(),
      ...this.#collectUpstreams(),
    ];
  }

  #collectRequests(): MetricFamily[] {
    const counts: ScalarSample[] = [];
    const durations: HistogramSample[] = [];
    for (const series of this.#mergeSeries().values()) {
      const labels = [
        ["route", this.#describeRoute(series.metricsId)],
        ["method", series.method],
        ["status", String(series.status)],
      ] as const;
      counts.push({ labels, value: series.count });
      durations.push({
        labels,
        bounds: DURATION_BOUNDS_SECONDS,
        counts: series.buckets,
        sum: series.secondsSum,
      });
    }
    const { requests, duration } = HTTP_METRICS;
    return [
      { type: "counter", ...requests, samples: counts },
      { type: "histogram", name: duration.name, help: duration.help, samples: durations },
    ];
  }

  #describeRoute(metricsId: number): string {
    if (metricsId === INTERNAL_METRICS_ID) return "internal";
    return metricsId < 0 ? "overflow" : this.#options.planner.findLabel(metricsId);
  }

  #collectWorkers(): MetricFamily[] {
    const { countLiveWorkers, countRoutes, cache } = this.#options;
    const shown = SHOWN_COUNTERS.map(([counter, name, help]): MetricFamily => {
      const type = GAUGES.has(counter) ? "gauge" : "counter";
      return scalar(type, name, help, this.#sumCounter(counter));
    });
    return [
      ...shown,
      scalar("gauge", "platform_gate_workers", "Listening workers.", countLiveWorkers()),
      scalar(
        "counter",
        "platform_gate_workers_replaced_total",
        "Workers that ended and were replaced.",
        this.#workersRetired,
      ),
      scalar("gauge", "platform_gate_routes", "Active routes.", countRoutes()),
      scalar("gauge", "platform_gate_cache_entries", "Stored responses.", cache.entries),
      scalar("gauge", "platform_gate_cache_bytes", "Bytes of stored responses.", cache.bytes),
      scalar(
        "counter",
        "platform_gate_cache_evicted_total",
        "Stored responses dropped because the cache was full.",
        cache.evicted,
      ),
    ];
  }

  #collectSpans(): MetricFamily[] {
    const reasons = Object.keys(SPAN_LOSS_COUNTERS) as SpanLoss[];
    const dropped = reasons.map((reason) => ({
      labels: [["reason", reason]] as const,
      value: this.#sumCounter(SPAN_LOSS_COUNTERS[reason]),
    }));
    const { name, help } = SPAN_METRICS.exported;
    return [
      scalar("counter", name, help, this.#sumCounter("spansExported")),
      { type: "counter", ...SPAN_METRICS.dropped, samples: dropped },
    ];
  }

  #collectUpstreams(): MetricFamily[] {
    // Targets that differ in their path are one upstream: two samples with the same labels would be invalid.
    const upstreams = new Map<string, { active: number; failed: number; isEjected: boolean }>();
    for (const { slot, url } of this.#options.planner.listTargets()) {
      const { origin } = new URL(url);
      const sums = upstreams.get(origin) ?? { active: 0, failed: 0, isEjected: false };
      sums.active += this.#options.active.sum(slot);
      sums.failed += this.#retiredErrors.get(slot) ?? 0;
      for (const block of this.#options.listBlocks()) sums.failed += block.readUpstreamErrors(slot);
      sums.isEjected ||= this.isEjected(slot);
      upstreams.set(origin, sums);
    }
    const active: ScalarSample[] = [];
    const errors: ScalarSample[] = [];
    const ejected: ScalarSample[] = [];
    for (const [origin, sums] of upstreams) {
      const labels = [["upstream", origin]] as const;
      active.push({ labels, value: sums.active });
      errors.push({ labels, value: sums.failed });
      ejected.push({ labels, value: sums.isEjected ? 1 : 0 });
    }
    return [
      {
        type: "gauge",
        name: "platform_gate_upstream_active",
        help: "Active requests, streams and WebSockets.",
        samples: active,
      },
      {
        type: "counter",
        name: "platform_gate_upstream_errors_total",
        help: "Failed attempts.",
        samples: errors,
      },
      {
        type: "gauge",
        name: "platform_gate_upstream_ejected",
        help: "1 while the upstream is ejected.",
        samples: ejected,
      },
    ];
  }

  #mergeSeries(): Map<string, MetricSeries> {
    const merged = new Map<string, MetricSeries>();
    for (const series of this.#retiredSeries.values()) addSeries(merged, series);
    for (const block of this.#options.listBlocks()) {
      for (const series of block.readSeries()) addSeries(merged, series);
    }
    return merged;
  }

  /** Bounds the retained series like those of a worker: repeated worker crashes must not exhaust memory. */
  #keepSeries(series: MetricSeries): void {
    const merged = this.#retiredSeries;
    const isKept = merged.size < METRIC_SERIES_MAX || merged.has(formatSeriesKey(series));
    addSeries(merged, isKept ? series : { ...series, ...OVERFLOW_LABELS });
  }

  #keepCount(counter: WorkerCounter, change: number): void {
    this.#retiredCounters.set(counter, (this.#retiredCounters.get(counter) ?? 0) + change);
  }

  #sumCounter(counter: WorkerCounter): number {
    let sum = this.#retiredCounters.get(counter) ?? 0;
    for (const block of this.#options.listBlocks()) sum += block.readCounter(counter);
    return sum;
  }
}

function formatSeriesKey({ metricsId, method, status }: MetricSeries): string {
  return `${metricsId} ${method} ${status}`;
}

function addSeries(merged: Map<string, MetricSeries>, series: MetricSeries): void {
  const name = formatSeriesKey(series);
  const known = merged.get(name);
  merged.set(name, {
    ...series,
    count: series.count + (known?.count ?? 0),
    secondsSum: series.secondsSum + (known?.secondsSum ?? 0),
    buckets: series.buckets.map((count, index) => count + (known?.buckets[index] ?? 0)),
  });
}

function scalar(
  type: "counter" | "gauge",
  name: string,
  help: string,
  value: number,
): MetricFamily {
  return { type, name, help, samples: [{ labels: [], value }] };
}
