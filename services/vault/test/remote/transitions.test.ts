// Transitions by lifecycle rules, with a clock of the test: day boundaries, sizes, filters, versions, expiry.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createLogger, type Logger } from "@platform/kernel/log";
import { createManualClock } from "@platform/kernel/time";
import { LyingS3 } from "@platform/testing/lying-s3";
import type { LifecycleConfiguration, LifecycleRule } from "../../src/model/lifecycle.ts";
import { defer, makeBytes, makeStore, put } from "../store/fixture.ts";

const DAY = 86_400_000;
const KIB = 1024;
const secrets = { seal: (text: string) => text, open: (text: string) => text };
const rule = { id: "r", enabled: true, filter: {} };

async function makeAged(context: TestContext, log?: Logger) {
  const remote = await LyingS3.start();
  defer(context, () => remote[Symbol.asyncDispose]());
  const clock = createManualClock(Date.UTC(2026, 0, 1, 12));
  const store = await makeStore(context, {
    clock,
    secrets,
    remoteNetworks: ["127.0.0.0/8"],
    ...(log === undefined ? {} : { log }),
  });
  const settings = { name: "far", endpoint: remote.endpoint, region: "r", access_key: "a" };
  const more = { path_style: true, prefix: "", allow: ["*"], rate_bytes: 0, bucket: "ice" };
  await store.remotes.add({ ...settings, ...more, classes: ["GLACIER", "ICE"] }, "s");
  const setRules = (rules: LifecycleRule[], others: Partial<LifecycleConfiguration> = {}) =>
    store.buckets.setSetting("bucket", "lifecycle", { rules, ...others });
  const listClasses = async () => {
    const { versions } = await store.objects.listVersions({ bucket: "bucket" });
    return versions.map(({ key, storageClass }) => `${key} ${storageClass}`);
  };
  return { store, clock, setRules, listClasses };
}

test("an object moves at the midnight after its days, by prefix, tag and size, and not below 128 KiB", async (context) => {
  const { store, clock, setRules, listClasses } = await makeAged(context);
  await put(store, "a/large", makeBytes(128 * KIB));
  await put(store, "a/small", makeBytes(128 * KIB - 1));
  await put(store, "b", makeBytes(200 * KIB));
  await put(store, "tagged", makeBytes(200 * KIB), { tags: { cold: "yes" } });
  await put(store, "sized", makeBytes(40 * KIB));
  const transitions = [{ days: 2, storageClass: "GLACIER" }];
  await setRules([
    { ...rule, id: "1", filter: { prefix: "a/" }, transitions },
    { ...rule, id: "2", filter: { tags: { cold: "yes" } }, transitions },
    // A filter by size replaces the minimum.
    { ...rule, id: "3", filter: { prefix: "sized", sizeGreaterThan: 1_000 }, transitions },
    { ...rule, id: "4", filter: { prefix: "b" }, enabled: false, transitions },
  ]);
  clock.advance(2 * DAY + DAY / 2 - 1);
  assert.equal((await store.maintenance.transition()).moved, 0);
  clock.advance(1);
  const { scanned, moved, skipped, failed } = await store.maintenance.transition();
  assert.deepEqual(
    { scanned, moved, skipped, failed },
    { scanned: 4, moved: 3, skipped: 1, failed: 0 },
  );
  assert.deepEqual(await listClasses(), [
    "a/large GLACIER",
    "a/small STANDARD",
    "b STANDARD",
    "sized GLACIER",
    "tagged GLACIER",
  ]);
  assert.equal((await store.maintenance.transition()).moved, 0, "nothing moves twice");
});

test("the older minimum lets small objects go to GLACIER, and a date moves from that day on", async (context) => {
  const { store, clock, setRules, listClasses } = await makeAged(context);
  await put(store, "small", makeBytes(40 * KIB));
  const transitions = [{ atMs: Date.UTC(2026, 0, 4), storageClass: "GLACIER" }];
  await setRules([{ ...rule, transitions }], { transitionMinimum: "varies_by_storage_class" });
  clock.advance(2 * DAY);
  assert.equal((await store.maintenance.transition()).moved, 0);
  clock.advance(DAY / 2);
  assert.equal((await store.maintenance.transition()).moved, 1);
  assert.deepEqual(await listClasses(), ["small GLACIER"]);
});

