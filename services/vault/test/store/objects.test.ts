// Objects: bodies, ranges, conditions, copies and deletions.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import { openIndexReader } from "../../src/index/schema.ts";
import { openStore } from "../../src/open-store.ts";
import { defer, makeBytes, makeFolder, makeStore, owner, put, read } from "./fixture.ts";

const KIB = 1024;
const sizes = [
  0,
  1,
  16 * KIB,
  16 * KIB + 1,
  64 * KIB,
  64 * KIB + 1,
  1024 * KIB,
  1024 * KIB + 1,
  3_500_000,
];

test("a body of any size comes back as it was put, with the MD5 as its ETag", async (context) => {
  const store = await makeStore(context);
  for (const size of sizes) {
    const body = makeBytes(size, size + 1);
    const result = await put(store, `size/${size}`, body);
    assert.equal(result.etag, createHash("md5").update(body).digest("hex"));
    assert.deepEqual(await read(store, `size/${size}`), body);
  }
  assert.equal(store.readStats().objects, sizes.length);
  assert.equal(
    store.readStats().storageBytes,
    sizes.reduce((sum, size) => sum + size, 0),
  );
  assert.equal(store.readStats().stagingBytes, 0);
});

test("ranges return exactly the requested bytes, across the borders of blocks and frames", async (context) => {
  const store = await makeStore(context);
  for (const size of sizes.filter((bytes) => bytes > 0)) {
    const body = makeBytes(size, 7);
    await put(store, "key", body);
    const ranges: [number, number][] = [
      [0, 0],
      [size - 1, size - 1],
      [Math.floor(size / 3), Math.floor(size / 2)],
      [0, size - 1],
      [Math.max(0, Math.min(65_535, size - 2)), size - 1],
    ];
    for (const [start, end] of ranges) {
      const reader = await store.objects.get({
        bucket: "bucket",
        key: "key",
        range: { start, end },
      });
      assert.equal(reader.contentLength, end - start + 1);
      assert.deepEqual(reader.range, { start, end });
      reader.body.close();
      const bytes = await read(store, "key", { range: { start, end } });
      assert.deepEqual(bytes, body.subarray(start, end + 1), `${size}: ${start}-${end}`);
    }
    assert.deepEqual(await read(store, "key", { range: { suffix: 10 } }), body.subarray(-10));
  }
  await assert.rejects(read(store, "key", { range: { start: 4_000_000 } }), {
    code: "InvalidRange",
    details: { sizeBytes: 3_500_000 },
  });
});

test("the last bytes of an empty object are the whole, and its first ones cannot be read", async (context) => {
  const store = await makeStore(context);
  await put(store, "empty", Buffer.alloc(0));
  const whole = await store.objects.get({ bucket: "bucket", key: "empty", range: { suffix: 5 } });
  assert.deepEqual([whole.range, whole.contentLength], [undefined, 0]);
  whole.body.close();
  for (const range of [{ start: 0 }, { suffix: 0 }])
    await assert.rejects(read(store, "empty", { range }), { code: "InvalidRange" });
});

test("everything is present after closing and reopening", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openStore({ dataDir, reserveBytes: 0 });
  await store.buckets.create({ bucket: "bucket", owner, region: "eu" });
  for (const size of sizes) await put(store, `${size}`, makeBytes(size));
  await store.close();
  const again = await openStore({ dataDir, reserveBytes: 0 });
  defer(context, () => again.close());
  for (const size of sizes) assert.deepEqual(await read(again, `${size}`), makeBytes(size));
  assert.deepEqual(again.buckets.require("bucket").region, "eu");
  await put(again, "new", "x");
  assert.equal(again.readStats().objects, sizes.length + 1);
});

test("a second process cannot open the store", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openStore({ dataDir });
  await assert.rejects(openStore({ dataDir }), { code: "ServiceUnavailable", message: /another/ });
  await store.close();
  await (await openStore({ dataDir })).close();
});

