import assert from "node:assert/strict";
import { test } from "node:test";
import { takeMedian, takePercentile, takeRatioSpread } from "../harness/statistics.ts";

test("the median is the middle value, or the mean of the two middle ones", () => {
  assert.equal(takeMedian([9, 1, 5]), 5);
  assert.equal(takeMedian([4, 1, 3, 2]), 2.5);
  assert.ok(Number.isNaN(takeMedian([])));
});

test("a percentile is the least value that the fraction does not exceed", () => {
  const values = Array.from({ length: 100 }, (_, index) => 100 - index);
  assert.deepEqual([takePercentile(values, 0.5), takePercentile(values, 0.99)], [50, 99]);
  assert.equal(takePercentile([7], 0.01), 7);
});

test("ratios are taken within a round, and rounds that did not count are left out", () => {
  const spread = takeRatioSpread([10, undefined, 30, 8], [5, 5, 10, undefined]);
  assert.deepEqual(spread, { median: 2.5, min: 2, max: 3 });
});
