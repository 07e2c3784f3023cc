// Clocks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createManualClock, systemClock } from "@platform/kernel/time";

test("a manual clock moves both readings by what it is told", () => {
  const clock = createManualClock(1000);
  clock.advance(250);
  assert.deepEqual([clock.now(), clock.monotonicMs()], [1250, 250]);
});

test("stepping the calendar leaves the monotonic reading alone", () => {
  const clock = createManualClock(1000);
  clock.setNow(5);
  assert.deepEqual([clock.now(), clock.monotonicMs()], [5, 0]);
});

test("a manual clock refuses to run backwards", () => {
  assert.throws(() => createManualClock().advance(-1), RangeError);
  assert.throws(() => createManualClock().advance(Number.NaN), RangeError);
});

test("the system clock reads epoch milliseconds", () => {
  assert.ok(Math.abs(systemClock.now() - Date.now()) < 1000);
  assert.ok(systemClock.monotonicMs() <= systemClock.monotonicMs());
});
