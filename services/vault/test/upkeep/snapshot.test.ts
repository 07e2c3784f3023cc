// Snapshots of a store in use: what they refer to stays, what happens later is not in them.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import type { Snapshot } from "@platform/kernel/backup";
import { checkStore } from "../../src/fsck/check-store.ts";
import { openStore } from "../../src/open-store.ts";
import { defer, makeBytes, makeFolder, makeStore, put, read } from "../store/fixture.ts";

const small = 1_000;
const middle = 100_000;
const large = 2_500_000;

function countFiles(folder: string): number {
  const all = readdirSync(join(folder, "files"), { recursive: true, withFileTypes: true });
  return all.filter((entry) => entry.isFile()).length;
}

async function copySnapshot(snapshot: Snapshot, folder: string): Promise<string[]> {
  const paths: string[] = [];
  for await (const { path, bytes, read: readFile } of snapshot.files) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of readFile()) chunks.push(Buffer.from(chunk));
    const contents = Buffer.concat(chunks);
    assert.equal(contents.length, bytes, path);
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), contents);
    paths.push(path);
  }
  return paths;
}

test("a snapshot is whole although its objects are deleted, collected and compacted meanwhile", async (context) => {
  const dataDir = makeFolder(context);
  const store = await makeStore(context, { dataDir, segmentBytesMax: 300_000 });
  const sizes = { small, middle, large };
  const keys = Object.entries(sizes).flatMap(([name, size]) =>
    Array.from({ length: 8 }, (_, index) => ({ key: `${name}-${index}`, size, seed: index + 1 })),
  );
  for (const { key, size, seed } of keys) await put(store, key, makeBytes(size, seed));
  const snapshot = await store.snapshot();
  for (const { key, seed } of keys) {
    if (seed % 2 === 0) await store.objects.delete({ bucket: "bucket", key });
    else await put(store, key, "replaced");
  }
  await put(store, "later", makeBytes(large));
  for (let round = 0; round < 3; round += 1) {
    while ((await store.maintenance.compact()) > 0);
    await store.maintenance.collect();
  }
  await store.maintenance.scrub();

  const copy = makeFolder(context);
  const paths = await copySnapshot(snapshot, copy);
  assert.equal(paths[0], "index.sqlite");
  assert.equal(countFiles(copy), 8);
  await snapshot.release();
  assert.equal(existsSync(join(dataDir, "index-backup.sqlite")), false);
  await store.maintenance.collect();
  await store.maintenance.collect();
  assert.equal(countFiles(dataDir), 1, "only the later object");

  const { findings, isWhole } = await checkStore({ dataDir: copy, drives: [], isRepair: false });
  assert.ok(isWhole, JSON.stringify(findings));
  assert.deepEqual(new Set(findings.map(({ state }) => state)), new Set(["whole"]));
  const restored = await openStore({ dataDir: copy, reserveBytes: 0 });
  defer(context, () => restored.close());
  for (const { key, size, seed } of keys) {
    assert.deepEqual(await read(restored, key), makeBytes(size, seed), key);
  }
  await assert.rejects(read(restored, "later"), { code: "NoSuchKey" });
  // The restored store goes on: new bodies, garbage, scrubbing.
  await put(restored, "more", makeBytes(middle));
  await restored.objects.delete({ bucket: "bucket", key: "large-0" });
  await restored.maintenance.collect();
  await restored.maintenance.collect();
  const report = await restored.maintenance.scrub();
  assert.deepEqual([report.damaged, report.missing, report.quarantined], [[], [], 0]);
});

test("a copy that a killed process left is removed at the start", async (context) => {
  const dataDir = makeFolder(context);
  writeFileSync(join(dataDir, "index-backup.sqlite"), "left over");
  const store = await makeStore(context, { dataDir });
  assert.equal(existsSync(join(dataDir, "index-backup.sqlite")), false);
  await (await store.snapshot()).release();
});
