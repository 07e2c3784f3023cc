// Usage of buckets compared with full scans: after random work, restarts, repairs, and in folders of earlier formats.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import fc from "fast-check";
import { checkStore } from "../../src/fsck/check-store.ts";
import { StoreError } from "../../src/model/store-error.ts";
import type { PartResult, UploadAddress } from "../../src/model/upload.ts";
import { openStore } from "../../src/open-store.ts";
import type { Store } from "../../src/object-store.ts";
import { defer, makeBytes, makeFolder, owner, put } from "./fixture.ts";
import { requireRightUsage } from "./usage-scan.ts";

const BUCKETS = ["plain", "versioned", "limited"] as const;
const LIMITS = { bytesMax: 40_000, objectsMax: 6 };

type Step =
  | { type: "put"; key: string; size: number }
  | { type: "putIfNone"; key: string }
  | { type: "copy"; key: string; from: string }
  | { type: "delete"; key: string }
  | { type: "deleteNewest" }
  | { type: "suspend" }
  | { type: "upload"; key: string; sizes: number[]; end: "complete" | "abort" | "leave" }
  | { type: "part"; number: number; size: number };

const key = fc.constantFrom("a", "b", "c", "d");
const size = fc.constantFrom(0, 1, 700, 20_000);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ type: fc.constant("put" as const), key, size }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("putIfNone" as const), key }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("copy" as const), key, from: key }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("delete" as const), key }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("deleteNewest" as const) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("suspend" as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant("upload" as const),
      key,
      sizes: fc.array(size, { minLength: 1, maxLength: 3 }),
      end: fc.constantFrom(
        "complete" as const,
        "complete" as const,
        "abort" as const,
        "leave" as const,
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant("part" as const), number: fc.nat(2), size }),
  },
);
const work = fc.array(fc.record({ bucket: fc.constantFrom(...BUCKETS), step }), {
  minLength: 5,
  maxLength: 40,
});

test("usage equals a full scan after random work in groups, after deleted buckets, and after a restart", async (context) => {
  const options = { dataDir: makeFolder(context), reserveBytes: 0, partBytesMin: 1 };
  let store = await openStore(options);
  defer(context, () => store.close());
  const property = fc.asyncProperty(work, fc.constantFrom(1, 8), async (steps, atOnce) => {
    await makeBuckets(store);
    for (let at = 0; at < steps.length; at += atOnce) {
      // Operations that are submitted together are committed together, including refused ones.
      await Promise.all(
        steps
          .slice(at, at + atOnce)
          .map((one) => run(store, one.bucket, one.step).catch(ignoreRefusal)),
      );
    }
    await requireRightUsage(store, "after the work");
    const { bytes, uploadBytes, versions } = store.readUsage("limited");
    assert.ok(bytes + uploadBytes <= LIMITS.bytesMax, `${bytes} + ${uploadBytes}`);
    assert.ok(versions <= LIMITS.objectsMax, `${versions}`);
    await store.close();
    store = await openStore(options);
    await requireRightUsage(store, "after a restart");
    await removeBuckets(store);
    await requireRightUsage(store, "after the buckets are gone");
  });
  await fc.assert(property, { numRuns: 15 });
});

test("a refusal within a group leaves the counts of the others correct", async (context) => {
  const store = await openStore({ dataDir: makeFolder(context), reserveBytes: 0, partBytesMin: 1 });
  defer(context, () => store.close());
  await makeBuckets(store);
  // The bucket has no object lock, so `legalHold` is refused, but only after the blob was added to the index.
  const refused = { legalHold: true } as const;
  const results = await Promise.allSettled(
    Array.from({ length: 30 }, (_, index) =>
      put(store, `k${index}`, makeBytes(100 + index), {
        bucket: "plain",
        ...(index % 3 === 0 ? refused : {}),
      }),
    ),
  );
  assert.equal(results.filter(({ status }) => status === "rejected").length, 10);
  assert.equal(store.readUsage("plain").objects, 20);
  await requireRightUsage(store, "after refusals");
});

test("an operation that is refused after it has counted is undone in the counts", async (context) => {
  const options = { dataDir: makeFolder(context), reserveBytes: 0, inspectedBytesMax: 1 };
  const first = await openStore(options);
  await first.buckets.create({ bucket: "bucket", owner, region: "r" });
  await put(first, "key", makeBytes(100));
  await first.buckets.setVersioning("bucket", "Enabled");
  await put(first, "key", makeBytes(200));
  await first.buckets.setVersioning("bucket", "Suspended");
  await first.close();
  const index = new DatabaseSync(join(options.dataDir, "index.sqlite"));
  index.exec("update versions set etag = 'damaged'");
  index.close();
  const store = await openStore(options);
  defer(context, () => store.close());
  // The live object is retired and counted before the damaged null version is read.
  const [damaged, ...others] = await Promise.allSettled([
    put(store, "key", makeBytes(300)),
    ...[1, 2, 3].map((name) => put(store, `other-${name}`, makeBytes(10))),
  ]);
  assert.equal(damaged.status, "rejected");
  assert.ok(others.every(({ status }) => status === "fulfilled"));
  const usage = store.readUsage("bucket");
  assert.deepEqual([usage.objects, usage.versions, usage.bytes], [4, 5, 330]);
  await store.close();
  const again = await openStore(options);
  defer(context, () => again.close());
  assert.deepEqual(again.readUsage("bucket"), usage);
});

