// Merges the metrics of all workers on each scrape; the totals of ended workers are retained.
import {
  type Collector,
  HTTP_METRICS,
  type HistogramSample,
  type MetricFamily,
  type ScalarSample,
} from "@platform/kernel/metrics";
import { SPAN_METRICS, type SpanCounts, type SpanLoss } from "@platform/kernel/trace";
import {
  type ActiveCounts,
  DURATION_BOUNDS_SECONDS,
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
import type { RoutePlanner } from "./planner.ts";

const GAUGES: ReadonlySet<WorkerCounter> = new Set([
  "heartbeatMs",
  "connectionsActive",
  "webSocketsActive",
  "unsentBytes",
]);

const SHOWN_COUNTERS: readonly [counter: WorkerCounter, name: string, help: string][] = [
  ["connectionsAccepted", "platform_gate_connections_total", "Client connections accepted."],
  [
    "shed",
    "platform_gate_shed_total",
    "Connections and requests refused because of max_connections.",
  ],
  ["retries", "platform_gate_retries_total", "Retried requests."],
  ["retriesRefused", "platform_gate_retries_refused_total", "Retries refused by the retry budget."],
  ["ejections", "platform_gate_ejections_total", "Upstream ejections."],
  ["badRequests", "platform_gate_bad_requests_total", "Requests refused before routing."],
  ["accessLogLines", "platform_gate_access_log_lines_total", "Access log lines written."],
  ["accessLogDropped", "platform_gate_access_log_dropped_total", "Access log lines dropped."],
  [
    "addressRefused",
    "platform_gate_address_refused_total",
    "Connections refused because of max_connections_per_address.",
  ],
  [
    "slowBodies",
    "platform_gate_slow_bodies_total",
    "Request bodies refused because they were slower than body_pace_bytes.",
  ],
  [
    "slowReaders",
    "platform_gate_slow_readers_total",
    "Clients disconnected because they read slower than answer_pace_bytes or stopped for idle_timeout_ms.",
  ],
  [
    "unsentDropped",
    "platform_gate_unsent_dropped_total",
    "Clients disconnected because of max_unsent_size.",
  ],
  ["unsentBytes", "platform_gate_unsent_bytes", "Response bytes buffered for slow clients."],
  [
    "descriptorErrors",
    "platform_gate_descriptor_errors_total",
    "Failures with EMFILE or ENFILE (out of file descriptors).",
  ],
  ["rateLimited", "platform_gate_rate_limited_total", "Requests refused by a rate limit."],
  [
    "rateLimitsLocal",
    "platform_gate_rate_limits_local_total",
    "Requests limited by this process alone because Redis did not respond.",
  ],
  [
    "rateKeysEvicted",
    "platform_gate_rate_keys_evicted_total",
    "Keys of rate limits dropped while in use because the table was full.",
  ],
  ["queued", "platform_gate_queued_total", "Requests that waited for a place on their route."],
  ["queueFull", "platform_gate_queue_full_total", "Requests refused because a queue was full."],
  [
    "queueTimeouts",
    "platform_gate_queue_timeouts_total",
    "Requests refused after they had waited for queue_timeout_ms.",
  ],
  ["circuitsOpened", "platform_gate_circuits_opened_total", "Circuits that were opened."],
  [
    "circuitRefused",
    "platform_gate_circuit_refused_total",
    "Requests refused because all circuits of their route were open.",
  ],
  ["cacheHits", "platform_gate_cache_hits_total", "Fresh responses from the cache."],
  ["cacheStale", "platform_gate_cache_stale_total", "Stale responses from the cache."],
  [
    "cacheMisses",
    "platform_gate_cache_misses_total",
    "Responses of upstreams on routes with a cache.",
  ],
  ["cacheStored", "platform_gate_cache_stored_total", "Responses stored in the cache."],
  [
    "cacheRevalidated",
    "platform_gate_cache_revalidated_total",
    "Stored responses that an upstream confirmed with 304.",
  ],
  [
    "compressionSkipped",
    "platform_gate_compression_skipped_total",
    "Responses that were not compressed because all memory for it was in use.",
  ],
  [
    "responseViolations",
    "platform_gate_response_violations_total",
    "Responses that did not conform to the OpenAPI document of their route.",
  ],
  [
    "responsesUnchecked",
    "platform_gate_responses_unchecked_total",
    "Responses that were too large to be checked, or compressed by the upstream.",
  ],
  ["mirrored", "platform_gate_mirrored_total", "Copies of requests that a mirror has answered."],
  ["mirrorFailed", "platform_gate_mirror_failed_total", "Copies of requests that a mirror failed."],
  [
    "mirrorSkipped",
    "platform_gate_mirror_skipped_total",
    "Requests that were not mirrored because of a bound.",
  ],
  ["connectionsActive", "platform_gate_connections_active", "Open client connections."],
  ["webSocketsActive", "platform_gate_websockets_active", "Open WebSockets."],
];

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

/** Sums over all workers, including those that have ended. */
export interface GateTotals {
  requests: number;
  errors: number;
  /** Responses from the cache, and all responses on routes with a cache. */
  cacheHits: number;
  cacheLookups: number;
  /** Requests by duration; one more entry than {@link DURATION_BOUNDS_SECONDS}. */
  buckets: number[];
}

/** Active requests by upstream URL. */
export type ConnectionCounts = Record<string, number>;

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
    for (const series of this.#mergeSeries().values()) {
      for (const [index, count] of series.buckets.entries()) {
        buckets[index] = (buckets[index] ?? 0) + count;
      }
    }
    const stored = this.#sumCounter("cacheHits") + this.#sumCounter("cacheStale");
    return {
      requests: this.#sumCounter("requests"),
      errors: this.#sumCounter("errors"),
      cacheHits: stored,
      cacheLookups: stored + this.#sumCounter("cacheMisses"),
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
        [
          "route",
          series.metricsId < 0 ? "overflow" : this.#options.planner.findLabel(series.metricsId),
        ],
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
    const active: ScalarSample[] = [];
    const errors: ScalarSample[] = [];
    const ejected: ScalarSample[] = [];
    for (const { slot, url } of this.#options.planner.listTargets()) {
      const labels = [["upstream", new URL(url).origin]] as const;
      let failed = this.#retiredErrors.get(slot) ?? 0;
      for (const block of this.#options.listBlocks()) failed += block.readUpstreamErrors(slot);
      active.push({ labels, value: this.#options.active.sum(slot) });
      errors.push({ labels, value: failed });
      ejected.push({ labels, value: this.isEjected(slot) ? 1 : 0 });
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
