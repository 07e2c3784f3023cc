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