test("an object goes from class to class, and one that has outlived a class skips it", async (context) => {
  const { store, clock, setRules, listClasses } = await makeAged(context);
  await put(store, "a", makeBytes(200 * KIB));
  const transitions = [
    { days: 1, storageClass: "ICE" },
    { days: 10, storageClass: "GLACIER" },
  ];
  await setRules([{ ...rule, transitions }]);
  clock.advance(2 * DAY);
  await store.maintenance.transition();
  assert.deepEqual(await listClasses(), ["a ICE"]);
  await put(store, "b", makeBytes(200 * KIB));
  clock.advance(20 * DAY);
  assert.equal((await store.maintenance.transition()).moved, 2);
  assert.deepEqual(await listClasses(), ["a GLACIER", "b GLACIER"]);
  assert.equal((await store.maintenance.transition()).moved, 0, "and not back");
});

test("noncurrent versions move by their own days, beyond those that are kept; what expires does not move", async (context) => {
  const { store, clock, setRules, listClasses } = await makeAged(context);
  await store.buckets.setVersioning("bucket", "Enabled");
  for (const seed of [1, 2, 3, 4]) await put(store, "a", makeBytes(200 * KIB, seed));
  await put(store, "expires", makeBytes(200 * KIB));
  await setRules([
    {
      ...rule,
      id: "1",
      filter: { prefix: "a" },
      noncurrentTransitions: [{ days: 1, storageClass: "GLACIER", newerVersionsKept: 1 }],
    },
    {
      ...rule,
      id: "2",
      filter: { prefix: "e" },
      transitions: [{ days: 1, storageClass: "GLACIER" }],
    },
    { ...rule, id: "3", filter: { prefix: "e" }, expiration: { days: 2 } },
  ]);
  clock.advance(3 * DAY);
  const { moved, skipped } = await store.maintenance.transition();
  assert.deepEqual({ moved, skipped }, { moved: 2, skipped: 1 });
  assert.deepEqual(await listClasses(), [
    "a STANDARD",
    "a STANDARD",
    "a GLACIER",
    "a GLACIER",
    "expires STANDARD",
  ]);
  const { versions } = await store.objects.listVersions({ bucket: "bucket", prefix: "a" });
  assert.deepEqual(
    versions.map(({ isLatest }) => isLatest),
    [true, false, false, false],
  );
});

test("a live version that has moved stays live, and becomes noncurrent only when it is replaced", async (context) => {
  const { store, clock, setRules, listClasses } = await makeAged(context);
  await store.buckets.setVersioning("bucket", "Enabled");
  await put(store, "a", makeBytes(200 * KIB));
  await setRules([{ ...rule, transitions: [{ days: 1, storageClass: "GLACIER" }] }]);
  clock.advance(3 * DAY);
  await store.maintenance.transition();
  assert.equal((await store.objects.describe({ bucket: "bucket", key: "a" })).isLatest, true);
  const { versionId } = await put(store, "a", makeBytes(100));
  assert.deepEqual(await listClasses(), ["a STANDARD", "a GLACIER"]);
  await store.objects.delete({ bucket: "bucket", key: "a", versionId });
  assert.equal(
    (await store.objects.describe({ bucket: "bucket", key: "a" })).storageClass,
    "GLACIER",
  );
});

test("a rule whose remote is gone is named once in the log, and until then in the state", async (context) => {
  const lines: string[] = [];
  const log = createLogger({
    service: "vault",
    level: "warn",
    format: "json",
    write: (line) => lines.push(line),
  });
  const { store, setRules } = await makeAged(context, log);
  await setRules([{ ...rule, transitions: [{ days: 1, storageClass: "ICE" }] }]);
  await store.maintenance.transition();
  assert.deepEqual([store.sweeps.listBlocked(), lines], [[], []]);
  await store.remotes.remove("far");
  await store.maintenance.transition();
  await store.maintenance.transition();
  const blocked = { bucket: "bucket", rule: "r", storageClass: "ICE" };
  assert.deepEqual(store.sweeps.listBlocked(), [blocked]);
  assert.equal(lines.length, 1, lines.join(""));
  assert.match(lines[0]!, /"storage_class":"ICE"/);
  await setRules([{ ...rule, enabled: false, transitions: [{ days: 1, storageClass: "ICE" }] }]);
  assert.deepEqual(store.sweeps.listBlocked(), []);
});
