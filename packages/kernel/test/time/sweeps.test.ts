// Sweeps with the real clock.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sweepEvery } from "@platform/kernel/time";

test("a failing sweep stops neither the others nor the next round", async () => {
  const runs: string[] = [];
  const failed: string[] = [];
  const timer = sweepEvery(
    60_000,
    {
      thrown: () => {
        runs.push("thrown");
        throw new Error("thrown");
      },
      rejected: async () => {
        runs.push("rejected");
        throw new Error("rejected");
      },
      last: async () => {
        runs.push("last");
      },
    },
    (error, name) => failed.push(`${name}: ${(error as Error).message}`),
  );
  await timer.run();
  await timer.run();
  await timer.stop();
  assert.deepEqual(runs, ["thrown", "rejected", "last", "thrown", "rejected", "last"]);
  assert.deepEqual(failed.slice(0, 2), ["thrown: thrown", "rejected: rejected"]);
  assert.equal(failed.length, 4);
});
