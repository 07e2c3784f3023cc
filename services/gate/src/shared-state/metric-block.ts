// The metrics of one worker in shared memory: it adds, the control plane reads at scrape without asking.
import { DURATION_BOUNDS_SECONDS, HTTP_METHODS } from "@platform/kernel/metrics";
import type { SpanLoss } from "@platform/kernel/trace";
import { TARGETS_MAX } from "./shared-buffers.ts";

/** The values of the `method` label; index 0 stands for every method that is not known. */
export const METHOD_LABELS: readonly string[] = ["OTHER", ...HTTP_METHODS];

/** Counters of a worker without labels, by position in its block. */
export const WORKER_COUNTERS = [
  /** `readMonotonicMs()` of the worker's last second; a worker that is silent for long is stuck. */
  "heartbeatMs",
  "requests",
  /** Requests answered with 5xx. */
  "errors",
  "connectionsAccepted",
  /** A gauge: client connections that are open. */
  "connectionsActive",
  /** Connections and requests refused by the connection bound. */
  "shed",
  "retries",
  /** Retries that the budget refused. */
  "retriesRefused",
  "ejections",
  "accessLogLines",
  /** Lines thrown away because the log could not be written in time. */
  "accessLogDropped",
  /** A gauge: WebSockets that are open. */
  "webSocketsActive",
  /** Refused before routing: malformed targets and the like. */
  "badRequests",
  /** Spans that the collector accepted, and those that were lost, by reason. */
  "spansExported",
  "spansDroppedQueueFull",
  "spansDroppedRejected",
  "spansDroppedUnreachable",
  "spansDroppedShutdown",
  /** Connections closed at once by the bound on those of one address. */
  "addressRefused",
  /** Request bodies refused below the minimum rate. */
  "slowBodies",
  /** Clients disconnected because they read too slowly or not at all. */
  "slowReaders",
  /** Clients disconnected because all together read too little for the memory of unsent bytes. */
  "unsentDropped",
  /** A gauge: bytes of answers that wait for clients to read them. */
  "unsentBytes",
  /** Failures because no file descriptor was left (EMFILE, ENFILE). */
  "descriptorErrors",
] as const;

/** The name of a counter in {@link WORKER_COUNTERS}. */
export type WorkerCounter = (typeof WORKER_COUNTERS)[number];

/** Most combinations of route, method and status that one worker keeps apart. */
export const METRIC_SERIES_MAX = 32_768;

/** The counter of each reason for which spans are lost. */
export const SPAN_LOSS_COUNTERS: Readonly<Record<SpanLoss, WorkerCounter>> = {
  queue_full: "spansDroppedQueueFull",
  rejected: "spansDroppedRejected",
  unreachable: "spansDroppedUnreachable",
  shutdown: "spansDroppedShutdown",
};

/** What one series says about one combination of labels. */
export interface MetricSeries {
  /** `RouteSpec.metricsId`; 0: no route, -1: the series were full. */
  metricsId: number;
  /** A value of {@link METHOD_LABELS}. */
  method: string;
  /** HTTP status; 0 in the series for what found no series. */
  status: number;
  count: number;
  secondsSum: number;
  /** Not cumulative; one more entry than {@link DURATION_BOUNDS_SECONDS}. */
  buckets: number[];
}

export { DURATION_BOUNDS_SECONDS };

const COUNTERS_AT = 1;
const SERIES_AT = 32;
const BUCKETS = DURATION_BOUNDS_SECONDS.length + 1;
const SERIES_FLOATS = 5 + BUCKETS;
const TARGETS_AT = SERIES_AT + METRIC_SERIES_MAX * SERIES_FLOATS;
const LENGTH = TARGETS_AT + TARGETS_MAX;

/** The metrics id of what found no series. */
export const OVERFLOW_METRICS_ID = -1;

/** Labels of the series for what found no series. */
export const OVERFLOW_LABELS = { metricsId: OVERFLOW_METRICS_ID, method: "OTHER", status: 0 };

/**
 * One writer (the worker), one reader (the control plane); aligned 64-bit words are never torn.
 *
 *     [0] series in use   [1 …] WORKER_COUNTERS
 *     [32 …] series: metricsId, method, status, count, seconds, buckets   (series 0: what found no series)
 *     then, by target slot: upstream errors
 */
export class MetricBlock {
  readonly values: Float64Array;
  readonly #seriesOfLabels = new Map<number, number>();

  /** Wraps `buffer`, from {@link allocateMetricBlock}. */
  constructor(buffer: SharedArrayBuffer) {
    this.values = new Float64Array(buffer);
  }

  /** Sets a counter's value. For the worker. */
  setCounter(counter: WorkerCounter, value: number): void {
    this.values[COUNTERS_AT + WORKER_COUNTERS.indexOf(counter)] = value;
  }

  /** Adds to a counter. For the worker. */
  addCounter(counter: WorkerCounter, change: number): void {
    this.setCounter(counter, this.readCounter(counter) + change);
  }

  /** Position in {@link values} of a counter, to be added to in place. */
  findCounter(counter: WorkerCounter): number {
    return COUNTERS_AT + WORKER_COUNTERS.indexOf(counter);
  }

  /** A counter's value. */
  readCounter(counter: WorkerCounter): number {
    return this.values[COUNTERS_AT + WORKER_COUNTERS.indexOf(counter)] ?? 0;
  }

  /**
   * Position in {@link values} of the series for the labels, made on first use; the overflow series once
   * {@link METRIC_SERIES_MAX} are taken. For the worker.
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

  /** Counts a failed attempt at the target in `slot`. */
  addUpstreamError(slot: number): void {
    this.values[TARGETS_AT + slot] = (this.values[TARGETS_AT + slot] ?? 0) + 1;
  }

  /** Failed attempts at the target in `slot`. */
  readUpstreamErrors(slot: number): number {
    return this.values[TARGETS_AT + slot] ?? 0;
  }

  /** Makes the slot ready for another target. */
  clearTarget(slot: number): void {
    this.values[TARGETS_AT + slot] = 0;
  }

  /** Every series in use; the overflow series first if it counted anything. For the control plane. */
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

/** Allocates the block of one worker; 13 MB of address space, touched as it is used. */
export function allocateMetricBlock(): SharedArrayBuffer {
  return new SharedArrayBuffer(LENGTH * 8);
}
