// Vectors in the store: with the commit of their version, through restarts, formats, repairs and restored indexes.
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { FORMAT_VERSION, makeTables } from "../../src/index/schema.ts";
import { checkStore } from "../../src/fsck/check-store.ts";
import { encodeVector } from "../../src/model/vector.ts";
import type { Store } from "../../src/object-store.ts";
import { openStore } from "../../src/open-store.ts";
import { defer, makeBytes, makeFolder, owner, put } from "./fixture.ts";

async function openIndexed(dataDir: string): Promise<Store> {
  const store = await openStore({ dataDir, reserveBytes: 0 });
  if (store.buckets.find("bucket") === undefined) {
    await store.buckets.create({ bucket: "bucket", owner, region: "eu" });
    await store.buckets.setSetting("bucket", "vectorIndex", { dimension: 2, metric: "dot" });
  }
  return store;
}

const read = (store: Store, key: string): Uint8Array | undefined =>
  store.objects.readVector({ bucket: "bucket", key })?.data;

test("a vector is stored with its object, or not at all", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openIndexed(dataDir);
  const vector = encodeVector([1, 2]);
  await put(store, "a", "a", { vector });
  await assert.rejects(put(store, "b", "b", { vector: encodeVector([1]) }), {
    code: "InvalidArgument",
  });
  await assert.rejects(
    put(store, "a", "c", { vector: encodeVector([3, 4]), conditions: { ifNoneMatch: "*" } }),
    {
      code: "PreconditionFailed",
    },
  );
  await store.buckets.setSetting("bucket", "quota", { bytesMax: 20 });
  await assert.rejects(put(store, "c", "123456789012", { vector }), { code: "QuotaExceeded" });
  await assert.rejects(
    put(store, "c", "1234567", { vector }),
    { code: "QuotaExceeded" },
    "a vector counts",
  );
  assert.equal(store.readUsage("bucket").bytes, 1 + 8);
  await store.close();
  const again = await openIndexed(dataDir);
  defer(context, () => again.close());
  assert.deepEqual(read(again, "a"), new Uint8Array(vector));
  assert.throws(() => read(again, "b"), { code: "NoSuchKey" });
});

test("vectors go with their versions, in a bucket that had none and after a restart", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openIndexed(dataDir);
  const vector = encodeVector([1, 2]);
  defer(context, () => store.close());
  for (const body of ["1", "22"]) await put(store, "plain", body);
  await put(store, "replaced", "a", { vector });
  await put(store, "replaced", "b");
  assert.equal(read(store, "replaced"), undefined);
  for (const key of ["deleted", "later"]) await put(store, key, "c", { vector });
  await store.objects.delete({ bucket: "bucket", key: "deleted" });
  assert.equal(store.readUsage("bucket").bytes, 2 + 1 + 1 + 8);
  await store.close();
  const again = await openIndexed(dataDir);
  defer(context, () => again.close());
  await again.objects.delete({ bucket: "bucket", key: "later" });
  assert.equal(again.readUsage("bucket").bytes, 2 + 1);
  await again.close();
  const index = new DatabaseSync(join(dataDir, "index.sqlite"));
  defer(context, () => index.close());
  assert.equal(index.prepare("select count(*) as n from vectors").get()?.["n"], 0);
});

test("an index of format 3 opens in constant time, and has no vectors", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openIndexed(dataDir);
  await store.buckets.deleteSetting("bucket", "vectorIndex");
  await put(store, "old", makeBytes(20_000));
  await store.close();
  const path = join(dataDir, "index.sqlite");
  const index = new DatabaseSync(path);
  index.exec("drop table vectors; drop table tasks");
  index.exec("drop table jobs; drop table job_lines; drop table trigger_runs");
  index.exec("drop table facts; drop table remotes; drop table remote_blobs");
  index.exec("drop index blobs_by_kek; drop index blobs_by_head");
  index.exec("pragma user_version = 3");
  index.close();
  rmSync(`${path}.mark`);
  assert.equal((await checkStore({ dataDir, isRepair: false })).isWhole, true);
  const again = await openIndexed(dataDir);
  defer(context, () => again.close());
  await again.buckets.setSetting("bucket", "vectorIndex", { dimension: 2, metric: "dot" });
  assert.equal(read(again, "old"), undefined);
  await again.objects.setVector({ bucket: "bucket", key: "old" }, encodeVector([5, 6]));
  assert.deepEqual(read(again, "old"), new Uint8Array(encodeVector([5, 6])));
  assert.deepEqual(await again.maintenance.copyIndex(), []);
});

