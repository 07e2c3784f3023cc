// The metrics of one worker in shared memory: the worker writes, the control plane reads on a scrape.
import { DURATION_BOUNDS_SECONDS, HTTP_METHODS } from "@platform/kernel/metrics";
import type { SpanLoss } from "@platform/kernel/trace";
import { TARGETS_MAX } from "./shared-buffers.ts";

/** Values of the `method` label; index 0 stands for unknown methods. */
export const METHOD_LABELS: readonly string[] = ["OTHER", ...HTTP_METHODS];

/** Unlabeled counters of a worker, by position in its block. */
export const WORKER_COUNTERS = [
  /** `readMonotonicMs()` at the worker's last tick; a worker without ticks is stuck. */
  "heartbeatMs",
  "requests",
  "connectionsAccepted",
  /** Gauge: open client connections. */
  "connectionsActive",
  /** Connections and requests refused because of `connectionsMax`. */
  "shed",
  "retries",
  /** Retries refused by the budget. */
  "retriesRefused",
  "ejections",
  "accessLogLines",
  /** Lines dropped because the log could not be written fast enough. */
  "accessLogDropped",
  /** Gauge: open WebSockets. */
  "webSocketsActive",
  /** Requests refused before routing, for example malformed targets. */
  "badRequests",
  /** Exported spans, and lost spans by reason. */
  "spansExported",
  "spansDroppedQueueFull",
  "spansDroppedRejected",
  "spansDroppedUnreachable",
  "spansDroppedShutdown",
  /** Connections refused because of `connectionsPerAddressMax`. */
  "addressRefused",
  /** Request bodies refused below the minimum rate. */
  "slowBodies",
  /** Clients disconnected because they read too slowly. */
  "slowReaders",
  /** Clients disconnected because the unsent bytes of all clients exceeded `unsentBytesMax`. */
  "unsentDropped",
  /** Gauge: response bytes buffered for slow clients. */
  "unsentBytes",
  /** Failures with EMFILE or ENFILE. */
  "descriptorErrors",
  /** Requests refused by a rate limit. */
  "rateLimited",
  /** Requests that were limited by this process alone because Redis did not respond. */
  "rateLimitsLocal",
  "aiAccountsLocal",
  /** Keys of rate limits that were dropped while in use because the table was full. */
  "rateKeysEvicted",
  /** Requests that waited for a place on their route, and those refused because the queue was full or too slow. */
  "queued",
  "queueFull",
  "queueTimeouts",
  /** Circuits that were opened, and requests refused because all circuits of their route were open. */
  "circuitsOpened",
  "circuitRefused",
  /** Responses from the cache: fresh, and stale ones; requests that went upstream; responses stored and revalidated. */
  "cacheHits",
  "cacheStale",
  "cacheMisses",
  "cacheStored",
  "cacheRevalidated",
  /** Revalidations that no client waited for. */
  "cacheDetached",
  /** Responses that were not compressed because all memory for it was in use. */
  "compressionSkipped",
  /** Copies of requests that a mirror has answered, that failed, and that were not sent because of a bound. */
  "mirrored",
  "mirrorFailed",
  "mirrorSkipped",
  /** Exchanges that were recorded, and those that were not because of a bound. */
  "recorded",
  "recordingSkipped",
  /** Responses that did not conform to the OpenAPI document of their route. */
  "responseViolations",
  /** Responses that were too large to be checked, or compressed by the upstream. */
  "responsesUnchecked",
  /** Requests to models that the guard has blocked, and those that it has only reported. */
  "promptsBlocked",
  "promptsReported",
  /** WebSockets, and bodies that are no requests to models, on AI routes. */
  "modelRequestsUnread",
] as const;

/** The name of a counter in {@link WORKER_COUNTERS}. */
export type WorkerCounter = (typeof WORKER_COUNTERS)[number];

/** Maximum number of series (combinations of route, method and status) per worker. */
export const METRIC_SERIES_MAX = 32_768;

/** The counter for each reason of lost spans. */
export const SPAN_LOSS_COUNTERS: Readonly<Record<SpanLoss, WorkerCounter>> = {
  queue_full: "spansDroppedQueueFull",
  rejected: "spansDroppedRejected",
  unreachable: "spansDroppedUnreachable",
  shutdown: "spansDroppedShutdown",
};

/** One combination of labels with its values. */
export interface MetricSeries {
  /** `RouteSpec.metricsId`; 0: no route, -1: the overflow series, -2: the gateway's own paths. */
  metricsId: number;
  /** A value of {@link METHOD_LABELS}. */
  method: string;
  /** HTTP status; 0 in the overflow series. */
  status: number;
  count: number;
  secondsSum: number;
  /** Not cumulative; one more entry than {@link DURATION_BOUNDS_SECONDS}. */
  buckets: number[];
}

export { DURATION_BOUNDS_SECONDS };

const COUNTERS_AT = 1;
const SERIES_AT = 64;
const BUCKETS = DURATION_BOUNDS_SECONDS.length + 1;
const SERIES_FLOATS = 5 + BUCKETS;
const TARGETS_AT = SERIES_AT + METRIC_SERIES_MAX * SERIES_FLOATS;
const LENGTH = TARGETS_AT + TARGETS_MAX;