test("headers, metadata, tags, class and checksum come back with the object", async (context) => {
  const store = await makeStore(context);
  const attributes = {
    headers: { contentType: "text/plain", cacheControl: "no-store" },
    metadata: { colour: "blå" },
    tags: { a: "1" },
    storageClass: "STANDARD_IA",
    owner,
    websiteRedirect: "/there",
    acl: { grants: [] },
  };
  const result = await put(store, "key", "hello", { ...attributes, checksum: "CRC32C" });
  const expected = { algorithm: "CRC32C", value: "mnG7TA==", type: "FULL_OBJECT" };
  assert.deepEqual(result.checksum, expected);
  const { object } = await store.objects.head({ bucket: "bucket", key: "key" });
  const { headers, metadata, tags, storageClass, websiteRedirect, acl } = object;
  assert.deepEqual(
    { headers, metadata, tags, storageClass, owner: object.owner, websiteRedirect, acl },
    attributes,
  );
  assert.deepEqual(object.checksum, expected);
});

test("requested digests are available before the commit", async (context) => {
  const store = await makeStore(context);
  const upload = store.objects.beginPut({
    bucket: "bucket",
    key: "key",
    contentLength: 9,
    digests: ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"],
  });
  upload.write(Buffer.from("12345"));
  upload.write(Buffer.from("6789"));
  const { md5, checksums, bytes } = await upload.finish();
  assert.equal(bytes, 9);
  assert.equal(md5.toString("hex"), "25f9e794323b453885f5181f1b624d0b");
  // The check values of the catalogue of CRC algorithms.
  assert.equal(checksums.CRC32?.toString("hex"), "cbf43926");
  assert.equal(checksums.CRC32C?.toString("hex"), "e3069283");
  assert.equal(checksums.CRC64NVME?.toString("hex"), "ae8b14860a799888");
  assert.equal(checksums.SHA1?.toString("hex"), "f7c3bc1d808e04732adf679965ccc34ca7ae3441");
  await upload.abort();
  await assert.rejects(read(store, "key"), { code: "NoSuchKey" });
});

test("a body that is longer or shorter than declared leaves nothing behind", async (context) => {
  const store = await makeStore(context);
  for (const size of [10, 100_000, 2_000_000]) {
    const short = store.objects.beginPut({ bucket: "bucket", key: "key", contentLength: size + 1 });
    await short.write(makeBytes(size));
    await assert.rejects(short.finish(), { code: "IncompleteBody" });
    await short.abort();
    const long = store.objects.beginPut({ bucket: "bucket", key: "key", contentLength: size - 1 });
    assert.throws(() => long.write(makeBytes(size)), { code: "EntityTooLarge" });
    await long.abort();
  }
  await assert.rejects(read(store, "key"), { code: "NoSuchKey" });
  assert.equal(store.readStats().stagingBytes, 0);
});

test("If-None-Match with an ETag replaces any object except that one", async (context) => {
  const store = await makeStore(context);
  const { etag } = await put(store, "key", "first");
  const conditions = { ifNoneMatch: etag };
  await assert.rejects(put(store, "key", "second", { conditions }), {
    code: "PreconditionFailed",
    details: { condition: "If-None-Match" },
  });
  assert.equal(String(await read(store, "key")), "first");
  await put(store, "key", "second");
  await put(store, "key", "third", { conditions });
  await put(store, "other", "first", { conditions });
  assert.equal(String(await read(store, "key")), "third");
});

test("If-None-Match lets exactly one of many writers create the object", async (context) => {
  const store = await makeStore(context);
  const attempts = await Promise.allSettled(
    Array.from({ length: 50 }, (_, index) =>
      put(store, "once", `writer ${index}`, { conditions: { ifNoneMatch: "*" } }),
    ),
  );
  const done = attempts.filter(({ status }) => status === "fulfilled");
  assert.equal(done.length, 1);
  for (const attempt of attempts) {
    if (attempt.status === "rejected") assert.equal(attempt.reason.code, "PreconditionFailed");
  }
});

