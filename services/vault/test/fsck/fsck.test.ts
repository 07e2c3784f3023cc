// Checking and restoring a store: its index from records on disk, and folders of the previous format.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { checkStore } from "../../src/fsck/check-store.ts";
import { openStore } from "../../src/open-store.ts";
import { defer, makeBytes, makeFolder, owner, put, read } from "../store/fixture.ts";

const PROGRAM = fileURLToPath(new URL("../../../../bin/platform-vaultd.js", import.meta.url));

function runFsck(dataDir: string, ...words: string[]): Promise<{ code: number; text: string }> {
  const env = {
    PATH: process.env["PATH"],
    NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
    PLATFORM_FORM: process.env["PLATFORM_FORM"],
    PLATFORM_VAULT_DATA_DIR: dataDir,
  };
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, "fsck", ...words], { env }, (error, stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), text: stdout + stderr });
    });
  });
}

test("a lost index is rebuilt from segments and files", async (context) => {
  const dataDir = makeFolder(context);
  const options = { dataDir, reserveBytes: 0, partBytesMin: 1 };
  const store = await openStore(options);
  await store.buckets.create({ bucket: "bucket", owner, region: "eu" });
  await store.buckets.create({ bucket: "versioned", owner, region: "eu" });
  await store.buckets.setVersioning("versioned", "Enabled");
  await store.buckets.setSetting("bucket", "policy", { Version: "2012-10-17" });
  await put(store, "segment", makeBytes(100_000), { metadata: { a: "1" }, tags: { t: "2" } });
  await put(store, "file", makeBytes(2_000_000, 1));
  await put(store, "file", makeBytes(2_000_000, 2));
  const versions = [];
  for (const seed of [3, 4]) {
    versions.push(await put(store, "v", makeBytes(50_000, seed), { bucket: "versioned" }));
  }
  const key = { type: "SSE-C", key: Buffer.alloc(32, 7) } as const;
  await put(store, "secret", makeBytes(300_000, 5), { encryption: key });
  const { uploadId } = await store.uploads.create({ bucket: "bucket", key: "parts" });
  const address = { bucket: "bucket", key: "parts", uploadId };
  const parts = [];
  for (const partNumber of [1, 2]) {
    const part = store.uploads.beginPart({ ...address, partNumber, contentLength: 1_500_000 });
    await part.write(makeBytes(1_500_000, partNumber));
    parts.push({ partNumber, etag: (await part.commit()).etag });
  }
  const completed = await store.uploads.complete({ ...address, parts });
  const before = await store.objects.list({ bucket: "bucket" });
  await store.close();

  for (const name of ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm"]) {
    rmSync(join(dataDir, name), { force: true });
  }
  await assert.rejects(
    openStore(options),
    /index\.sqlite is damaged \(it is missing\).*platform-vaultd fsck/s,
  );
  const report = await checkStore({ dataDir, isRepair: true });
  assert.ok(report.findings.some(({ text }) => text.startsWith("5 objects restored")));

  const again = await openStore(options);
  defer(context, () => again.close());
  assert.deepEqual(again.buckets.require("bucket").settings, { policy: { Version: "2012-10-17" } });
  const after = await again.objects.list({ bucket: "bucket" });
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
  const { object } = await again.objects.head({ bucket: "bucket", key: "segment" });
  assert.deepEqual([object.metadata, object.tags], [{ a: "1" }, { t: "2" }]);
  const head = await again.objects.head({ bucket: "bucket", key: "parts" });
  assert.equal(head.object.etag, completed.etag);
  for (const [index, { versionId }] of versions.entries()) {
    const body = await read(again, "v", { bucket: "versioned", versionId });
    assert.deepEqual(body, makeBytes(50_000, 3 + index));
  }
  await put(again, "new", makeBytes(2_000_000, 9));
  await again.maintenance.scrub();
  assert.deepEqual(await read(again, "file"), makeBytes(2_000_000, 2));
});

