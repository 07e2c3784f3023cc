// Multipart uploads: parts in any order, one object, no leftovers.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { test } from "node:test";
import type { CompleteUploadRequest, PartResult, UploadInfo } from "../../src/model/upload.ts";
import type { Store } from "../../src/object-store.ts";
import { makeBytes, makeStore, put, read } from "./fixture.ts";

const PART = 5 * 1024 * 1024;

function toAddress({ bucket, key, uploadId }: UploadInfo) {
  return { bucket, key, uploadId };
}

async function putPart(
  store: Store,
  info: UploadInfo,
  partNumber: number,
  body: Buffer,
): Promise<PartResult & { partNumber: number }> {
  const upload = store.uploads.beginPart({
    ...toAddress(info),
    partNumber,
    contentLength: body.length,
  });
  await upload.write(body);
  return { ...(await upload.commit()), partNumber };
}

function toRequest(
  { bucket, key, uploadId }: UploadInfo,
  parts: readonly (PartResult & { partNumber: number })[],
): CompleteUploadRequest {
  return {
    bucket,
    key,
    uploadId,
    parts: parts.map(({ partNumber, etag }) => ({ partNumber, etag })),
  };
}

test("parts in any order become one object, readable as a whole, by range and by part", async (context) => {
  const store = await makeStore(context);
  const upload = await store.uploads.create({
    bucket: "bucket",
    key: "big",
    metadata: { a: "1" },
    headers: { contentType: "video/mp4" },
  });
  const bodies = [makeBytes(PART, 1), makeBytes(PART + 1, 2), makeBytes(12, 3)];
  const parts = [];
  for (const number of [3, 1, 2])
    parts.push(await putPart(store, upload, number, bodies[number - 1]!));
  parts.sort((a, b) => a.partNumber - b.partNumber);
  await assert.rejects(read(store, "big"), { code: "NoSuchKey" });
  const result = await store.uploads.complete(toRequest(upload, parts));
  const md5s = parts.map(({ etag }) => Buffer.from(etag, "hex"));
  assert.equal(result.etag, `${createHash("md5").update(Buffer.concat(md5s)).digest("hex")}-3`);
  const whole = Buffer.concat(bodies);
  assert.equal(result.sizeBytes, whole.length);
  assert.deepEqual(await read(store, "big"), whole);
  const { object } = await store.objects.head({ bucket: "bucket", key: "big" });
  assert.deepEqual(
    [object.metadata, object.headers.contentType, object.partsCount],
    [{ a: "1" }, "video/mp4", 3],
  );
  const range = { start: PART - 3, end: 2 * PART + 5 };
  assert.deepEqual(await read(store, "big", { range }), whole.subarray(range.start, range.end + 1));
  assert.deepEqual(await read(store, "big", { partNumber: 2 }), bodies[1]);
  await assert.rejects(read(store, "big", { partNumber: 4 }), { code: "InvalidPartNumber" });
  const listed = await store.objects.listParts({ bucket: "bucket", key: "big" }, { maxParts: 2 });
  assert.deepEqual([listed.parts.length, listed.partsCount, listed.nextPartNumber], [2, 3, 2]);
  assert.equal(store.readStats().storageBytes, whole.length);
  await store.objects.delete({ bucket: "bucket", key: "big" });
  assert.equal(store.readStats().storageBytes, 0);
});

test("repeating a completion returns the same answer; late parts and aborts get NoSuchUpload", async (context) => {
  const store = await makeStore(context);
  const upload = await store.uploads.create({ bucket: "bucket", key: "key" });
  const parts = [await putPart(store, upload, 1, makeBytes(100))];
  const late = store.uploads.beginPart({ ...toAddress(upload), partNumber: 2, contentLength: 3 });
  await late.write(Buffer.from("abc"));
  const first = await store.uploads.complete(toRequest(upload, parts));
  assert.deepEqual(await store.uploads.complete(toRequest(upload, parts)), first);
  await assert.rejects(late.commit(), { code: "NoSuchUpload" });
  await assert.rejects(store.uploads.abort(upload), { code: "NoSuchUpload" });
  await assert.rejects(store.uploads.listParts(upload), { code: "NoSuchUpload" });
  assert.throws(
    () => store.uploads.beginPart({ ...toAddress(upload), partNumber: 2, contentLength: 3 }),
    {
      code: "NoSuchUpload",
    },
  );
  const other = [{ ...parts[0]!, etag: "0".repeat(32) }];
  await assert.rejects(store.uploads.complete(toRequest(upload, other)), { code: "NoSuchUpload" });
  assert.equal((await read(store, "key")).length, 100);
});