test("an operation that is refused halfway leaves nothing behind, and the rest of its group is committed", async (context) => {
  const dataDir = makeFolder(context);
  const store = await makeStore(context, { dataDir });
  // The bucket has no object lock, which is detected after the bytes are in the index.
  const retention = { mode: "GOVERNANCE", untilMs: Date.now() + 86_400_000 } as const;
  const mayStay = (index: number) => index % 3 !== 1;
  const puts = Array.from({ length: 60 }, (_, index) =>
    put(store, `key-${index % 30}`, `body ${index}`, mayStay(index) ? {} : { retention }),
  );
  for (const [index, { status }] of (await Promise.allSettled(puts)).entries()) {
    assert.equal(status, mayStay(index) ? "fulfilled" : "rejected");
  }
  const { objects } = await store.objects.list({ bucket: "bucket" });
  assert.equal(objects.length, 20);
  const bodies = await Promise.all(objects.map(({ key }) => read(store, key)));
  const { storageBytes, objects: count } = store.readStats();
  assert.deepEqual([count, storageBytes], [20, Buffer.concat(bodies).length]);
  const index = openIndexReader(join(dataDir, "index.sqlite"));
  defer(context, () => index.close());
  assert.deepEqual({ ...index.sql("select count(*) as blobs from blobs").get() }, { blobs: 20 });
});

test("If-Match replaces the expected object and no other", async (context) => {
  const store = await makeStore(context);
  await assert.rejects(put(store, "key", "x", { conditions: { ifMatch: "abc" } }), {
    code: "NoSuchKey",
  });
  const { etag } = await put(store, "key", "one");
  const { etag: second } = await put(store, "key", "two", { conditions: { ifMatch: etag } });
  await assert.rejects(put(store, "key", "three", { conditions: { ifMatch: etag } }), {
    code: "PreconditionFailed",
    details: { condition: "If-Match" },
  });
  assert.equal((await read(store, "key")).toString(), "two");
  await assert.rejects(
    store.objects.delete({ bucket: "bucket", key: "key", conditions: { ifMatch: etag } }),
    { code: "PreconditionFailed" },
  );
  await store.objects.delete({ bucket: "bucket", key: "key", conditions: { ifMatch: second } });
  await assert.rejects(read(store, "key"), { code: "NoSuchKey" });
});

test("conditions of reads follow RFC 9110", async (context) => {
  const store = await makeStore(context);
  const { etag, modifiedMs } = await put(store, "key", "one");
  const head = (conditions: object) =>
    store.objects.head({ bucket: "bucket", key: "key", conditions });
  await head({ ifMatch: [etag] });
  await head({ ifMatch: ["*"], ifUnmodifiedSinceMs: 0 });
  await assert.rejects(head({ ifMatch: ["other"] }), { code: "PreconditionFailed" });
  await assert.rejects(head({ ifUnmodifiedSinceMs: modifiedMs - 5000 }), {
    code: "PreconditionFailed",
  });
  await assert.rejects(head({ ifNoneMatch: ["x", etag] }), { code: "NotModified" });
  await assert.rejects(head({ ifModifiedSinceMs: modifiedMs }), { code: "NotModified" });
  await head({ ifNoneMatch: ["x"], ifModifiedSinceMs: modifiedMs });
});

test("keys are opaque: dots, slashes, and names that are folders of others", async (context) => {
  const store = await makeStore(context);
  const keys = [
    "foo",
    "foo/bar",
    "foo//bar",
    "../x",
    ".",
    "/",
    "å/日本/😀",
    "a\u0000b",
    "k".repeat(1024),
  ];
  for (const key of keys) await put(store, key, key);
  for (const key of keys) assert.equal((await read(store, key)).toString(), key);
  assert.throws(
    () => store.objects.beginPut({ bucket: "bucket", key: "k".repeat(1025), contentLength: 0 }),
    {
      code: "KeyTooLongError",
    },
  );
  assert.throws(
    () => store.objects.beginPut({ bucket: "bucket", key: "\ud800", contentLength: 0 }),
    {
      code: "InvalidArgument",
    },
  );
  assert.throws(() => store.objects.beginPut({ bucket: "nobody", key: "k", contentLength: 0 }), {
    code: "NoSuchBucket",
  });
});

