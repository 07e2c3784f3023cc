// Clocks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createManualClock, systemClock } from "@platform/kernel/time";

test("a manual clock advances both times", () => {
  const clock = createManualClock(1000);
  clock.advance(250);
  assert.deepEqual([clock.now(), clock.monotonicMs()], [1250, 250]);
});

test("setting the calendar time does not change the monotonic time", () => {
  const clock = createManualClock(1000);
  clock.setNow(5);
  assert.deepEqual([clock.now(), clock.monotonicMs()], [5, 0]);
});

test("a manual clock cannot move backwards", () => {
  assert.throws(() => createManualClock().advance(-1), RangeError);
  assert.throws(() => createManualClock().advance(Number.NaN), RangeError);
});

test("the system clock returns epoch milliseconds", () => {
  const before = Date.now();
  const now = systemClock.now();
  assert.ok(before <= now && now <= Date.now());
  assert.ok(systemClock.monotonicMs() <= systemClock.monotonicMs());
});