test("a newer format is refused", async (context) => {
  const dataDir = makeFolder(context);
  await (await openIndexed(dataDir)).close();
  const index = new DatabaseSync(join(dataDir, "index.sqlite"));
  index.exec(`pragma user_version = ${FORMAT_VERSION + 1}`);
  index.close();
  await assert.rejects(openIndexed(dataDir), new RegExp(`format.* ${FORMAT_VERSION + 1}`));
});

test("a damaged vector is found by a check, and never answered", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openIndexed(dataDir);
  await put(store, "a", "a", { vector: encodeVector([1, 2]) });
  await put(store, "b", "b", { vector: encodeVector([3, 4]) });
  await store.close();
  const index = new DatabaseSync(join(dataDir, "index.sqlite"));
  index
    .prepare("update vectors set data = ? where key = ?")
    .run(encodeVector([9, 2]), Buffer.from("a"));
  index.close();
  const report = await checkStore({ dataDir, isRepair: false });
  assert.equal(report.isWhole, false);
  await assert.rejects(openIndexed(dataDir), /vectors/);
  await checkStore({ dataDir, isRepair: true });
  const again = await openIndexed(dataDir);
  defer(context, () => again.close());
  // It is in the head of the record as well, if the body is not in the index.
  assert.equal(read(again, "a"), undefined);
  assert.deepEqual(read(again, "b"), new Uint8Array(encodeVector([3, 4])));
});

test("vectors of bodies in files are restored without an index", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openIndexed(dataDir);
  const body = makeBytes(40_000);
  await put(store, "kept", body, { vector: encodeVector([1, 2]) });
  await put(store, "bare", body);
  await store.close();
  for (const name of ["index.sqlite", "index-copy.sqlite"])
    rmSync(join(dataDir, name), { force: true });
  await checkStore({ dataDir, isRepair: true });
  assert.equal((await checkStore({ dataDir, isRepair: false })).isWhole, true);
  const again = await openIndexed(dataDir);
  defer(context, () => again.close());
  assert.deepEqual(read(again, "kept"), new Uint8Array(encodeVector([1, 2])));
  assert.equal(read(again, "bare"), undefined);
});

test("the removal of a large index continues after a restart", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openIndexed(dataDir);
  await Promise.all(
    Array.from({ length: 50 }, (_, n) => put(store, `${n}`, "x", { vector: encodeVector([n, 1]) })),
  );
  await store.buckets.deleteSetting("bucket", "vectorIndex");
  const index = { dimension: 3, metric: "dot" } as const;
  await assert.rejects(store.buckets.setSetting("bucket", "vectorIndex", index), {
    code: "InvalidBucketState",
  });
  await store.close();
  const again = await openIndexed(dataDir);
  defer(context, () => again.close());
  await waitFor(() => again.readUsage("bucket").bytes === 50);
  await again.buckets.setSetting("bucket", "vectorIndex", index);
});

test("the definition of the tables of format 4 is the golden one", () => {
  const index = new DatabaseSync(":memory:");
  makeTables(index, 0, 4);
  const rows = index
    .prepare(
      "select sql from sqlite_schema where tbl_name in ('vectors', 'tasks') and sql is not null order by name",
    )
    .all();
  index.close();
  const text = `${rows.map((row) => String(row["sql"])).join(";\n")};\n`;
  const golden = new URL("fixtures/format-4.sql", import.meta.url);
  assert.equal(text, readFileSync(golden, "utf8"));
});