test("a copy shares the bytes, and survives its source", async (context) => {
  const store = await makeStore(context);
  const body = makeBytes(2_000_000);
  await put(store, "source", body, { metadata: { a: "1" }, tags: { t: "1" } });
  const copied = await store.copies.copy({
    source: { bucket: "bucket", key: "source" },
    bucket: "bucket",
    key: "target",
    attributes: {},
  });
  assert.equal(copied.sourceVersionId, "null");
  await store.objects.delete({ bucket: "bucket", key: "source" });
  assert.deepEqual(await read(store, "target"), body);
  const { object } = await store.objects.head({ bucket: "bucket", key: "target" });
  assert.deepEqual([object.metadata, object.tags], [{ a: "1" }, { t: "1" }]);
  await assert.rejects(
    store.copies.copy({
      source: { bucket: "bucket", key: "target" },
      bucket: "bucket",
      key: "target",
      attributes: {},
    }),
    { code: "InvalidRequest" },
  );
  await store.copies.copy({
    source: { bucket: "bucket", key: "target" },
    bucket: "bucket",
    key: "target",
    metadataDirective: "REPLACE",
    attributes: { metadata: { b: "2" } },
  });
  const changed = await store.objects.head({ bucket: "bucket", key: "target" });
  assert.deepEqual(changed.object.metadata, { b: "2" });
  assert.deepEqual(await read(store, "target"), body);
});

test("a bucket can be deleted only when it is empty", async (context) => {
  const store = await makeStore(context);
  await put(store, "key", "x");
  await assert.rejects(store.buckets.delete("bucket"), { code: "BucketNotEmpty" });
  await store.objects.delete({ bucket: "bucket", key: "key" });
  await store.uploads.create({ bucket: "bucket", key: "open" });
  await store.buckets.delete("bucket");
  assert.equal(store.buckets.find("bucket"), undefined);
  await assert.rejects(store.objects.list({ bucket: "bucket" }), { code: "NoSuchBucket" });
});

test("bucket names, owners and numbers are checked", async (context) => {
  const store = await makeStore(context, { bucketsMax: 2 });
  const create = (bucket: string, id = owner.id) =>
    store.buckets.create({ bucket, owner: { ...owner, id }, region: "r" });
  for (const name of ["ab", "Abc", "a..b", "1.2.3.4", "-abc", "abc-", "a".repeat(64)]) {
    await assert.rejects(create(name), { code: "InvalidBucketName" }, name);
  }
  await assert.rejects(create("bucket"), { code: "BucketAlreadyOwnedByYou" });
  await assert.rejects(create("bucket", "else"), { code: "BucketAlreadyExists" });
  await create("other");
  await assert.rejects(create("third"), { code: "TooManyBuckets" });
  assert.deepEqual(
    store.buckets.list().map(({ name }) => name),
    ["bucket", "other"],
  );
});

test("a full disk refuses bodies and continues to delete and read", async (context) => {
  let freeBytes = 10_000_000;
  const store = await makeStore(context, {
    reserveBytes: 1_000_000,
    readSpace: () => ({ freeBytes, totalBytes: 100_000_000 }),
    clock: { now: Date.now, monotonicMs: () => (freeBytes === 0 ? 10_000 : 0) },
  });
  await put(store, "key", makeBytes(200_000));
  assert.throws(
    () => store.objects.beginPut({ bucket: "bucket", key: "big", contentLength: 9_000_001 }),
    {
      code: "InsufficientStorage",
    },
  );
  freeBytes = 0;
  await assert.rejects(put(store, "small", "x"), { code: "InsufficientStorage" });
  assert.match(store.check() ?? "", /^disk_full/);
  assert.equal((await read(store, "key")).length, 200_000);
  await store.objects.delete({ bucket: "bucket", key: "key" });
});

test("deleting many objects returns a result for each, and deleting a missing object succeeds", async (context) => {
  const store = await makeStore(context);
  await put(store, "a", "1");
  await put(store, "b", "2");
  const results = await store.objects.deleteMany([
    { bucket: "bucket", key: "a" },
    { bucket: "bucket", key: "missing" },
    { bucket: "bucket", key: "b", conditions: { ifMatch: "else" } },
  ]);
  assert.deepEqual(results.slice(0, 2), [{ deleteMarker: false }, { deleteMarker: false }]);
  assert.equal((results[2] as { code?: string }).code, "PreconditionFailed");
  assert.equal((await read(store, "b")).toString(), "2");
});
