// Counters, gauges and histograms: families with a bounded number of series, each series a plain object to add to.
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

/** Series that one family keeps unless told otherwise. */
export const SERIES_MAX_DEFAULT = 1_000;
/** The value of every label of the series into which a full family folds. */
export const OVERFLOW_LABEL = "overflow";

/** What every family is made from. */
export interface FamilyOptions<L extends string> {
  name: string;
  help: string;
  labels?: readonly L[];
  /** Label combinations kept; further ones share one overflow series. Default 1 000. */
  seriesMax?: number;
}

/** As `FamilyOptions`; `bounds` are upper bounds, ascending, without +Inf. Default: request durations in seconds. */
export interface HistogramOptions<L extends string> extends FamilyOptions<L> {
  bounds?: readonly number[];
}

/** Label names to values; numbers are shown in decimal. */
export type LabelValues<L extends string> = Readonly<Record<L, string | number>>;

/** One series of a counter. Keep it on hot paths: `add` is a plain addition. */
export class CounterSeries {
  value = 0;
  /** Adds `amount`, which must not be negative (a negative or NaN amount is ignored: counters only rise). */
  add(amount = 1): void {
    if (amount > 0) this.value += amount;
  }
}

/** One series of a gauge. */
export class GaugeSeries {
  value = 0;
  set(value: number): void {
    this.value = value;
  }
  add(amount = 1): void {
    this.value += amount;
  }
}

/** One series of a histogram. */
export class HistogramSeries {
  readonly bounds: readonly number[];
  /** One entry per bound and one for everything above; not cumulated. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  /** Counts one observation; NaN is ignored. */
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

  /** The series of these label values, made on first use. */
  with(labels: LabelValues<L>): CounterSeries {
    return this.#series.get(labels);
  }

  /** Adds to the only series; for families without labels. */
  add(this: Counter, amount = 1): void {
    this.with({}).add(amount);
  }

  /** Forgets one series, for label values that have ended. */
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

  /** The series of these label values, made on first use. */
  with(labels: LabelValues<L>): GaugeSeries {
    return this.#series.get(labels);
  }

  /** Sets the only series; for families without labels. */
  set(this: Gauge, value: number): void {
    this.with({}).set(value);
  }

  /** Adds to the only series; for families without labels. */
  add(this: Gauge, amount = 1): void {
    this.with({}).add(amount);
  }

  /** Forgets one series, for label values that have ended. */
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

  /** The series of these label values, made on first use. */
  with(labels: LabelValues<L>): HistogramSeries {
    return this.#series.get(labels);
  }

  /** Observes into the only series; for families without labels. */
  observe(this: Histogram, value: number): void {
    this.with({}).observe(value);
  }

  /** Forgets one series, for label values that have ended. */
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
    // A family without labels shows its zero from the start, so that rates have something to begin at.
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

  // The length before each value keeps ("a","b") apart from ("a,b","") whatever the values hold.
  #key(labels: LabelValues<L>): string {
    let key = "";
    for (const name of this.#names) {
      const value = String(labels[name]);
      key += `${value.length}:${value}`;
    }
    return key;
  }
}
