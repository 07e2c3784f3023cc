// The bounds of access logs of buckets: a busy bucket does not take the room of others, and full batches are written at once.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { Authorizer } from "../../src/access/authorizer.ts";
import { BucketLogs } from "../../src/audit/bucket-logs.ts";
import type { Store } from "../../src/object-store.ts";
import { makeStore, owner } from "../store/fixture.ts";

const MIB = 1_048_576;
const ACCOUNT = { canonicalId: "0".repeat(64), displayName: "owner", accountId: "000000000000" };

interface Opened {
  store: Store;
  logs: BucketLogs;
  counts: { delivered: number; refused: number; failed: number; dropped: number };
}

async function open(context: TestContext, nowMs = 0): Promise<Opened> {
  const store = await makeStore(context);
  for (const bucket of ["busy", "quiet"]) {
    await store.buckets.create({ bucket, owner, region: "us-east-1" });
    const logging = { targetBucket: "bucket", targetPrefix: `${bucket}/` };
    await store.buckets.setSetting(bucket, "logging", logging);
  }
  const counts = { delivered: 0, refused: 0, failed: 0, dropped: 0 };
  const logs = new BucketLogs({
    store,
    authorizer: new Authorizer(ACCOUNT),
    clock: { now: () => nowMs, monotonicMs: () => nowMs },
    log: createLogger({ service: "vault", level: "off" }),
    intervalMs: 300_000,
    onDelivered: (outcome, lines) => (counts[outcome] += lines),
    onDropped: (lines) => (counts.dropped += lines),
  });
  return { store, logs, counts };
}

async function listSizes(store: Store, prefix: string): Promise<number[]> {
  const { objects } = await store.objects.list({ bucket: "bucket", prefix, maxKeys: 1_000 });
  return objects.map(({ sizeBytes }) => sizeBytes);
}

test("lines beyond 20 MiB of one bucket are dropped, the oldest first, and no line of another one", async (context) => {
  const { store, logs, counts } = await open(context);
  logs.add("quiet", "quiet\n", 0);
  const line = `${"x".repeat(MIB / 4 - 1)}\n`;
  for (let at = 0; at < 200; at++) logs.add("busy", line, 0);
  assert.ok(counts.dropped >= 100 && counts.dropped < 200, String(counts.dropped));
  await logs.close();
  assert.equal(counts.delivered, 200 - counts.dropped + 1);
  const sizes = await listSizes(store, "busy/");
  assert.ok(sizes.length >= 2 && sizes.every((size) => size <= 6 * MIB), String(sizes));
  assert.deepEqual(await listSizes(store, "quiet/"), [6]);
});

test("lines of two days are in two objects if the day is in their keys", async (context) => {
  const { store, logs } = await open(context, Date.UTC(2026, 1, 3));
  const logging = { targetBucket: "bucket", targetPrefix: "", partitionedBy: "EventTime" } as const;
  await store.buckets.setSetting("busy", "logging", logging);
  logs.add("busy", "first\n", Date.UTC(2026, 1, 1, 23, 59));
  logs.add("busy", "second\n", Date.UTC(2026, 1, 2, 0, 1));
  await logs.close();
  const { objects } = await store.objects.list({ bucket: "bucket", maxKeys: 10 });
  const keys = objects.map(({ key }) => key);
  assert.equal(keys.length, 2);
  const folder = "000000000000/us-east-1/busy/2026/02";
  assert.ok(keys[0]!.startsWith(`${folder}/01/2026-02-01-00-00-00-`), keys[0]!);
  assert.ok(keys[1]!.startsWith(`${folder}/02/2026-02-02-00-00-00-`), keys[1]!);
});