test("many concurrent writers cannot exceed a quota, and everything can be deleted", async (context) => {
  const store = await openStore({ dataDir: makeFolder(context), reserveBytes: 0, partBytesMin: 1 });
  defer(context, () => store.close());
  await store.buckets.create({ bucket: "bucket", owner, region: "r" });
  await store.buckets.setSetting("bucket", "quota", { bytesMax: 10_000 });
  const results = await Promise.allSettled(
    Array.from({ length: 100 }, (_, index) => put(store, `k${index}`, makeBytes(300))),
  );
  const refused = results.filter((result) => result.status === "rejected");
  assert.equal(refused.length, 100 - 33);
  for (const { reason } of refused) assert.equal((reason as StoreError).code, "QuotaExceeded");
  assert.equal(store.readUsage("bucket").bytes, 9_900);
  // A replacement of the same size always fits, and so does a smaller one above a lowered limit.
  await store.buckets.setSetting("bucket", "quota", { bytesMax: 500, objectsMax: 1 });
  const [kept] = (await store.objects.list({ bucket: "bucket" })).objects;
  await put(store, kept!.key, makeBytes(300, 2));
  await put(store, kept!.key, makeBytes(200, 3));
  await assert.rejects(put(store, kept!.key, makeBytes(201)), { code: "QuotaExceeded" });
  await assert.rejects(put(store, "new", ""), { code: "QuotaExceeded" });
  const { objects } = await store.objects.list({ bucket: "bucket" });
  await store.objects.deleteMany(objects.map((object) => ({ bucket: "bucket", key: object.key })));
  assert.deepEqual(store.readUsage("bucket").bytes, 0);
  await put(store, "new", makeBytes(500));
});

test("a body without room is refused before its first byte", async (context) => {
  const store = await openStore({ dataDir: makeFolder(context), reserveBytes: 0, partBytesMin: 1 });
  defer(context, () => store.close());
  await store.buckets.create({ bucket: "bucket", owner, region: "r" });
  await store.buckets.setSetting("bucket", "quota", { bytesMax: 1_000 });
  await put(store, "key", makeBytes(900));
  const begin = (contentLength: number, name: string) => () =>
    void store.objects.beginPut({ bucket: "bucket", key: name, contentLength });
  assert.throws(begin(101, "other"), { code: "QuotaExceeded" });
  assert.throws(begin(1_001, "key"), { code: "QuotaExceeded" });
  await put(store, "key", makeBytes(1_000));
  const { uploadId } = await store.uploads.create({ bucket: "bucket", key: "parts" });
  const part = { bucket: "bucket", key: "parts", uploadId, partNumber: 1, contentLength: 1 };
  assert.throws(() => void store.uploads.beginPart(part), { code: "QuotaExceeded" });
});

for (const format of [1, 2]) {
  test(`a folder of format ${format} opens, and is counted`, async (context) => {
    const options = { dataDir: makeFolder(context), reserveBytes: 0, partBytesMin: 1 };
    await fill(options);
    const index = new DatabaseSync(join(options.dataDir, "index.sqlite"));
    index.exec("drop table vectors; drop table tasks");
    index.exec("drop table jobs; drop table job_lines; drop table trigger_runs");
    index.exec("drop table facts; drop table remotes; drop table remote_blobs");
    index.exec("drop index blobs_by_kek; drop index blobs_by_head");
    index.exec("drop table usage");
    // The totals of earlier formats. The bytes are wrong: they must not be used.
    index.exec("insert into meta select 'objects', count(*) from current");
    index.exec("insert into meta values ('storage_bytes', 67890)");
    if (format === 1) {
      for (const table of ["buckets", "current", "versions", "blobs", "blob_parts", "parts"]) {
        index.exec(`alter table ${table} drop column seal`);
      }
    }
    index.exec(`pragma user_version = ${format}`);
    index.close();
    rmSync(join(options.dataDir, "index.sqlite.mark"));
    const store = await openStore(options);
    defer(context, () => store.close());
    assert.ok(store.readUsage("versioned").versions > 1);
    await requireRightUsage(store, "after the opening");
    await put(store, "more", "more", { bucket: "plain" });
    await requireRightUsage(store, "after a write");
  });
}

