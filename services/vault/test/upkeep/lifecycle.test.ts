// Lifecycle rules: due objects are removed, others are not.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createManualClock } from "@platform/kernel/time";
import { findDueDate } from "../../src/model/lifecycle-rule.ts";
import type { LifecycleRule } from "../../src/model/lifecycle.ts";
import { makeStore, put } from "../store/fixture.ts";

const DAY = 86_400_000;
const rule = { id: "r", enabled: true, filter: {} };

async function makeAged(context: TestContext) {
  const clock = createManualClock(Date.UTC(2026, 0, 1, 12));
  const store = await makeStore(context, { clock });
  const setRules = (...rules: LifecycleRule[]) =>
    store.buckets.setSetting("bucket", "lifecycle", { rules });
  const listKeys = async () =>
    (await store.objects.list({ bucket: "bucket" })).objects.map(({ key }) => key);
  return { store, clock, setRules, listKeys };
}

test("objects expire at the midnight after their days, by prefix, tag and size", async (context) => {
  const { store, clock, setRules, listKeys } = await makeAged(context);
  await put(store, "logs/a", "x");
  await put(store, "keep", "x");
  await put(store, "tagged", "x", { tags: { temp: "yes", more: "1" } });
  await put(store, "large", "x".repeat(1000));
  await setRules(
    { ...rule, filter: { prefix: "logs/" }, expiration: { days: 2 } },
    { ...rule, filter: { tags: { temp: "yes" } }, expiration: { days: 2 } },
    { ...rule, filter: { sizeGreaterThan: 999 }, expiration: { days: 2 } },
    { ...rule, enabled: false, expiration: { days: 1 } },
  );
  clock.advance(2 * DAY + DAY / 2 - 1);
  assert.deepEqual(await store.maintenance.expire(), { expired: 0, aborted: 0 });
  clock.advance(1);
  assert.equal(clock.now(), findDueDate(Date.UTC(2026, 0, 1, 12), 2));
  assert.deepEqual(await store.maintenance.expire(), { expired: 3, aborted: 0 });
  assert.deepEqual(await listKeys(), ["keep"]);
});

test("in a bucket with versions an expired object gets a delete marker, and its versions follow", async (context) => {
  const { store, clock, setRules, listKeys } = await makeAged(context);
  await store.buckets.setVersioning("bucket", "Enabled");
  for (const body of ["1", "2", "3", "4"]) await put(store, "key", body);
  await setRules({
    ...rule,
    expiration: { days: 1 },
    noncurrentVersionExpiration: { days: 5, newerVersionsKept: 1 },
  });
  clock.advance(3 * DAY);
  assert.deepEqual(await store.maintenance.expire(), { expired: 1, aborted: 0 });
  assert.deepEqual(await listKeys(), []);
  const list = async () =>
    (await store.objects.listVersions({ bucket: "bucket" })).versions.map(
      (row) => row.isDeleteMarker,
    );
  assert.deepEqual(await list(), [true, false, false, false, false]);
  clock.advance(6 * DAY);
  await store.maintenance.expire();
  assert.deepEqual(await list(), [true, false]);
  await setRules(
    { ...rule, noncurrentVersionExpiration: { days: 1 } },
    { ...rule, expiration: { expiredObjectDeleteMarker: true } },
  );
  clock.advance(6 * DAY);
  await store.maintenance.expire();
  assert.deepEqual(await list(), []);
});

test("uploads that are never completed are aborted; locked versions survive every rule", async (context) => {
  const { store, clock, setRules } = await makeAged(context);
  await store.uploads.create({ bucket: "bucket", key: "old/1" });
  await store.buckets.setVersioning("bucket", "Enabled");
  await store.buckets.setSetting("bucket", "objectLock", {});
  await put(store, "locked", "1", { legalHold: true });
  await put(store, "locked", "2");
  await setRules({
    ...rule,
    noncurrentVersionExpiration: { days: 1 },
    abortIncompleteUpload: { days: 2 },
  });
  clock.advance(4 * DAY);
  await store.uploads.create({ bucket: "bucket", key: "new" });
  assert.deepEqual(await store.maintenance.expire(), { expired: 0, aborted: 1 });
  const { uploads } = await store.uploads.list({ bucket: "bucket" });
  assert.deepEqual(
    uploads.map(({ key }) => key),
    ["new"],
  );
  assert.equal((await store.objects.listVersions({ bucket: "bucket" })).versions.length, 2);
});

test("many due objects expire in one round, with an event for each", async (context) => {
  const { store, clock, setRules, listKeys } = await makeAged(context);
  await Promise.all(Array.from({ length: 1200 }, (_, index) => put(store, `${index}`, "x")));
  await store.buckets.setSetting("bucket", "notification", {
    rules: [{ id: "n", events: ["LifecycleExpiration:*"], target: {} }],
  });
  await setRules({ ...rule, expiration: { atMs: clock.now() + DAY } });
  clock.advance(DAY - 1);
  assert.equal((await store.maintenance.expire()).expired, 0);
  clock.advance(1);
  assert.equal((await store.maintenance.expire()).expired, 1200);
  assert.deepEqual(await listKeys(), []);
  assert.equal(store.readStats().pendingEvents, 1200);
});

test("a rule by days removes delete markers without older versions at that age", async (context) => {
  const { store, clock, setRules } = await makeAged(context);
  await store.buckets.setVersioning("bucket", "Enabled");
  await store.objects.delete({ bucket: "bucket", key: "bare" });
  await put(store, "hiding", "x");
  await store.objects.delete({ bucket: "bucket", key: "hiding" });
  await setRules({ ...rule, expiration: { days: 2 } });
  const list = async () =>
    (await store.objects.listVersions({ bucket: "bucket" })).versions.map((row) => row.key);
  clock.advance(DAY);
  await store.maintenance.expire();
  assert.deepEqual(await list(), ["bare", "hiding", "hiding"]);
  clock.advance(2 * DAY);
  assert.deepEqual(await store.maintenance.expire(), { expired: 1, aborted: 0 });
  assert.deepEqual(await list(), ["hiding", "hiding"]);
});

test("a rule that disables the expiry of markers keeps them", async (context) => {
  const { store, clock, setRules } = await makeAged(context);
  await store.buckets.setVersioning("bucket", "Enabled");
  await store.objects.delete({ bucket: "bucket", key: "bare" });
  await setRules({ ...rule, expiration: { expiredObjectDeleteMarker: false } });
  clock.advance(9 * DAY);
  assert.deepEqual(await store.maintenance.expire(), { expired: 0, aborted: 0 });
});