test("an open store is not checked, and a check without repair changes nothing", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openStore({ dataDir, reserveBytes: 0 });
  await store.buckets.create({ bucket: "bucket", owner, region: "eu" });
  await put(store, "key", "body");
  await assert.rejects(checkStore({ dataDir, isRepair: false }), /another process/);
  await store.close();
  assert.equal((await checkStore({ dataDir, isRepair: true })).isWhole, true);
  rmSync(join(dataDir, "index.sqlite"));
  const before = readdirSync(dataDir, { recursive: true });
  assert.equal((await checkStore({ dataDir, isRepair: false })).isWhole, false);
  assert.deepEqual(readdirSync(dataDir, { recursive: true }), before);
});

test("a store of format 1 opens, is intact, and is protected from its next writes on", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openStore({ dataDir, reserveBytes: 0 });
  await store.buckets.create({ bucket: "bucket", owner, region: "eu" });
  for (const size of [10, 20_000, 1_100_000]) await put(store, `${size}`, makeBytes(size));
  await store.close();
  const index = new DatabaseSync(join(dataDir, "index.sqlite"));
  for (const table of ["buckets", "current", "versions", "blobs", "blob_parts", "parts"]) {
    index.exec(`alter table ${table} drop column seal`);
  }
  index.exec("drop table vectors; drop table tasks");
  index.exec("drop table jobs; drop table job_lines; drop table trigger_runs");
  index.exec("drop table facts; drop table remotes; drop table remote_blobs");
  index.exec("drop index blobs_by_kek; drop index blobs_by_head");
  index.exec("drop table usage");
  index.exec("insert into meta select 'objects', count(*) from current");
  index.exec("pragma user_version = 1");
  index.close();
  rmSync(join(dataDir, "index.sqlite.mark"));
  assert.equal((await checkStore({ dataDir, isRepair: false })).isWhole, true);
  const again = await openStore({ dataDir, reserveBytes: 0 });
  defer(context, () => again.close());
  for (const size of [10, 20_000, 1_100_000]) {
    assert.deepEqual(await read(again, `${size}`), makeBytes(size));
  }
  await put(again, "new", "new");
  assert.deepEqual(await again.maintenance.copyIndex(), []);
});

test("the command lists the damage, changes nothing until --repair, and says what is lost", async (context) => {
  const dataDir = makeFolder(context);
  const store = await openStore({ dataDir, reserveBytes: 0 });
  await store.buckets.create({ bucket: "bucket", owner, region: "eu" });
  await put(store, "kept", makeBytes(2_000_000, 1));
  await put(store, "lost", makeBytes(2_000_001, 2));
  await store.close();
  rmSync(join(dataDir, "index.sqlite"));
  const dry = await runFsck(dataDir);
  assert.equal(dry.code, 1, dry.text);
  assert.match(dry.text, /^restored .*index\.sqlite: 2 objects/m);
  assert.match(dry.text, /Nothing was changed\. Run the command again with --repair/);
  const repaired = await runFsck(dataDir, "--repair");
  assert.match(repaired.text, /^restored .*index\.sqlite: 2 objects/m);
  const whole = await runFsck(dataDir);
  assert.equal(whole.code, 0, whole.text);

  const again = await openStore({ dataDir, reserveBytes: 0 });
  assert.deepEqual(await read(again, "kept"), makeBytes(2_000_000, 1));
  await again.close();
  const bodies = readdirSync(join(dataDir, "files"), { recursive: true, withFileTypes: true });
  for (const body of bodies.filter((entry) => entry.isFile())) {
    const path = join(body.parentPath, body.name);
    if (statSync(path).size >= 2_000_001 && readFileSync(path).includes(makeBytes(1_000, 2)))
      rmSync(path);
  }
  const left = await runFsck(dataDir, "--repair");
  assert.equal(left.code, 1, left.text);
  assert.match(left.text, /^lost +.*bucket\/lost/m);
  assert.doesNotMatch(left.text, /kept/);
});
