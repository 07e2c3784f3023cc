// Upkeep: garbage is removed, live bodies move, damage is found and never returned.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openStore } from "../../src/open-store.ts";
import { defer, makeBytes, makeFolder, makeStore, owner, put, read } from "../store/fixture.ts";

function listFiles(dataDir: string, folder: string): string[] {
  return readdirSync(join(dataDir, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

test("files of deleted objects are removed, but not under a reader", async (context) => {
  const dataDir = makeFolder(context);
  const store = await makeStore(context, { dataDir });
  const body = makeBytes(3_000_000);
  await put(store, "key", body);
  const reader = await store.objects.get({ bucket: "bucket", key: "key" });
  await store.objects.delete({ bucket: "bucket", key: "key" });
  await store.maintenance.collect();
  await store.maintenance.collect();
  assert.equal(listFiles(dataDir, "files").length, 1);
  const chunks = [];
  for await (const chunk of reader.body.chunks()) chunks.push(chunk);
  assert.deepEqual(Buffer.concat(chunks), body);
  await store.maintenance.collect();
  await store.maintenance.collect();
  assert.deepEqual(listFiles(dataDir, "files"), []);
});

test("a segment that is mostly garbage is compacted while its objects are read and replaced", async (context) => {
  const dataDir = makeFolder(context);
  const store = await makeStore(context, { dataDir, segmentBytesMax: 1_000_000 });
  const keys = Array.from({ length: 40 }, (_, index) => `${index}`);
  for (const key of keys) await put(store, key, makeBytes(50_000, Number(key) + 1));
  const survivors = keys.filter((key) => Number(key) % 4 === 0);
  for (const key of keys) {
    if (!survivors.includes(key)) await store.objects.delete({ bucket: "bucket", key });
  }
  const before = store.readStats().garbageBytes;
  assert.ok(before > 1_000_000);
  const compacting = store.maintenance.compact();
  await put(store, "0", "replaced");
  for (const key of survivors.slice(1)) {
    assert.deepEqual(await read(store, key), makeBytes(50_000, Number(key) + 1));
  }
  await compacting;
  while ((await store.maintenance.compact()) > 0);
  for (const key of survivors.slice(1)) {
    assert.deepEqual(await read(store, key), makeBytes(50_000, Number(key) + 1));
  }
  assert.equal((await read(store, "0")).toString(), "replaced");
  await store.maintenance.collect();
  await store.maintenance.collect();
  const bytes = listFiles(dataDir, "segments").reduce((sum, path) => sum + statSync(path).size, 0);
  assert.ok(bytes < 1_700_000, `${bytes}`);
  assert.deepEqual((await store.maintenance.scrub()).damaged, []);
});

test("flipped bits are never returned, and the scrubber finds them", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openStore({ dataDir, reserveBytes: 0 });
  await store.buckets.create({ bucket: "bucket", owner, region: "r" });
  await put(store, "segment", makeBytes(200_000));
  await put(store, "file", makeBytes(3_000_000));
  await put(store, "good", makeBytes(200_001));
  await store.close();
  for (const path of [...listFiles(dataDir, "files"), ...listFiles(dataDir, "segments")]) {
    const bytes = readFileSync(path);
    bytes[150_000]! ^= 1;
    writeFileSync(path, bytes);
  }
  const again = await openStore({ dataDir, reserveBytes: 0, scrubBytesPerSecond: 1e9 });
  defer(context, () => again.close());
  await assert.rejects(read(again, "segment"), { code: "InternalError", message: /damaged/ });
  await assert.rejects(read(again, "file"), { code: "InternalError" });
  const range = { start: 0, end: 65_535 };
  assert.deepEqual(await read(again, "file", { range }), makeBytes(3_000_000).subarray(0, 65_536));
  assert.deepEqual(await read(again, "good"), makeBytes(200_001));
  assert.equal(again.readStats().corruptBlocks, 2);
  const report = await again.maintenance.scrub();
  assert.equal(report.damaged.length, 2);
  assert.deepEqual(report.missing, []);
});

test("the progress of a scrub grows until all files are done", async (context) => {
  const store = await makeStore(context);
  const count = 12;
  for (let index = 0; index < count; index += 1) await put(store, `${index}`, makeBytes(1_200_000));
  assert.equal(store.maintenance.readScrub().running, undefined);
  const run = { isOver: false };
  const scrubbing = store.maintenance.scrub().finally(() => (run.isOver = true));
  const seen: number[] = [];
  while (!run.isOver) {
    const { running } = store.maintenance.readScrub();
    if (running !== undefined && running.filesDone > 0) {
      assert.equal(running.filesTotal, count);
      seen.push(running.filesDone);
    }
    await new Promise(setImmediate);
  }
  await scrubbing;
  assert.deepEqual(
    seen,
    seen.toSorted((a, b) => a - b),
  );
  assert.ok(new Set(seen).size > 2, seen.join());
  const { running, last } = store.maintenance.readScrub();
  assert.deepEqual([running, last?.files], [undefined, count]);
});

test("the leftovers of a crash are removed: staged files at the start, others by the scrubber", async (context) => {
  const dataDir = makeFolder(context);
  const first = await openStore({ dataDir, reserveBytes: 0 });
  await first.buckets.create({ bucket: "bucket", owner, region: "r" });
  await put(first, "file", makeBytes(2_000_000));
  await put(first, "segment", makeBytes(200_000));
  await first.close();
  const [file] = listFiles(dataDir, "files");
  const orphan = join(dataDir, "files", "00", "00000100000f00.blob");
  writeFileSync(orphan, readFileSync(file!));
  writeFileSync(join(dataDir, "segments", "00000100000fff.seg"), "torn");
  writeFileSync(join(dataDir, "staging", "00000100000f01"), "x");
  const store = await openStore({ dataDir, reserveBytes: 0 });
  defer(context, () => store.close());
  assert.deepEqual(listFiles(dataDir, "staging"), []);
  const report = await store.maintenance.scrub();
  assert.equal(report.quarantined, 2);
  assert.deepEqual(listFiles(dataDir, "files"), [file]);
  assert.equal((await read(store, "file")).length, 2_000_000);
  assert.equal((await read(store, "segment")).length, 200_000);
});

test("the memory of incoming bodies is bounded: late bodies wait, later ones are refused", async (context) => {
  const store = await makeStore(context, { stagingBytesMax: 100_000, stagingWaitersMax: 1 });
  const begin = (key: string) =>
    store.objects.beginPut({ bucket: "bucket", key, contentLength: 60_000 });
  const [first, second, third] = [begin("1"), begin("2"), begin("3")];
  assert.equal(first.write(makeBytes(60_000)), undefined);
  const waiting = second.write(makeBytes(60_000));
  assert.ok(waiting instanceof Promise);
  assert.equal(store.readStats().waitingUploads, 1);
  await assert.rejects(async () => third.write(makeBytes(60_000)), { code: "SlowDown" });
  await third.abort();
  await first.commit();
  await waiting;
  await second.commit();
  assert.equal((await read(store, "2")).length, 60_000);
  assert.equal(store.readStats().stagingBytes, 0);
  assert.equal(store.readStats().waitingUploads, 0);
});

test("no more files stay open than allowed", async (context) => {
  const store = await makeStore(context, { openFilesMax: 3, segmentRecordBytesMax: 20_000 });
  for (let index = 0; index < 10; index += 1) await put(store, `${index}`, makeBytes(30_000));
  for (let index = 0; index < 10; index += 1) await read(store, `${index}`);
  assert.equal(store.readStats().openFiles, 3);
});
