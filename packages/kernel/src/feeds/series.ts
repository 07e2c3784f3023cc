// Figures of a service over time, in memory: the last five minutes, three hours and a day.
import type { Clock } from "../time/index.ts";

/** A number that is sampled every second. */
export interface Figure {
  /** Stable name, such as `requests`. */
  name: string;
  /** For example `1/s`, `bytes`, `ms`; empty for plain numbers. */
  unit: string;
  /** Label for people. */
  title: string;
  /** Gauges are averaged over a step; of counters the increase per second is kept. */
  kind: "gauge" | "counter";
  /** The current value. Must be cheap; NaN if it is unknown. */
  read: () => number;
}

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

/** Steps in seconds, and the number of points that are kept: 13 KB for each figure. */
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
    this.#tiers = TIERS.map(({ step, length }) => new Tier(step * 1000, length, figures.length));
    this.#before = Float64Array.from(figures, ({ read }) => read());
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
    for (const [index, { kind, read }] of this.figures.entries()) {
      const value = read();
      // A counter that was reset has no rate.
      const grown = value - this.#before[index]!;
      this.#latest[index] = kind === "gauge" ? value : grown < 0 ? Number.NaN : grown / seconds;
      this.#before[index] = value;
    }
    const nowMs = this.#clock.now();
    for (const tier of this.#tiers) tier.add(nowMs, this.#latest);
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

/** The points of all figures at one step: a ring of slots, each the mean of the samples in its time. */
class Tier {
  readonly stepMs: number;
  readonly #length: number;
  readonly #values: Float64Array[];
  readonly #sums: Float64Array;
  readonly #counts: Int32Array;
  /** The slot that is being filled, as a number of steps since 1970. */
  #open: number | undefined;
  /** The oldest slot that was ever written. */
  #first = 0;

  constructor(stepMs: number, length: number, figures: number) {
    this.stepMs = stepMs;
    this.#length = length;
    this.#values = Array.from({ length: figures }, () => new Float64Array(length).fill(Number.NaN));
    this.#sums = new Float64Array(figures);
    this.#counts = new Int32Array(figures);
  }

  add(nowMs: number, sample: Float64Array): void {
    const slot = Math.floor(nowMs / this.stepMs);
    // The clock was set back: the points after it would be in the future.
    if (this.#open === undefined || slot < this.#open) this.#restart(slot);
    else if (slot > this.#open) this.#close(slot);
    for (const [index, value] of sample.entries()) {
      if (Number.isNaN(value)) continue;
      this.#sums[index]! += value;
      this.#counts[index]! += 1;
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
  }
}

// Six significant digits: enough for a chart, and a third of the bytes.
function toPoint(value: number): number | null {
  return Number.isFinite(value) ? Number(value.toPrecision(6)) : null;
}
