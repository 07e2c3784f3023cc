// Counters, gauges and histograms: families with a bounded number of series; a series is a plain object with values.
import {
  checkBounds,
  checkLabelNames,
  checkMetricName,
  DURATION_BOUNDS_SECONDS,
  type HistogramSample,
  type LabelPairs,
  type MetricFamily,
  type ScalarSample,
} from "./family.ts";

/** Default maximum number of series per family. */
const SERIES_MAX_DEFAULT = 1_000;
/** Label value of the series that collects the excess of a full family. */
const OVERFLOW_LABEL = "overflow";

/** Options of a family. */
export interface FamilyOptions<L extends string> {
  name: string;
  help: string;
  labels?: readonly L[];
  /** Maximum number of label combinations; further ones share one overflow series. Default 1 000. */
  seriesMax?: number;
}

/**
 * Options of a histogram. `bounds` are upper bounds in ascending order, without +Inf. Default: request durations in
 * seconds.
 */
export interface HistogramOptions<L extends string> extends FamilyOptions<L> {
  bounds?: readonly number[];
}

/** Label values by name; numbers are rendered in decimal. */
export type LabelValues<L extends string> = Readonly<Record<L, string | number>>;

/** A series of a counter. Keep a reference on hot paths: `add` is a plain addition. */
export class CounterSeries {
  value = 0;
  /** Adds `amount`; negative amounts and NaN are ignored. */
  add(amount = 1): void {
    if (amount > 0) this.value += amount;
  }
}

/** A series of a gauge. */
export class GaugeSeries {
  value = 0;
  set(value: number): void {
    this.value = value;
  }
  add(amount = 1): void {
    this.value += amount;
  }
}

/** A series of a histogram. */
export class HistogramSeries {
  readonly bounds: readonly number[];
  /** One entry per bound, and one for values above all bounds; not cumulative. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  /** Records an observation; NaN is ignored. */
  observe(value: number): void {
    if (value !== value) return;
    const bounds = this.bounds;
    let index = 0;
    while (index < bounds.length && value > bounds[index]!) index += 1;
    this.counts[index]! += 1;
    this.sum += value;
  }
}

/** A counter with its series. */
export class Counter<L extends string = never> {
  readonly #series: SeriesTable<L, CounterSeries>;
  readonly #options: FamilyOptions<L>;

  constructor(options: FamilyOptions<L>, onOverflow: () => void = () => {}) {
    this.#options = options;
    this.#series = new SeriesTable(options, () => new CounterSeries(), onOverflow);
  }

  /** Returns the series of these label values, created on first use. */
  with(labels: LabelValues<L>): CounterSeries {
    return this.#series.get(labels);
  }

  /** Adds to the only series, for families without labels. */
  add(this: Counter, amount = 1): void {
    this.with({}).add(amount);
  }

  /** Removes a series whose label values no longer exist. */
  remove(labels: LabelValues<L>): void {
    this.#series.remove(labels);
  }

  collect(): MetricFamily {
    const { name, help } = this.#options;
    return { type: "counter", name, help, samples: this.#series.map(toScalar) };
  }
}

/** A gauge with its series. */
export class Gauge<L extends string = never> {
  readonly #series: SeriesTable<L, GaugeSeries>;
  readonly #options: FamilyOptions<L>;

  constructor(options: FamilyOptions<L>, onOverflow: () => void = () => {}) {
    this.#options = options;
    this.#series = new SeriesTable(options, () => new GaugeSeries(), onOverflow);
  }

  /** Returns the series of these label values, created on first use. */
  with(labels: LabelValues<L>): GaugeSeries {
    return this.#series.get(labels);
  }

  /** Sets the only series, for families without labels. */
  set(this: Gauge, value: number): void {
    this.with({}).set(value);
  }

  /** Adds to the only series, for families without labels. */
  add(this: Gauge, amount = 1): void {
    this.with({}).add(amount);
  }

  /** Removes a series whose label values no longer exist. */
  remove(labels: LabelValues<L>): void {
    this.#series.remove(labels);
  }

  collect(): MetricFamily {
    const { name, help } = this.#options;
    return { type: "gauge", name, help, samples: this.#series.map(toScalar) };
  }
}

/** A histogram with its series. */
export class Histogram<L extends string = never> {
  readonly #series: SeriesTable<L, HistogramSeries>;
  readonly #options: HistogramOptions<L>;

  constructor(options: HistogramOptions<L>, onOverflow: () => void = () => {}) {
    const bounds = Object.freeze([...(options.bounds ?? DURATION_BOUNDS_SECONDS)]);
    checkBounds(options.name, bounds);
    this.#options = options;
    this.#series = new SeriesTable(options, () => new HistogramSeries(bounds), onOverflow);
  }

  /** Returns the series of these label values, created on first use. */
  with(labels: LabelValues<L>): HistogramSeries {
    return this.#series.get(labels);
  }

  /** Records an observation in the only series, for families without labels. */
  observe(this: Histogram, value: number): void {
    this.with({}).observe(value);
  }

  /** Removes a series whose label values no longer exist. */
  remove(labels: LabelValues<L>): void {
    this.#series.remove(labels);
  }

  collect(): MetricFamily {
    const { name, help } = this.#options;
    return { type: "histogram", name, help, samples: this.#series.map(toHistogram) };
  }
}

const toScalar = (labels: LabelPairs, series: { value: number }): ScalarSample => ({
  labels,
  value: series.value,
});

const toHistogram = (labels: LabelPairs, series: HistogramSeries): HistogramSample => ({
  labels,
  bounds: series.bounds,
  counts: series.counts,
  sum: series.sum,
});

class SeriesTable<L extends string, S> {
  readonly #names: readonly L[];
  readonly #seriesMax: number;
  readonly #make: () => S;
  readonly #onOverflow: () => void;
  readonly #series = new Map<string, { labels: LabelPairs; series: S }>();
  #overflow: S | undefined;

  constructor(options: FamilyOptions<L>, make: () => S, onOverflow: () => void) {
    checkMetricName(options.name);
    this.#names = options.labels ?? [];
    checkLabelNames(options.name, this.#names);
    this.#seriesMax = options.seriesMax ?? SERIES_MAX_DEFAULT;
    this.#make = make;
    this.#onOverflow = onOverflow;
    // A family without labels starts at zero, so that rates have a starting point.
    if (this.#names.length === 0) this.#series.set("", { labels: [], series: make() });
  }

  get(labels: LabelValues<L>): S {
    const key = this.#key(labels);
    const known = this.#series.get(key);
    if (known !== undefined) return known.series;
    if (this.#series.size >= this.#seriesMax) {
      this.#onOverflow();
      this.#overflow ??= this.#make();
      return this.#overflow;
    }
    const series = this.#make();
    const pairs = this.#names.map((name) => [name, String(labels[name])] as const);
    this.#series.set(key, { labels: pairs, series });
    return series;
  }

  remove(labels: LabelValues<L>): void {
    if (this.#names.length > 0) this.#series.delete(this.#key(labels));
  }

  *map<T>(show: (labels: LabelPairs, series: S) => T): Generator<T> {
    for (const { labels, series } of this.#series.values()) yield show(labels, series);
    if (this.#overflow !== undefined) {
      yield show(
        this.#names.map((name) => [name, OVERFLOW_LABEL] as const),
        this.#overflow,
      );
    }
  }

  // The length prefix distinguishes ("a","b") from ("a,b","").
  #key(labels: LabelValues<L>): string {
    let key = "";
    for (const name of this.#names) {
      const value = String(labels[name]);
      key += `${value.length}:${value}`;
    }
    return key;
  }
}
