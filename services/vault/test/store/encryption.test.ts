// Encryption at rest: nothing is readable on disk, nothing is readable without the key.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeBytes, makeFolder, makeStore, put, read } from "./fixture.ts";

const kek = randomBytes(32);
const keys = {
  current: () => ({ id: "k1", key: kek }),
  find: (id: string) => (id === "k1" ? kek : undefined),
};
const sizes = [0, 1, 65_535, 65_536, 65_537, 200_000, 2_500_000];

test("encrypted bodies come back whole and by range, and are nowhere on the disk", async (context) => {
  const dataDir = makeFolder(context);
  const store = await makeStore(context, { dataDir, keys });
  const customer = randomBytes(32);
  for (const encryption of [{ type: "SSE-S3" }, { type: "SSE-C", key: customer }] as const) {
    const customerKey = encryption.type === "SSE-C" ? { customerKey: customer } : {};
    for (const size of sizes) {
      const body = Buffer.alloc(size, "very secret text ");
      const { etag } = await put(store, "key", body, { encryption });
      assert.deepEqual(await read(store, "key", customerKey), body);
      if (size < 2) continue;
      const range = { start: Math.floor(size / 2), end: size - 1 };
      assert.deepEqual(
        await read(store, "key", { ...customerKey, range }),
        body.subarray(range.start),
      );
      const { object } = await store.objects.head({ bucket: "bucket", key: "key", ...customerKey });
      assert.equal(object.encryption?.type, encryption.type);
      assert.equal(object.sizeBytes, size);
      assert.equal(object.etag, etag);
    }
  }
  for (const entry of readdirSync(dataDir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name === "lock.sqlite") continue;
    const bytes = readFileSync(join(entry.parentPath, entry.name));
    assert.equal(bytes.includes("very secret"), false, entry.name);
    assert.equal(bytes.includes(customer), false, entry.name);
    assert.equal(bytes.includes(kek), false, entry.name);
  }
});

test("an object with a customer's key requires that key, and no other object requires one", async (context) => {
  const store = await makeStore(context);
  const key = randomBytes(32);
  await put(store, "c", makeBytes(100_000), { encryption: { type: "SSE-C", key } });
  await put(store, "plain", "x");
  await assert.rejects(read(store, "c"), { code: "InvalidRequest" });
  await assert.rejects(read(store, "c", { customerKey: randomBytes(32) }), {
    code: "AccessDenied",
  });
  await assert.rejects(read(store, "c", { customerKey: randomBytes(5) }), {
    code: "InvalidRequest",
  });
  await assert.rejects(read(store, "plain", { customerKey: key }), { code: "InvalidRequest" });
  await assert.rejects(put(store, "s3", "x", { encryption: { type: "SSE-S3" } }), {
    code: "InvalidRequest",
  });
});

test("copies change the key where they must, and multipart uploads keep theirs", async (context) => {
  const store = await makeStore(context, { keys, partBytesMin: 1 });
  const key = randomBytes(32);
  const other = randomBytes(32);
  const body = makeBytes(300_000);
  await put(store, "c", body, { encryption: { type: "SSE-C", key } });
  const source = { bucket: "bucket", key: "c", customerKey: key };
  const copy = (name: string, attributes: object) =>
    store.copies.copy({ source, bucket: "bucket", key: name, attributes });
  await copy("plain", {});
  await copy("other", { encryption: { type: "SSE-C", key: other } });
  await copy("s3", { encryption: { type: "SSE-S3" } });
  assert.deepEqual(await read(store, "plain"), body);
  assert.deepEqual(await read(store, "other", { customerKey: other }), body);
  assert.deepEqual(await read(store, "s3"), body);
  const encryption = { type: "SSE-C", key } as const;
  const { uploadId } = await store.uploads.create({ bucket: "bucket", key: "parts", encryption });
  const upload = { bucket: "bucket", key: "parts", uploadId };
  const begin = (partKey?: Buffer) =>
    store.uploads.beginPart({
      ...upload,
      partNumber: 1,
      contentLength: body.length,
      encryption: { type: "SSE-C", key: partKey ?? key },
    });
  assert.throws(() => begin(other), { code: "InvalidRequest" });
  const part = begin();
  await part.write(body);
  const { etag } = await part.commit();
  const second = await store.uploads.copyPart({ ...upload, partNumber: 2, source, encryption });
  await store.uploads.complete({
    ...upload,
    parts: [
      { partNumber: 1, etag },
      { partNumber: 2, etag: second.etag },
    ],
  });
  const range = { start: 299_999, end: 300_000 };
  assert.deepEqual(
    await read(store, "parts", { customerKey: key, range }),
    Buffer.from([body.at(-1)!, body[0]!]),
  );
});
