// Repeated timers with the real clock.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { every } from "@platform/kernel/time";

function refuseError(error: unknown): void {
  throw error;
}

test("runs never overlap, and stopping waits for the one in flight", async () => {
  let runs = 0;
  const first = Promise.withResolvers<void>();
  const timer = every(
    5,
    () => {
      runs += 1;
      return first.promise;
    },
    refuseError,
  );
  await sleep(60);
  assert.equal(runs, 1);
  let hasStopped = false;
  const stopped = timer.stop().then(() => (hasStopped = true));
  await sleep(20);
  assert.equal(hasStopped, false);
  first.resolve();
  await stopped;
  await sleep(30);
  assert.equal(runs, 1);
});

test("errors are reported, thrown or rejected, and the timer continues", async () => {
  const errors: unknown[] = [];
  let runs = 0;
  const third = Promise.withResolvers<void>();
  const timer = every(
    2,
    () => {
      runs += 1;
      if (runs === 1) throw new Error("thrown");
      if (runs === 2) return Promise.reject(new Error("rejected"));
      third.resolve();
      return undefined;
    },
    (error) => errors.push((error as Error).message),
  );
  await third.promise;
  await timer.stop();
  assert.deepEqual(errors.slice(0, 2), ["thrown", "rejected"]);
});

test("a run on request joins the one in flight", async () => {
  let runs = 0;
  const timer = every(60_000, async () => void (runs += 1), refuseError);
  await Promise.all([timer.run(), timer.run()]);
  assert.equal(runs, 1);
  await timer.run();
  assert.equal(runs, 2);
  await timer.stop();
});
