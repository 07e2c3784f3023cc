// Object lock: protected versions cannot be deleted, and their protection cannot be weakened.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createManualClock } from "@platform/kernel/time";
import { makeStore, owner, put, read } from "./fixture.ts";

const DAY = 86_400_000;
const locked = { bucket: "locked", key: "key" };

async function makeLocked(context: Parameters<typeof makeStore>[0]) {
  const clock = createManualClock(Date.UTC(2026, 0, 1));
  const store = await makeStore(context, { clock });
  await store.buckets.create({ bucket: "locked", owner, region: "r", objectLockEnabled: true });
  return { store, clock };
}

test("compliance retention keeps a version from everyone until it is over", async (context) => {
  const { store, clock } = await makeLocked(context);
  const retention = { mode: "COMPLIANCE" as const, untilMs: clock.now() + DAY };
  const { versionId } = await put(store, "key", "x", { bucket: "locked", retention });
  const address = { ...locked, versionId };
  const denied = { code: "AccessDenied" };
  await assert.rejects(store.objects.delete({ ...address, bypassGovernance: true }), denied);
  const options = { bypassGovernance: true };
  await assert.rejects(store.objects.setRetention(address, undefined, options), denied);
  const shorter = { ...retention, untilMs: clock.now() + 1 };
  await assert.rejects(store.objects.setRetention(address, shorter, options), denied);
  const weaker = { ...retention, mode: "GOVERNANCE" as const };
  await assert.rejects(store.objects.setRetention(address, weaker, options), denied);
  await store.objects.setRetention(address, { ...retention, untilMs: clock.now() + 2 * DAY });
  // A delete marker hides the version without deleting it.
  const marker = await store.objects.delete(locked);
  assert.equal(marker.deleteMarker, true);
  assert.equal((await read(store, "key", address)).toString(), "x");
  clock.advance(2 * DAY);
  await store.objects.delete(address);
  await assert.rejects(read(store, "key", address), { code: "NoSuchVersion" });
});

test("governance retention can be bypassed by permitted callers", async (context) => {
  const { store, clock } = await makeLocked(context);
  const retention = { mode: "GOVERNANCE" as const, untilMs: clock.now() + DAY };
  const { versionId } = await put(store, "key", "x", { bucket: "locked", retention });
  const address = { ...locked, versionId };
  await assert.rejects(store.objects.delete(address), { code: "AccessDenied" });
  await assert.rejects(store.objects.setRetention(address, undefined), { code: "AccessDenied" });
  await store.objects.setRetention(address, undefined, { bypassGovernance: true });
  await store.objects.setRetention(address, retention);
  await store.objects.delete({ ...address, bypassGovernance: true });
});

test("a legal hold keeps a version until it is removed", async (context) => {
  const { store } = await makeLocked(context);
  const { versionId } = await put(store, "key", "x", { bucket: "locked", legalHold: true });
  const address = { ...locked, versionId };
  await assert.rejects(store.objects.delete({ ...address, bypassGovernance: true }), {
    code: "AccessDenied",
  });
  await store.objects.setLegalHold(address, false);
  await store.objects.delete(address);
});

test("new versions get the bucket's default retention", async (context) => {
  const { store, clock } = await makeLocked(context);
  await store.buckets.setSetting("locked", "objectLock", {
    defaultRetention: { mode: "COMPLIANCE", days: 3 },
  });
  await put(store, "key", "x", { bucket: "locked" });
  const { object } = await store.objects.head(locked);
  assert.deepEqual(object.retention, { mode: "COMPLIANCE", untilMs: clock.now() + 3 * DAY });
});

test("a bucket without object lock refuses retention, one with it cannot suspend versioning", async (context) => {
  const { store } = await makeLocked(context);
  await assert.rejects(put(store, "key", "x", { legalHold: true }), { code: "InvalidRequest" });
  await put(store, "key", "x");
  await assert.rejects(store.objects.setLegalHold({ bucket: "bucket", key: "key" }, true), {
    code: "InvalidRequest",
  });
  await assert.rejects(store.buckets.setVersioning("locked", "Suspended"), {
    code: "InvalidBucketState",
  });
  await assert.rejects(store.buckets.setSetting("bucket", "objectLock", {}), {
    code: "InvalidBucketState",
  });
});
