// Finds the metric series of a route's requests.
import type { MetricBlock } from "../shared-state/index.ts";

/** Finds the metric series of requests; caches the series used last. */
export class SeriesCache {
  readonly #metricsId: number;
  #labels = -1;
  #series = 0;

  constructor(metricsId: number) {
    this.#metricsId = metricsId;
  }

  /** Position of the series in the block. */
  find(block: MetricBlock, methodIndex: number, status: number): number {
    const labels = methodIndex * 1024 + status;
    if (labels === this.#labels) return this.#series;
    this.#labels = labels;
    this.#series = block.findSeries(this.#metricsId, methodIndex, status);
    return this.#series;
  }
}
