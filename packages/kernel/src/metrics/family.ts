// Metric families and samples, the interface between instruments and rendering.

/** Label names and values, in output order. */
export type LabelPairs = readonly (readonly [name: string, value: string])[];

/** A value with its labels. */
export interface ScalarSample {
  labels: LabelPairs;
  value: number;
}

/**
 * A histogram series. `counts[i]` is the number of observations at or below `bounds[i]` and above the previous bound
 * (not cumulative); the last entry counts those above all bounds. Typed arrays over shared memory can be used directly.
 */
export interface HistogramSample {
  labels: LabelPairs;
  bounds: ArrayLike<number>;
  counts: ArrayLike<number>;
  sum: number;
}

/** A metric with all its series at one moment. */
export type MetricFamily =
  | { type: "counter" | "gauge"; name: string; help: string; samples: Iterable<ScalarSample> }
  | { type: "histogram"; name: string; help: string; samples: Iterable<HistogramSample> };

/**
 * A source of samples, called when metrics are scraped. Families of the same name from several collectors are merged:
 * equal series of counters and histograms are added, of gauges the last one wins.
 */
export interface Collector {
  /** Stable name, a label of the metric that counts failures. */
  readonly name: string;
  collect(): Iterable<MetricFamily> | Promise<Iterable<MetricFamily>>;
}

/** Default histogram bounds in seconds for request durations. */
export const DURATION_BOUNDS_SECONDS: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Throws a TypeError if the name is not allowed in Prometheus text format. */
export function checkMetricName(name: string): void {
  if (!METRIC_NAME.test(name)) throw new TypeError(`metric name not allowed: ${name}`);
}

/** Throws a TypeError if names are not allowed, repeated, or reserved (`le`, `quantile`, `__*`). */
export function checkLabelNames(metric: string, names: readonly string[]): void {
  for (const [index, name] of names.entries()) {
    if (!LABEL_NAME.test(name) || name.startsWith("__") || name === "le" || name === "quantile") {
      throw new TypeError(`label name not allowed in ${metric}: ${name}`);
    }
    if (names.indexOf(name) !== index) throw new TypeError(`duplicate label in ${metric}: ${name}`);
  }
}

/** Throws a TypeError unless there is at least one bound and all are finite and ascending. */
export function checkBounds(metric: string, bounds: readonly number[]): void {
  if (bounds.length === 0) throw new TypeError(`no buckets in ${metric}`);
  for (const [index, bound] of bounds.entries()) {
    if (!Number.isFinite(bound) || (index > 0 && bound <= (bounds[index - 1] ?? bound))) {
      throw new TypeError(`buckets of ${metric} must be finite and ascending`);
    }
  }
}

/** The sum of the series that `accepts` selects; NaN if there is no such family, or it is a histogram. */
export function sumSeries(
  family: MetricFamily | undefined,
  accepts: (labels: LabelPairs) => boolean,
): number {
  if (family === undefined || family.type === "histogram") return Number.NaN;
  let sum = 0;
  for (const { labels, value } of family.samples) if (accepts(labels)) sum += value;
  return sum;
}
