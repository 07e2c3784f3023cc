// Rebuilding the index from what the records on the disk say of themselves.
import assert from "node:assert/strict";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openStore, rebuildIndex } from "../../src/store.ts";
import { defer, makeBytes, makeFolder, owner, put, read } from "../store/fixture.ts";

test("an index that was lost is rebuilt from segments and files", async (context) => {
  const dataDir = makeFolder(context);
  const options = { dataDir, reserveBytes: 0, partBytesMin: 1 };
  const store = await openStore(options);
  await store.createBucket({ bucket: "bucket", owner, region: "eu" });
  await store.createBucket({ bucket: "versioned", owner, region: "eu" });
  await store.setBucketVersioning("versioned", "Enabled");
  await store.setBucketSetting("bucket", "policy", { Version: "2012-10-17" });
  await put(store, "segment", makeBytes(100_000), { metadata: { a: "1" }, tags: { t: "2" } });
  await put(store, "file", makeBytes(2_000_000, 1));
  await put(store, "file", makeBytes(2_000_000, 2));
  const versions = [];
  for (const seed of [3, 4]) {
    versions.push(await put(store, "v", makeBytes(50_000, seed), { bucket: "versioned" }));
  }
  const key = { type: "SSE-C", key: Buffer.alloc(32, 7) } as const;
  await put(store, "secret", makeBytes(300_000, 5), { encryption: key });
  const { uploadId } = await store.createUpload({ bucket: "bucket", key: "parts" });
  const address = { bucket: "bucket", key: "parts", uploadId };
  const parts = [];
  for (const partNumber of [1, 2]) {
    const part = store.beginPart({ ...address, partNumber, contentLength: 1_500_000 });
    await part.write(makeBytes(1_500_000, partNumber));
    parts.push({ partNumber, etag: (await part.commit()).etag });
  }
  const completed = await store.completeUpload({ ...address, parts });
  const before = await store.listObjects({ bucket: "bucket" });
  await store.close();

  for (const name of ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"]) {
    rmSync(join(dataDir, name), { force: true });
  }
  const report = await rebuildIndex(dataDir);
  assert.deepEqual([report.buckets, report.objects, report.incomplete], [2, 6, []]);

  const again = await openStore(options);
  defer(context, () => again.close());
  assert.deepEqual(again.headBucket("bucket").settings, { policy: { Version: "2012-10-17" } });
  const after = await again.listObjects({ bucket: "bucket" });
  assert.deepEqual(
    after.objects.map((object) => [object.key, object.etag, object.sizeBytes]),
    before.objects.map((object) => [object.key, object.etag, object.sizeBytes]),
  );
  assert.deepEqual(await read(again, "file"), makeBytes(2_000_000, 2));
  assert.deepEqual(await read(again, "secret", { customerKey: key.key }), makeBytes(300_000, 5));
  assert.deepEqual(
    await read(again, "parts"),
    Buffer.concat([makeBytes(1_500_000, 1), makeBytes(1_500_000, 2)]),
  );
  const { object } = await again.headObject({ bucket: "bucket", key: "segment" });
  assert.deepEqual([object.metadata, object.tags], [{ a: "1" }, { t: "2" }]);
  const head = await again.headObject({ bucket: "bucket", key: "parts" });
  assert.equal(head.object.etag, completed.etag);
  for (const [index, { versionId }] of versions.entries()) {
    const body = await read(again, "v", { bucket: "versioned", versionId });
    assert.deepEqual(body, makeBytes(50_000, 3 + index));
  }
  await put(again, "new", makeBytes(2_000_000, 9));
  await again.maintenance.scrub();
  assert.deepEqual(await read(again, "file"), makeBytes(2_000_000, 2));
});

test("an index that is there is moved aside, not overwritten; an open store is not touched", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openStore({ dataDir, reserveBytes: 0 });
  await assert.rejects(rebuildIndex(dataDir), { code: "ServiceUnavailable" });
  await store.close();
  const { movedTo } = await rebuildIndex(dataDir);
  assert.ok(movedTo !== undefined && existsSync(movedTo));
});