test("fsck finds a wrong count, and a repair recounts and keeps the quota", async (context) => {
  const options = { dataDir: makeFolder(context), reserveBytes: 0, partBytesMin: 1 };
  await fill(options);
  assert.equal((await checkStore({ dataDir: options.dataDir, isRepair: false })).isWhole, true);
  const index = new DatabaseSync(join(options.dataDir, "index.sqlite"));
  index.exec("update usage set bytes = bytes + 1 where bucket = 1");
  index.close();
  await assert.rejects(openStore(options), /usage of bucket 1.*platform-vaultd fsck/s);
  await checkStore({ dataDir: options.dataDir, isRepair: true });
  assert.equal((await checkStore({ dataDir: options.dataDir, isRepair: false })).isWhole, true);
  const store = await openStore(options);
  await requireRightUsage(store, "after the repair");
  await store.close();

  for (const ending of ["", "-wal", "-shm"]) {
    rmSync(join(options.dataDir, `index.sqlite${ending}`), { force: true });
  }
  await checkStore({ dataDir: options.dataDir, isRepair: true });
  const again = await openStore(options);
  defer(context, () => again.close());
  assert.deepEqual(again.buckets.require("limited").settings.quota, LIMITS);
  assert.ok(again.readUsage("plain").bytes >= 20_000);
  await requireRightUsage(again, "after the loss of the index");
});

async function fill(options: Parameters<typeof openStore>[0]): Promise<void> {
  const store = await openStore(options);
  await makeBuckets(store);
  for (const bucket of BUCKETS) {
    for (const bytes of [10, 20_000]) await put(store, `${bytes}`, makeBytes(bytes), { bucket });
    await put(store, "10", makeBytes(11), { bucket });
    await store.objects.delete({ bucket, key: "10" });
    await run(store, bucket, { type: "upload", key: "open", sizes: [700], end: "leave" });
  }
  await requireRightUsage(store, "after the filling");
  await store.close();
}

async function makeBuckets(store: Store): Promise<void> {
  for (const bucket of BUCKETS) await store.buckets.create({ bucket, owner, region: "r" });
  await store.buckets.setVersioning("versioned", "Enabled");
  await store.buckets.setSetting("limited", "quota", LIMITS);
}

async function removeBuckets(store: Store): Promise<void> {
  for (const { name: bucket } of store.buckets.list()) {
    const { versions } = await store.objects.listVersions({ bucket });
    await store.objects.deleteMany(
      versions.map(({ key: name, versionId }) => ({ bucket, key: name, versionId })),
    );
    await store.buckets.delete(bucket);
  }
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof StoreError) || error.code === "InternalError") throw error;
}

async function run(store: Store, bucket: string, one: Step): Promise<unknown> {
  switch (one.type) {
    case "put":
      return put(store, one.key, makeBytes(one.size), { bucket });
    case "putIfNone":
      return put(store, one.key, "x", { bucket, conditions: { ifNoneMatch: "*" } });
    case "copy":
      return store.copies.copy({
        source: { bucket: "plain", key: one.from },
        bucket,
        key: one.key,
        metadataDirective: "REPLACE",
        attributes: {},
      });
    case "delete":
      return store.objects.delete({ bucket, key: one.key });
    case "deleteNewest": {
      const [newest] = (await store.objects.listVersions({ bucket, maxKeys: 1 })).versions;
      if (newest === undefined) return undefined;
      return store.objects.delete({ bucket, key: newest.key, versionId: newest.versionId });
    }
    case "suspend":
      return bucket === "plain" ? undefined : store.buckets.setVersioning(bucket, "Suspended");
    case "upload":
      return runUpload(store, bucket, one);
    case "part": {
      const [upload] = (await store.uploads.list({ bucket, maxUploads: 1 })).uploads;
      return upload === undefined ? undefined : putPart(store, upload, one.number, one.size);
    }
    default:
      return one satisfies never;
  }
}

async function runUpload(
  store: Store,
  bucket: string,
  { key: name, sizes, end }: Extract<Step, { type: "upload" }>,
): Promise<void> {
  const upload = await store.uploads.create({ bucket, key: name });
  const parts = [];
  for (const [index, bytes] of sizes.entries()) {
    const { etag } = await putPart(store, upload, index, bytes);
    parts.push({ partNumber: index + 1, etag });
  }
  const address = { bucket, key: name, uploadId: upload.uploadId };
  // All but the last one: unlisted parts are released.
  const named = parts.slice(0, Math.max(1, parts.length - 1));
  if (end === "complete") await store.uploads.complete({ ...address, parts: named });
  if (end === "abort") await store.uploads.abort(address);
}

async function putPart(
  store: Store,
  { bucket, key: name, uploadId }: UploadAddress,
  index: number,
  contentLength: number,
): Promise<PartResult> {
  const partNumber = index + 1;
  const part = store.uploads.beginPart({ bucket, key: name, uploadId, partNumber, contentLength });
  await part.write(makeBytes(contentLength, 7));
  return part.commit();
}
