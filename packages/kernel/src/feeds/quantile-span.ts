// A quantile of what a histogram has counted in a span of time.
import { estimateQuantile } from "../metrics/index.ts";

/** Counts of a histogram since it began. */
export interface HistogramCounts {
  /** Upper bounds of the ranges, ascending; the last range may have none. */
  bounds: readonly number[];
  /** Not cumulative over the ranges; they only grow. */
  counts: ArrayLike<number>;
}

/** Measures a quantile from one moment to another. Keeps the counts that it is given. */
export class QuantileSpan {
  readonly #quantile: number;
  #base: ArrayLike<number>;
  #last: ArrayLike<number>;

  /** The first span begins with these counts. */
  constructor(quantile: number, { counts }: HistogramCounts) {
    this.#quantile = quantile;
    this.#base = counts;
    this.#last = counts;
  }

  /** The span begins with the counts measured last. */
  restart(): void {
    this.#base = this.#last;
  }

  /** The quantile from the beginning of the span to now; NaN if nothing was counted. */
  measure({ bounds, counts }: HistogramCounts): number {
    this.#last = counts;
    const grown = Array.from(counts, (count, range) => count - (this.#base[range] ?? 0));
    // A histogram that began again has nothing to compare with.
    if (grown.some((count) => count < 0)) return Number.NaN;
    return estimateQuantile(bounds, grown, this.#quantile);
  }
}
