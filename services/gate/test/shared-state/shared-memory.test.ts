// The shared memory of workers: what is added is read, what is cleared is gone, every table has an end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ROUTE_STATE_INTS } from "../../src/shared-state/route-state.ts";
import {
  ActiveCounts,
  allocateMetricBlock,
  allocateSharedBuffers,
  DURATION_BOUNDS_SECONDS,
  METRIC_SERIES_MAX,
  MetricBlock,
  OVERFLOW_METRICS_ID,
  SharedRouteState,
  SlotTable,
} from "../../src/shared-state/index.ts";

test("active counts are summed over workers, without ended workers", () => {
  const counts = new ActiveCounts(allocateSharedBuffers(3));
  counts.add(0, 5, 1);
  counts.add(2, 5, 1);
  counts.add(2, 5, 1);
  counts.add(2, 6, 1);
  assert.equal(counts.sum(5), 3);
  counts.clearWorker(2);
  assert.deepEqual([counts.sum(5), counts.sum(6)], [1, 0]);
  counts.clear(5);
  assert.equal(counts.sum(5), 0);
});

test("turns wrap without becoming negative", () => {
  const buffers = allocateSharedBuffers(1);
  new Int32Array(buffers.routes)[3 * ROUTE_STATE_INTS] = 0x7fffffff;
  const routes = new SharedRouteState(buffers.routes);
  assert.deepEqual(
    [routes.takeTurn(3), routes.takeTurn(3), routes.takeTurn(3)],
    [0x7fffffff, 0, 1],
  );
  routes.clear(3);
  assert.equal(routes.takeTurn(3), 0);
});

test("the number of workers is limited", () => {
  for (const workers of [0, -1, 1.5, 257])
    assert.throws(() => allocateSharedBuffers(workers), RangeError);
});

test("metrics of a worker can be read through another view, including buckets", () => {
  const buffer = allocateMetricBlock();
  const writer = new MetricBlock(buffer);
  const reader = new MetricBlock(buffer);
  const row = writer.findSeries(7, 1, 200);
  writer.addRequest(row, 0.001);
  writer.addRequest(row, 0.2);
  writer.addRequest(writer.findSeries(7, 1, 200), 99);
  writer.addRequest(writer.findSeries(0, 0, 502), 0);
  writer.setCounter("retries", 3);
  writer.addUpstreamError(4);
  const series = [...reader.readSeries()];
  assert.equal(series.length, 2);
  assert.deepEqual(
    series.map(({ metricsId, method, status, count }) => [metricsId, method, status, count]),
    [
      [7, "GET", 200, 3],
      [0, "OTHER", 502, 1],
    ],
  );
  const buckets = series[0]!.buckets;
  assert.equal(buckets.length, DURATION_BOUNDS_SECONDS.length + 1);
  assert.equal(buckets[DURATION_BOUNDS_SECONDS.indexOf(0.001)], 1);
  assert.equal(buckets[DURATION_BOUNDS_SECONDS.indexOf(0.25)], 1);
  assert.equal(buckets.at(-1), 1);
  assert.ok(Math.abs(series[0]!.secondsSum - 99.201) < 1e-9);
  assert.equal(reader.readCounter("retries"), 3);
  assert.equal(reader.readUpstreamErrors(4), 1);
  reader.clearTarget(4);
  assert.equal(writer.readUpstreamErrors(4), 0);
});

test("combinations beyond the maximum number of series are counted together", () => {
  const block = new MetricBlock(allocateMetricBlock());
  for (let id = 1; id < METRIC_SERIES_MAX; id++) block.addRequest(block.findSeries(id, 1, 200), 0);
  block.addRequest(block.findSeries(METRIC_SERIES_MAX, 1, 200), 0);
  block.addRequest(block.findSeries(METRIC_SERIES_MAX + 1, 3, 500), 0);
  const series = [...block.readSeries()];
  assert.equal(series.length, METRIC_SERIES_MAX);
  assert.deepEqual([series[0]!.metricsId, series[0]!.count], [OVERFLOW_METRICS_ID, 2]);
});

test("equal keys share a slot, and a released slot is cleared and reused after a delay", () => {
  let nowMs = 0;
  const reused: number[] = [];
  const table = new SlotTable({
    slotsMax: 2,
    reuseDelayMs: 100,
    readNowMs: () => nowMs,
    onReuse: (slot) => reused.push(slot),
  });
  assert.deepEqual([table.acquire("a"), table.acquire("b"), table.acquire("a")], [0, 1, 0]);
  assert.equal(table.acquire("c"), undefined);
  table.release("a");
  assert.equal(table.find("a"), 0);
  table.release("a");
  assert.equal(table.find("a"), undefined);
  assert.equal(table.acquire("c"), undefined);
  nowMs = 100;
  assert.equal(table.acquire("c"), 0);
  assert.deepEqual(reused, [0]);
  assert.throws(() => table.release("a"));
});
