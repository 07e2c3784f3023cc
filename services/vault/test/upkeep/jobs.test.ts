// Background work as people see it: progress, cancelling, the outcome of the last round.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { createManualClock, systemClock } from "@platform/kernel/time";
import { openStore } from "../../src/open-store.ts";
import type { Store } from "../../src/object-store.ts";
import type { Job, JobKind } from "../../src/upkeep/job.ts";
import { Round } from "../../src/upkeep/round.ts";
import { defer, makeBytes, makeFolder, makeStore, owner, put } from "../store/fixture.ts";

const DAY = 86_400_000;

function find(store: Store, kind: JobKind): Job {
  const found = store.maintenance.listJobs().find((job) => job.kind === kind);
  assert.ok(found !== undefined, kind);
  return found;
}

test("a round is joined, cancelled between its steps, and its outcome is kept", async () => {
  let isStuck = false;
  const round = new Round(async (signal) => {
    if (isStuck) throw new Error("the disk is gone");
    while (!signal.aborted) await sleep(1);
    return "half";
  }, systemClock);
  assert.deepEqual(round.state, {});
  assert.equal(round.cancel(), false);
  const first = round.run();
  assert.equal(round.run(), first);
  assert.equal(round.state.running?.isCancelled, false);
  assert.equal(round.cancel(), true);
  assert.equal(round.state.running?.isCancelled, true);
  assert.equal(await first, "half");
  assert.equal(round.state.running, undefined);
  assert.equal(round.state.last?.outcome, "cancelled");
  assert.equal(round.state.last?.report, "half");

  isStuck = true;
  await assert.rejects(round.run(), /the disk is gone/);
  assert.equal(round.state.last?.outcome, "failed");
  assert.equal(round.state.last?.reason, "the disk is gone");

  isStuck = false;
  const last = round.run();
  await round.stop();
  assert.equal(await last, "half");
  assert.equal(await round.run(), "half");
});

test("a scrub that waits for its pace is cancelled at once, and counts as no result", async (context) => {
  // The body is one record: the pause after it would take five minutes.
  const store = await makeStore(context, { scrubBytesPerSecond: 10_000 });
  await put(store, "key", makeBytes(3_000_000));
  const scrubbing = store.maintenance.scrub();
  while ((find(store, "scrub").running?.progress?.bytes ?? 0) === 0) await sleep(1);
  assert.equal(find(store, "scrub").running?.progress?.total, 1);
  assert.equal(store.maintenance.cancelJob("scrub"), true);
  assert.equal(store.maintenance.startJob("scrub"), "ending");
  assert.equal((await scrubbing).isComplete, false);
  const { running, last } = find(store, "scrub");
  assert.equal(running, undefined);
  assert.equal(last?.outcome, "cancelled");
  assert.equal(store.maintenance.readScrub().last, undefined);
  assert.equal(store.maintenance.cancelJob("scrub"), false);
});

test("a store closes while a scrub waits for its pace", async (context) => {
  const store = await makeStore(context, { scrubBytesPerSecond: 10_000 });
  await put(store, "key", makeBytes(3_000_000));
  const scrubbing = store.maintenance.scrub();
  while ((find(store, "scrub").running?.progress?.bytes ?? 0) === 0) await sleep(1);
  await store.close();
  assert.equal((await scrubbing).isComplete, false);
});

test("the last complete scrub is listed after a restart", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openStore({ dataDir, reserveBytes: 0 });
  await store.buckets.create({ bucket: "bucket", owner, region: "r" });
  await put(store, "key", makeBytes(1_200_000));
  await store.maintenance.scrub();
  const { last } = find(store, "scrub");
  assert.equal(last?.outcome, "completed");
  assert.equal(last?.report?.["files"], 1);
  await store.close();
  const again = await openStore({ dataDir, reserveBytes: 0 });
  defer(context, () => again.close());
  assert.deepEqual(find(again, "scrub").last, last);
});

test("lifecycle rounds count what they removed; the next one is planned", async (context) => {
  const clock = createManualClock(Date.UTC(2026, 0, 1));
  const store = await makeStore(context, { clock });
  await store.buckets.setSetting("bucket", "lifecycle", {
    rules: [{ id: "r", enabled: true, filter: {}, expiration: { days: 1 } }],
  });
  for (const key of ["a", "b"]) await put(store, key, "x");
  clock.advance(3 * DAY);
  assert.equal(store.maintenance.startJob("lifecycle"), "started");
  await store.maintenance.expire();
  const { last, nextMs } = find(store, "lifecycle");
  assert.deepEqual(last?.report, { expired: 2, aborted: 0 });
  assert.equal(last?.startedMs, clock.now());
  assert.ok(nextMs !== undefined && nextMs > clock.now() && nextMs <= clock.now() + 3_600_000);
});

test("a cancelled copy of the index leaves the earlier copy", async (context) => {
  const store = await makeStore(context);
  await store.maintenance.copyIndex();
  const { copiedMs } = store.maintenance.readIndexCopy();
  const copying = store.maintenance.copyIndex();
  assert.ok(store.maintenance.cancelJob("index_copy"));
  await assert.rejects(copying, /not completed/);
  assert.equal(find(store, "index_copy").last?.outcome, "cancelled");
  assert.equal(store.maintenance.readIndexCopy().copiedMs, copiedMs);
  assert.deepEqual(await store.maintenance.copyIndex(), []);
});

test("healing is listed with several drives, and nobody starts it", async (context) => {
  const single = await makeStore(context);
  assert.ok(!single.maintenance.listJobs().some(({ kind }) => kind === "healing"));
  assert.equal(single.maintenance.startJob("healing"), "automatic");
});
