// Figures over time: rates, means, gaps, and what a clock that jumps does to them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SeriesStore, type Figure } from "../../src/feeds/series.ts";

const START_MS = 1_700_000_100_000;

function makeStore() {
  const clock = { wallMs: START_MS, monotonicMs: 0 };
  const values = { total: 0, level: 0 };
  const figures: Figure[] = [
    { name: "total", unit: "1/s", title: "Total", kind: "counter", read: () => values.total },
    { name: "level", unit: "", title: "Level", kind: "gauge", read: () => values.level },
  ];
  const store = new SeriesStore(figures, {
    now: () => clock.wallMs,
    monotonicMs: () => clock.monotonicMs,
  });
  const tick = (times = 1, stepMs = 1_000): void => {
    for (let time = 0; time < times; time += 1) {
      clock.wallMs += stepMs;
      clock.monotonicMs += stepMs;
      store.sample();
    }
  };
  const read = (name: string, step: number, from = 0) => store.read([name], from, step);
  return { store, clock, values, tick, read };
}

test("counters become rates per second and gauges stay as they are", () => {
  const { store, values, tick, read } = makeStore();
  values.total = 30;
  values.level = 5;
  tick();
  assert.deepEqual(store.latest, { total: 30, level: 5 });
  values.total = 50;
  values.level = 7;
  tick(1, 2_000);
  tick();
  assert.deepEqual(read("total", 1).series[0]!.values, [30, null, 10]);
  assert.deepEqual(read("level", 1).series[0]!.values, [5, null, 7]);
  assert.equal(read("level", 1).from, START_MS + 1_000);
});

test("coarser steps are means, and the point that is being filled is not shown", () => {
  const { values, tick, read } = makeStore();
  for (let second = 1; second <= 25; second += 1) {
    values.level = second;
    tick();
  }
  const { from, step, series } = read("level", 10);
  assert.deepEqual([from, step], [START_MS, 10]);
  assert.deepEqual(series[0]!.values, [5, 14.5]);
});

test("the number of points is bounded, and the oldest are dropped", () => {
  const { store, clock, tick, read } = makeStore();
  tick(400);
  assert.equal(read("level", 1).series[0]!.values.length, 300);
  assert.equal(read("level", 1, clock.wallMs - 10_000).series[0]!.values.length, 10);
  assert.deepEqual(read("level", 1, clock.wallMs + 60_000).series[0]!.values, []);
  tick(1_100, 10_000);
  assert.equal(read("level", 10).series[0]!.values.length, 1_080);
  assert.equal(read("level", 1).series[0]!.values.filter((value) => value !== null).length, 30);
  assert.equal(store.chooseStep(clock.wallMs - 60_000), 1);
  assert.equal(store.chooseStep(clock.wallMs - 3_600_000), 10);
  assert.equal(store.chooseStep(0), 300);
});

test("a suspended process leaves a gap, and a clock that is set back starts again", () => {
  const { clock, values, tick, read } = makeStore();
  values.level = 1;
  tick(3);
  clock.wallMs += 3_600_000;
  tick(3);
  const values1 = read("level", 1).series[0]!.values;
  assert.deepEqual(values1.slice(-3), [null, 1, 1]);
  assert.ok(values1.slice(0, -2).every((value) => value === null));
  clock.wallMs -= 7_200_000;
  tick(3);
  assert.deepEqual(read("level", 1).series[0]!.values, [1, 1]);
  assert.equal(read("level", 1).from, clock.wallMs - 2_000);
});

test("a counter that was reset has no rate, and unknown values are null", () => {
  const { store, values, tick } = makeStore();
  values.total = 100;
  tick();
  values.total = 10;
  values.level = Number.NaN;
  tick();
  assert.deepEqual(store.latest, { total: null, level: null });
  values.total = 15;
  tick();
  assert.equal(store.latest["total"], 5);
});

test("two figures with one name, and too many figures, are refused", () => {
  const figure = { unit: "", title: "", kind: "gauge", read: () => 0 } as const;
  const clock = { now: () => 0, monotonicMs: () => 0 };
  const twice = [
    { ...figure, name: "a" },
    { ...figure, name: "a" },
  ];
  assert.throws(() => new SeriesStore(twice, clock), /the same name/);
  const many = Array.from({ length: 201 }, (_, index) => ({ ...figure, name: `${index}` }));
  assert.throws(() => new SeriesStore(many, clock), /more than 200 figures/);
});

test("a quantile is that of all that was counted in the time of a point, not a mean of quantiles", () => {
  const clock = { ms: START_MS };
  const counts = [0, 0, 0];
  const readCounts = () => ({ bounds: [10, 100, 1_000], counts: [...counts] });
  const create = (name: string, quantile: number): Figure => ({
    name,
    unit: "ms",
    title: name,
    kind: "quantile",
    quantile,
    read: readCounts,
  });
  const store = new SeriesStore([create("p50", 0.5), create("p99", 0.99)], {
    now: () => clock.ms,
    monotonicMs: () => clock.ms,
  });
  const tick = (range?: number, count = 0): void => {
    if (range !== undefined) counts[range]! += count;
    clock.ms += 1_000;
    store.sample();
  };
  const read = (name: string, step: number) => store.read([name], 0, step).series[0]!.values;
  // In eight seconds 100 fast ones each, in one second ten slow ones.
  for (let second = 0; second < 8; second += 1) tick(0, 100);
  assert.deepEqual(store.latest, { p50: 5, p99: 9.9 });
  tick(2, 10);
  tick();
  assert.equal(store.latest["p50"], null, "nothing was counted in the last second");
  assert.deepEqual(read("p99", 1).slice(-3), [9.9, 9.9, 991]);
  const [all] = read("p50", 10);
  assert.ok(all! < 10, `the median of ten seconds is ${all}`);
  const [slow] = read("p99", 10);
  assert.ok(slow! > 100, `the 99th percentile of ten seconds is ${slow}`);
  counts.fill(0);
  tick();
  assert.equal(store.latest["p99"], null, "a histogram that began again has no quantile");
});