test("parts that are missing, changed, out of order or too small are refused, and the upload continues", async (context) => {
  const store = await makeStore(context);
  const upload = await store.uploads.create({ bucket: "bucket", key: "key" });
  const small = await putPart(store, upload, 1, makeBytes(100));
  const last = await putPart(store, upload, 2, makeBytes(200));
  const complete = (parts: (PartResult & { partNumber: number })[]) =>
    store.uploads.complete(toRequest(upload, parts));
  await assert.rejects(complete([]), { code: "InvalidRequest" });
  await assert.rejects(complete([small, last]), { code: "EntityTooSmall" });
  await assert.rejects(complete([last, small]), { code: "InvalidPartOrder" });
  await assert.rejects(complete([small, small]), { code: "InvalidPartOrder" });
  await assert.rejects(complete([{ ...small, partNumber: 3 }]), { code: "InvalidPart" });
  await assert.rejects(complete([{ ...small, etag: last.etag }]), { code: "InvalidPart" });
  for (const partNumber of [0, 10_001, 1.5]) {
    assert.throws(
      () => store.uploads.beginPart({ ...toAddress(upload), partNumber, contentLength: 1 }),
      {
        code: "InvalidArgument",
      },
    );
  }
  await assert.rejects(store.uploads.complete({ ...toRequest(upload, [last]), sizeBytes: 1 }), {
    code: "InvalidRequest",
  });
  await complete([last]);
  assert.deepEqual(await read(store, "key"), makeBytes(200));
  assert.equal(store.readStats().storageBytes, 200);
});

test("a part put again replaces the first; an abort leaves no bytes", async (context) => {
  const store = await makeStore(context);
  const upload = await store.uploads.create({ bucket: "bucket", key: "key" });
  await putPart(store, upload, 1, makeBytes(2_000_000, 1));
  const second = await putPart(store, upload, 1, makeBytes(300_000, 2));
  assert.equal(store.readStats().storageBytes, 300_000);
  const { parts } = await store.uploads.listParts(upload);
  assert.deepEqual(
    parts.map(({ partNumber, etag, sizeBytes }) => ({ partNumber, etag, sizeBytes })),
    [{ partNumber: 1, etag: second.etag, sizeBytes: 300_000 }],
  );
  await store.uploads.abort(upload);
  assert.equal(store.readStats().storageBytes, 0);
  await assert.rejects(store.uploads.get(upload), { code: "NoSuchUpload" });
});

