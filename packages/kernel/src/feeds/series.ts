// Figures of a service over time, in memory: the last five minutes, three hours and a day.
import type { Clock } from "../time/index.ts";
import { QuantileSpan, type HistogramCounts } from "./quantile-span.ts";

interface NamedFigure {
  /** Stable name, such as `requests`. */
  name: string;
  /** For example `1/s`, `bytes`, `ms`; empty for plain numbers. */
  unit: string;
  /** Label for people. */
  title: string;
}

/** A number that is sampled every second. */
interface SampledFigure extends NamedFigure {
  /** Gauges are averaged over a step; of counters the increase per second is kept. */
  kind: "gauge" | "counter";
  /** The current value. Must be cheap; NaN if it is unknown. */
  read: () => number;
}

/** A quantile of what a histogram has counted in the time of a point. */
export interface QuantileFigure extends NamedFigure {
  kind: "quantile";
  /** For example 0.99. */
  quantile: number;
  /** The counts as they are now, in their own memory. Figures with the same function share one call per sample. */
  read: () => HistogramCounts;
}

/** A figure that is kept over time. */
export type Figure = SampledFigure | QuantileFigure;

/** Points of one figure; null where there is none. */
interface FigureSeries {
  name: string;
  unit: string;
  values: (number | null)[];
}

/** The answer to a request for series. */
export interface SeriesAnswer {
  /** Seconds between two points. */
  step: number;
  /** Time of the first point, epoch ms. */
  from: number;
  series: FigureSeries[];
}

/** Steps in seconds, and the number of points that are kept: 7 KB for each figure. */
const TIERS = [
  { step: 1, length: 300 },
  { step: 10, length: 1_080 },
  { step: 300, length: 288 },
] as const;
/** Maximum number of figures of a service. */
const FIGURES_MAX = 200;

/** Steps that can be requested, in seconds. */
export const SERIES_STEPS = TIERS.map(({ step }) => step);

/** Samples figures and keeps them. */
export class SeriesStore {
  readonly figures: readonly Figure[];
  readonly #clock: Clock;
  readonly #tiers: readonly Tier[];
  /** Quantiles since the last sample; undefined for other figures. */
  readonly #spans: readonly (QuantileSpan | undefined)[];
  readonly #before: Float64Array;
  readonly #latest: Float64Array;
  #sampledMs: number;