/** `metricsId` of the overflow series. */
export const OVERFLOW_METRICS_ID = -1;

/** `metricsId` of the gateway's own paths: users' figures do not contain them. */
export const INTERNAL_METRICS_ID = -2;

/** Labels of the overflow series, which counts requests once all {@link METRIC_SERIES_MAX} series are in use. */
export const OVERFLOW_LABELS = { metricsId: OVERFLOW_METRICS_ID, method: "OTHER", status: 0 };

/**
 * Metrics with one writer (the worker) and one reader (the control plane); aligned 64-bit words are never torn.
 *
 *     [0] series in use   [1 …] WORKER_COUNTERS
 *     [64 …] series: metricsId, method, status, count, seconds, buckets   (series 0: overflow)
 *     then, by target slot: upstream errors
 */
export class MetricBlock {
  readonly values: Float64Array;
  readonly #seriesOfLabels = new Map<number, number>();

  /** Wraps a buffer from {@link allocateMetricBlock}. */
  constructor(buffer: SharedArrayBuffer) {
    this.values = new Float64Array(buffer);
  }

  /** Sets the value of a counter. For the worker. */
  setCounter(counter: WorkerCounter, value: number): void {
    this.values[COUNTERS_AT + WORKER_COUNTERS.indexOf(counter)] = value;
  }

  /** Adds to a counter. For the worker. */
  addCounter(counter: WorkerCounter, change: number): void {
    this.setCounter(counter, this.readCounter(counter) + change);
  }

  /** Position of a counter in {@link values}, to increment it in place. */
  findCounter(counter: WorkerCounter): number {
    return COUNTERS_AT + WORKER_COUNTERS.indexOf(counter);
  }

  /** The value of a counter. */
  readCounter(counter: WorkerCounter): number {
    return this.values[COUNTERS_AT + WORKER_COUNTERS.indexOf(counter)] ?? 0;
  }

  /**
   * Position in {@link values} of the series with these labels, created on first use. Returns the overflow series beyond
   * {@link METRIC_SERIES_MAX}. For the worker.
   */
  findSeries(metricsId: number, methodIndex: number, status: number): number {
    const labels = (metricsId * 16 + methodIndex) * 1024 + status;
    const known = this.#seriesOfLabels.get(labels);
    if (known !== undefined) return known;
    const used = Math.max(1, this.values[0] ?? 0);
    if (used >= METRIC_SERIES_MAX) return SERIES_AT;
    const at = SERIES_AT + used * SERIES_FLOATS;
    this.values[at] = metricsId;
    this.values[at + 1] = methodIndex;
    this.values[at + 2] = status;
    this.values[0] = used + 1;
    this.#seriesOfLabels.set(labels, at);
    return at;
  }

  /** Adds one request of `seconds` to the series at `at`, from {@link findSeries}. */
  addRequest(at: number, seconds: number): void {
    const values = this.values;
    let bucket = 0;
    while (bucket < BUCKETS - 1 && seconds > (DURATION_BOUNDS_SECONDS[bucket] ?? 0)) bucket++;
    values[at + 3] = (values[at + 3] ?? 0) + 1;
    values[at + 4] = (values[at + 4] ?? 0) + seconds;
    values[at + 5 + bucket] = (values[at + 5 + bucket] ?? 0) + 1;
  }

  /** Adds one request without a duration: a stream lasts as long as its client wants. */
  addStream(at: number): void {
    this.values[at + 3] = (this.values[at + 3] ?? 0) + 1;
  }

  /** Counts a failed attempt at the target in `slot`. */
  addUpstreamError(slot: number): void {
    this.values[TARGETS_AT + slot] = (this.values[TARGETS_AT + slot] ?? 0) + 1;
  }

  /** Failed attempts at the target in `slot`. */
  readUpstreamErrors(slot: number): number {
    return this.values[TARGETS_AT + slot] ?? 0;
  }

  /** Clears the slot for another target. */
  clearTarget(slot: number): void {
    this.values[TARGETS_AT + slot] = 0;
  }

  /** All series with requests; the overflow series comes first. For the control plane. */
  *readSeries(): Generator<MetricSeries> {
    const used = Math.max(1, this.values[0] ?? 0);
    for (let series = 0; series < used; series++) {
      const at = SERIES_AT + series * SERIES_FLOATS;
      const count = this.values[at + 3] ?? 0;
      if (count === 0) continue;
      yield {
        metricsId: series === 0 ? OVERFLOW_METRICS_ID : (this.values[at] ?? 0),
        method: METHOD_LABELS[this.values[at + 1] ?? 0] ?? "OTHER",
        status: this.values[at + 2] ?? 0,
        count,
        secondsSum: this.values[at + 4] ?? 0,
        buckets: [...this.values.subarray(at + 5, at + 5 + BUCKETS)],
      };
    }
  }
}

/** Allocates the block of one worker: 13 MB of address space, which occupies memory only as it is used. */
export function allocateMetricBlock(): SharedArrayBuffer {
  return new SharedArrayBuffer(LENGTH * 8);
}