test("the checksum of the whole object is computed from those of the parts", async (context) => {
  const store = await makeStore(context, { partBytesMin: 1 });
  const bodies = [makeBytes(1000, 1), makeBytes(1, 2), makeBytes(70_000, 3)];
  const whole = Buffer.concat(bodies);
  const expected = Buffer.alloc(4);
  expected.writeUInt32BE(crc32(whole));
  for (const algorithm of ["CRC32", "CRC32C", "CRC64NVME"] as const) {
    const upload = await store.uploads.create({
      bucket: "bucket",
      key: algorithm,
      checksum: { algorithm, type: "FULL_OBJECT" },
    });
    const parts = [];
    for (const [index, body] of bodies.entries())
      parts.push(await putPart(store, upload, index + 1, body));
    const { checksum } = await store.uploads.complete(toRequest(upload, parts));
    const single = await put(store, "single", whole, { checksum: algorithm });
    assert.deepEqual(checksum, single.checksum);
    if (algorithm === "CRC32") assert.equal(checksum?.value, expected.toString("base64"));
  }
  const upload = await store.uploads.create({
    bucket: "bucket",
    key: "sha",
    checksum: { algorithm: "SHA256", type: "COMPOSITE" },
  });
  const parts = [
    await putPart(store, upload, 1, bodies[0]!),
    await putPart(store, upload, 2, bodies[1]!),
  ];
  const digests = bodies.slice(0, 2).map((body) => createHash("sha256").update(body).digest());
  const value = createHash("sha256").update(Buffer.concat(digests)).digest("base64");
  await assert.rejects(store.uploads.complete({ ...toRequest(upload, parts), checksum: "AAAA" }), {
    code: "BadDigest",
  });
  const { checksum } = await store.uploads.complete({
    ...toRequest(upload, parts),
    checksum: value,
  });
  assert.deepEqual(checksum, { algorithm: "SHA256", type: "COMPOSITE", value: `${value}-2` });
  await assert.rejects(
    store.uploads.create({
      bucket: "bucket",
      key: "k",
      checksum: { algorithm: "SHA1", type: "FULL_OBJECT" },
    }),
    { code: "InvalidRequest" },
  );
});

test("a part can be copied from an object or from a range of it", async (context) => {
  const store = await makeStore(context, { partBytesMin: 1 });
  const body = makeBytes(3_000_000);
  await put(store, "source", body);
  const upload = await store.uploads.create({ bucket: "bucket", key: "key" });
  const source = { bucket: "bucket", key: "source" };
  const whole = await store.uploads.copyPart({ ...toAddress(upload), partNumber: 1, source });
  const piece = await store.uploads.copyPart({
    ...toAddress(upload),
    partNumber: 2,
    source,
    range: { start: 1_000_000, end: 1_999_999 },
  });
  await store.objects.delete(source);
  await store.uploads.complete(
    toRequest(upload, [
      { ...whole, partNumber: 1 },
      { ...piece, partNumber: 2 },
    ]),
  );
  assert.deepEqual(
    await read(store, "key"),
    Buffer.concat([body, body.subarray(1_000_000, 2_000_000)]),
  );
  await store.copies.copy({
    source: { bucket: "bucket", key: "key" },
    bucket: "bucket",
    key: "copy",
    attributes: {},
  });
  await store.objects.delete({ bucket: "bucket", key: "key" });
  assert.equal((await read(store, "copy")).length, 4_000_000);
});

test("uploads are listed by key, then by start time, in pages and under prefixes", async (context) => {
  const store = await makeStore(context);
  const keys = ["a/1", "a/2", "b", "b", "b", "c/1"];
  const ids: string[] = [];
  for (const key of keys)
    ids.push((await store.uploads.create({ bucket: "bucket", key })).uploadId);
  const found: string[] = [];
  let after;
  do {
    const page = await store.uploads.list({
      bucket: "bucket",
      maxUploads: 2,
      ...(after && { after }),
    });
    found.push(...page.uploads.map(({ uploadId }) => uploadId));
    after = page.next;
  } while (after !== undefined);
  assert.deepEqual(found, ids);
  const folders = await store.uploads.list({ bucket: "bucket", delimiter: "/" });
  assert.deepEqual(folders.commonPrefixes, ["a/", "c/"]);
  assert.equal(folders.uploads.length, 3);
});

test("two completions that race make one object", async (context) => {
  const store = await makeStore(context);
  await store.buckets.setVersioning("bucket", "Enabled");
  const upload = await store.uploads.create({ bucket: "bucket", key: "key" });
  const parts = [await putPart(store, upload, 1, makeBytes(100))];
  const results = await Promise.all(
    Array.from({ length: 5 }, () => store.uploads.complete(toRequest(upload, parts))),
  );
  assert.equal(new Set(results.map(({ versionId }) => versionId)).size, 1);
  assert.equal((await store.objects.listVersions({ bucket: "bucket" })).versions.length, 1);
});