  /** Throws a TypeError for too many figures, or two of the same name. */
  constructor(figures: readonly Figure[], clock: Clock) {
    if (figures.length > FIGURES_MAX) throw new TypeError(`more than ${FIGURES_MAX} figures`);
    if (new Set(figures.map(({ name }) => name)).size < figures.length) {
      throw new TypeError("two figures have the same name");
    }
    this.figures = figures;
    this.#clock = clock;
    const counts = readCounts(figures);
    const createSpans = () => figures.map((figure) => createSpan(figure, counts));
    this.#tiers = TIERS.map(({ step, length }) => new Tier(step * 1000, length, createSpans()));
    this.#spans = createSpans();
    this.#before = Float64Array.from(figures, (figure) =>
      figure.kind === "quantile" ? Number.NaN : figure.read(),
    );
    this.#latest = new Float64Array(figures.length).fill(Number.NaN);
    this.#sampledMs = clock.monotonicMs();
  }

  /** The last sample, by name; null if a value is unknown. */
  get latest(): Record<string, number | null> {
    return Object.fromEntries(
      this.figures.map(({ name }, index) => [name, toPoint(this.#latest[index]!)]),
    );
  }

  /** Takes a sample; called once per second. */
  sample(): void {
    const monotonicMs = this.#clock.monotonicMs();
    const seconds = Math.max(0.001, (monotonicMs - this.#sampledMs) / 1000);
    this.#sampledMs = monotonicMs;
    const counts = readCounts(this.figures);
    for (const [index, figure] of this.figures.entries()) {
      if (figure.kind === "quantile") {
        const span = this.#spans[index]!;
        span.restart();
        this.#latest[index] = span.measure(counts.get(figure.read)!);
        continue;
      }
      const value = figure.read();
      // A counter that was reset has no rate.
      const grown = value - this.#before[index]!;
      const isGauge = figure.kind === "gauge";
      this.#latest[index] = isGauge ? value : grown < 0 ? Number.NaN : grown / seconds;
      this.#before[index] = value;
    }
    const nowMs = this.#clock.now();
    const counted = this.figures.map(({ read }) => counts.get(read as QuantileFigure["read"]));
    for (const tier of this.#tiers) tier.add(nowMs, this.#latest, counted);
  }

  /** Reads complete points from `fromMs` on, as far as they are kept. `names` and `step` must exist. */
  read(names: readonly string[], fromMs: number, step: number): SeriesAnswer {
    const tier = this.#tiers.find(({ stepMs }) => stepMs === step * 1000)!;
    const range = tier.findRange(fromMs);
    const series = names.map((name) => {
      const index = this.figures.findIndex((figure) => figure.name === name);
      const values = range.slots.map((slot) => toPoint(tier.read(index, slot)));
      return { name, unit: this.figures[index]!.unit, values };
    });
    return { step, from: range.fromMs, series };
  }

  /** The smallest step whose points reach back to `fromMs`. */
  chooseStep(fromMs: number): number {
    const ageMs = this.#clock.now() - fromMs;
    const found = TIERS.find(({ step, length }) => ageMs <= step * 1000 * length);
    return (found ?? TIERS.at(-1)!).step;
  }
}

/** Reads each histogram once. */
function readCounts(figures: readonly Figure[]): Map<QuantileFigure["read"], HistogramCounts> {
  const counts = new Map<QuantileFigure["read"], HistogramCounts>();
  for (const { kind, read } of figures) {
    if (kind === "quantile" && !counts.has(read)) counts.set(read, read());
  }
  return counts;
}

function createSpan(
  figure: Figure,
  counts: ReadonlyMap<QuantileFigure["read"], HistogramCounts>,
): QuantileSpan | undefined {
  if (figure.kind !== "quantile") return undefined;
  return new QuantileSpan(figure.quantile, counts.get(figure.read)!);
}

/**
 * The points of all figures at one step: a ring of slots, each the mean of the samples in its time, or the quantile of what
 * was counted in it.
 */
class Tier {
  readonly stepMs: number;
  readonly #length: number;
  readonly #spans: readonly (QuantileSpan | undefined)[];
  readonly #values: Float32Array[];
  readonly #sums: Float64Array;
  readonly #counts: Int32Array;
  /** The slot that is being filled, as a number of steps since 1970. */
  #open: number | undefined;
  /** The oldest slot that was ever written. */
  #first = 0;

  constructor(stepMs: number, length: number, spans: readonly (QuantileSpan | undefined)[]) {
    this.stepMs = stepMs;
    this.#length = length;
    this.#spans = spans;
    this.#values = spans.map(() => new Float32Array(length).fill(Number.NaN));
    this.#sums = new Float64Array(spans.length);
    this.#counts = new Int32Array(spans.length);
  }

  /** `counted`: the counts of figures that are quantiles. */
  add(
    nowMs: number,
    sample: Float64Array,
    counted: readonly (HistogramCounts | undefined)[],
  ): void {
    const slot = Math.floor(nowMs / this.stepMs);
    // The clock was set back: the points after it would be in the future.
    if (this.#open === undefined || slot < this.#open) this.#restart(slot);
    else if (slot > this.#open) this.#close(slot);
    for (const [index, value] of sample.entries()) {
      const span = this.#spans[index];
      if (span !== undefined) {
        const quantile = span.measure(counted[index]!);
        this.#sums[index] = quantile;
        this.#counts[index] = Number.isNaN(quantile) ? 0 : 1;
      } else if (!Number.isNaN(value)) {
        this.#sums[index]! += value;
        this.#counts[index]! += 1;
      }
    }
  }

  /** The complete slots from a time on. */
  findRange(fromMs: number): { fromMs: number; slots: number[] } {
    const end = this.#open ?? 0;
    const wanted = Math.floor(fromMs / this.stepMs);
    const first = Math.min(end, Math.max(wanted, this.#first, end - this.#length));
    const slots = Array.from({ length: end - first }, (_, index) => first + index);
    return { fromMs: first * this.stepMs, slots };
  }

  read(figure: number, slot: number): number {
    return this.#values[figure]![slot % this.#length]!;
  }

  #restart(slot: number): void {
    for (const ring of this.#values) ring.fill(Number.NaN);
    this.#first = slot;
    this.#begin(slot);
  }

  // Slots without samples, while the process was blocked or suspended, have no value.
  #close(slot: number): void {
    const closed = this.#open!;
    const gaps = Math.min(slot - closed - 1, this.#length);
    for (const [index, ring] of this.#values.entries()) {
      const count = this.#counts[index]!;
      ring[closed % this.#length] = count === 0 ? Number.NaN : this.#sums[index]! / count;
      for (let gap = 1; gap <= gaps; gap += 1) ring[(closed + gap) % this.#length] = Number.NaN;
    }
    this.#begin(slot);
  }

  #begin(slot: number): void {
    this.#open = slot;
    this.#sums.fill(0);
    this.#counts.fill(0);
    for (const span of this.#spans) span?.restart();
  }
}

// Six significant digits: enough for a chart, and a third of the bytes.
function toPoint(value: number): number | null {
  return Number.isFinite(value) ? Number(value.toPrecision(6)) : null;
}
