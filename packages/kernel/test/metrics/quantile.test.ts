// Quantiles of histograms.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DURATION_BOUNDS_SECONDS, estimateQuantile } from "@platform/kernel/metrics";

const quantiles: [buckets: number[], quantile: number, seconds: number][] = [
  [[], 0.5, Number.NaN],
  [[0, 0, 0], 0.5, Number.NaN],
  [[4], 0.5, 0.000_25],
  [[0, 4], 0.5, 0.000_75],
  [[99, 1], 0.99, 0.0005],
  [[99, 1], 1, 0.001],
  [[...DURATION_BOUNDS_SECONDS.map(() => 0), 5], 0.5, 10],
];

for (const [buckets, quantile, seconds] of quantiles) {
  test(`the ${quantile} quantile of [${buckets.join()}] is ${seconds} s`, () => {
    assert.equal(estimateQuantile(DURATION_BOUNDS_SECONDS, buckets, quantile), seconds);
  });
}
