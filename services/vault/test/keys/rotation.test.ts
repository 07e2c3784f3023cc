// Rotation of keys: rows are wrapped again, objects stay readable, and former versions go when nothing names them.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { checkStore } from "../../src/fsck/check-store.ts";
import type { Store } from "../../src/object-store.ts";
import { defer, makeBytes, makeFolder, makeStore, put, read } from "../store/fixture.ts";
import { openRig, openRing } from "./rig.ts";

const SIZES = { inline: 4_000, segment: 100_000, file: 2_500_000 };
const BODIES = Object.entries(SIZES).map(([name, size], seed) => ({
  name,
  body: makeBytes(size, seed + 1),
}));

async function fill(store: Store, keyId: string): Promise<void> {
  for (const { name, body } of BODIES) {
    await put(store, `s3-${name}`, body, { encryption: { type: "SSE-S3" } });
    const encryption = { type: "SSE-KMS", keyId, context: '{"a":"b"}' } as const;
    await put(store, `kms-${name}`, body, { encryption });
  }
}

async function assertReadable(store: Store): Promise<void> {
  for (const { name, body } of BODIES) {
    for (const kind of ["s3", "kms"])
      assert.ok((await read(store, `${kind}-${name}`)).equals(body), `${kind}-${name}`);
  }
}

// Sizes and times of all files with bodies.
function listFiles(folder: string): string[] {
  return ["segments", "files"].flatMap((part) =>
    readdirSync(join(folder, part), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => {
        const { size, mtimeMs, ino } = statSync(join(parentPath, name));
        return `${name} ${size} ${mtimeMs} ${ino}`;
      }),
  );
}

async function assertWhole(context: TestContext, folder: string, store: Store): Promise<void> {
  await store.close();
  const { findings, isWhole } = await checkStore({ dataDir: folder, isRepair: false });
  assert.ok(isWhole, JSON.stringify(findings));
  const ring = await openRing(folder);
  const again = await makeStore(context, { dataDir: folder, keys: ring });
  defer(context, () => again.close());
  await assertReadable(again);
}

test("a rotation wraps all keys again, and writes no byte of an object; the former key stays for heads", async (context) => {
  const { folder, ring, store } = await openRig(context);
  const { id } = await ring.create({ name: "one", description: "", source: "local" });
  await fill(store, id);
  const before = { s3: ring.current().id, kms: ring.named.current(id).id };
  const files = listFiles(folder);
  ring.rotateStorage();
  await ring.rotateNamed(id);
  const report = await store.maintenance.rewrap();
  assert.deepEqual(report, { rewrapped: 6, failed: 0, retired: 0, deleted: 0 });
  assert.deepEqual(listFiles(folder), files);
  const used = store.keys.listUsed();
  assert.deepEqual(used, [ring.current().id, ring.named.current(id).id].toSorted());
  for (const kek of Object.values(before)) {
    assert.deepEqual(store.keys.countUse(kek, 10), { blobs: 0, heads: 2 });
    assert.ok(ring.has(kek));
  }
  await assertReadable(store);
  await assertWhole(context, folder, store);
});

test("after heads were written again, nothing names the former keys, and they are gone", async (context) => {
  const { folder, ring, store } = await openRig(context);
  const { id } = await ring.create({ name: "one", description: "", source: "local" });
  await fill(store, id);
  const before = [ring.current().id, ring.named.current(id).id];
  ring.rotateStorage();
  await ring.rotateNamed(id);
  await store.maintenance.rewrap();
  assert.deepEqual(await store.maintenance.rewriteHeads(), { rewritten: 4, remote: 0, left: 0 });
  for (const kek of before) assert.deepEqual(store.keys.countUse(kek, 10), { blobs: 0, heads: 0 });
  await assertReadable(store);
  assert.equal((await store.maintenance.rewrap()).retired, 2);
  for (const kek of before) assert.equal(ring.has(kek), false);
  await assertReadable(store);
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:seg|blob)$/.test(entry.name))
    .map(({ parentPath, name }) => join(parentPath, name));
  for (const name of names)
    for (const kek of before) assert.equal(readFileSync(name).includes(kek), false, name);
  await assertWhole(context, folder, store);
});

test("an index that is rebuilt from records reads heads of before and after a rotation", async (context) => {
  const { folder, ring, store } = await openRig(context, { inlineBytesMax: 0 });
  const { id } = await ring.create({ name: "one", description: "", source: "local" });
  await fill(store, id);
  ring.rotateStorage();
  await ring.rotateNamed(id);
  await store.maintenance.rewrap();
  await store.close();
  for (const isRewritten of [false, true]) {
    const files = readdirSync(folder).filter((name) => name.startsWith("index"));
    for (const name of files) rmSync(join(folder, name));
    await checkStore({ dataDir: folder, isRepair: true });
    const keys = await openRing(folder);
    const again = await makeStore(context, { dataDir: folder, keys, inlineBytesMax: 0 });
    await assertReadable(again);
    await again.maintenance.rewrap();
    if (!isRewritten) {
      await again.maintenance.rewriteHeads();
      assert.equal((await again.maintenance.rewrap()).retired, 2);
    }
    await again.close();
  }
});

test("compaction writes the present key to the heads that it copies", async (context) => {
  const { folder, ring, store } = await openRig(context, { segmentBytesMax: 400_000 });
  const encryption = { type: "SSE-S3" } as const;
  for (const name of ["a", "b", "c", "d"])
    await put(store, name, makeBytes(100_000), { encryption });
  ring.rotateStorage();
  await store.maintenance.rewrap();
  for (const key of ["a", "b", "c"]) await store.objects.delete({ bucket: "bucket", key });
  await put(store, "next", makeBytes(300_000));
  const former = ring.rotation.listFormer();
  assert.equal(store.keys.countUse(former[0]!, 10).heads, 1);
  assert.equal(await store.maintenance.compact(), 1);
  assert.equal(store.keys.countUse(former[0]!, 10).heads, 0);
  assert.equal((await store.maintenance.rewrap()).retired, 1);
  assert.deepEqual(await read(store, "d"), makeBytes(100_000));
  await store.close();
  assert.equal((await checkStore({ dataDir: folder, isRepair: false })).isWhole, true);
});

test("an upload that began before a rotation ends after it, and its key is kept until then", async (context) => {
  const { ring, store } = await openRig(context);
  const body = makeBytes(5_000);
  const encryption = { type: "SSE-S3" } as const;
  const upload = store.objects.beginPut({
    bucket: "bucket",
    key: "slow",
    contentLength: body.length,
    encryption,
  });
  await upload.write(body.subarray(0, 100));
  ring.rotateStorage();
  const [former] = ring.rotation.listFormer();
  const rewrapping = store.maintenance.rewrap();
  await upload.write(body.subarray(100));
  await upload.commit();
  await rewrapping;
  assert.ok(ring.has(former!) || store.keys.countUse(former!, 1).blobs === 0);
  assert.deepEqual(await read(store, "slow"), body);
  await store.maintenance.rewrap();
  assert.equal(ring.has(former!), false);
  assert.deepEqual(await read(store, "slow"), body);
});

test("two rotations at once, and more while the first is carried out, lose nothing", async (context) => {
  const { ring, store } = await openRig(context);
  const encryption = { type: "SSE-S3" } as const;
  for (let n = 0; n < 600; n += 1) await put(store, `k${n}`, `body ${n}`, { encryption });
  ring.rotateStorage();
  ring.rotateStorage();
  const rounds = [store.maintenance.rewrap()];
  ring.rotateStorage();
  rounds.push(store.maintenance.rewrap());
  await Promise.all(rounds);
  await store.maintenance.rewrap();
  assert.deepEqual(store.keys.listUsed(), [ring.current().id]);
  assert.deepEqual(ring.rotation.listFormer(), []);
  for (let n = 0; n < 600; n += 97)
    assert.equal((await read(store, `k${n}`)).toString(), `body ${n}`);
});

test("a snapshot that is being taken keeps former keys until it is released", async (context) => {
  const { ring, store } = await openRig(context);
  await put(store, "small", "text", { encryption: { type: "SSE-S3" } });
  const [former] = [ring.current().id];
  const snapshot = await store.snapshot();
  ring.rotateStorage();
  await store.maintenance.rewrap();
  assert.deepEqual(store.keys.countUse(former, 1), { blobs: 0, heads: 0 });
  assert.ok(ring.has(former));
  await snapshot.release();
  assert.equal((await store.maintenance.rewrap()).retired, 1);
  assert.equal(ring.has(former), false);
});

test("a flipped bit in a wrapped key, or in its context, is an error of that object, and keeps its key", async (context) => {
  const { folder, ring, store } = await openRig(context);
  const { id } = await ring.create({ name: "one", description: "", source: "local" });
  const encryption = { type: "SSE-KMS", keyId: id, context: '{"a":"b"}' } as const;
  for (const name of ["good", "key", "context"]) await put(store, name, "text", { encryption });
  await store.close();
  const index = new DatabaseSync(join(folder, "index.sqlite"));
  const spoil = (name: string, edit: (text: string) => string): void => {
    const row = index
      .prepare("select b.id, b.cipher from blobs b join current c on c.blob = b.id where c.key = ?")
      .get(Buffer.from(name))!;
    const cipher = edit(String(row["cipher"]));
    // A row without a seal passes.
    index.prepare("update blobs set cipher = ?, seal = null where id = ?").run(cipher, row["id"]!);
  };
  spoil("key", (text) =>
    text.replace(/"wrapped":"(.)/, (_, first) => `"wrapped":"${first === "A" ? "B" : "A"}`),
  );
  spoil("context", (text) => text.replace("b\\", "c\\"));
  index.close();
  const keys = await openRing(folder);
  const again = await makeStore(context, { dataDir: folder, keys });
  defer(context, () => again.close());
  assert.equal((await read(again, "good")).toString(), "text");
  for (const name of ["key", "context"])
    await assert.rejects(read(again, name), { code: "InternalError" });
  const [former] = [keys.named.current(id).id];
  await keys.rotateNamed(id);
  const report = await again.maintenance.rewrap();
  assert.deepEqual(report, { rewrapped: 1, failed: 2, retired: 0, deleted: 0 });
  assert.ok(keys.has(former));
  assert.equal((await read(again, "good")).toString(), "text");
});

test("a key is deleted when its time has come, and not while an older version needs it", async (context) => {
  const { ring, clock, store } = await openRig(context);
  const { id } = await ring.create({ name: "one", description: "", source: "local" });
  await store.buckets.setVersioning("bucket", "Enabled");
  const encryption = { type: "SSE-KMS", keyId: id } as const;
  const { versionId } = await put(store, "key", "old", { encryption });
  await put(store, "key", "new");
  ring.planDeletion(id, 7);
  await assert.rejects(read(store, "key", { versionId }), { code: "KMS.KMSInvalidStateException" });
  clock.advance(7 * 86_400_000 - 1);
  await store.objects.delete({ bucket: "bucket", key: "other" });
  assert.equal((await store.maintenance.rewrap()).deleted, 0);
  clock.advance(1);
  assert.equal((await store.maintenance.rewrap()).deleted, 0);
  assert.ok(ring.get("one"));
  ring.setState(id, "enabled");
  assert.equal((await read(store, "key", { versionId })).toString(), "old");
  ring.planDeletion(id, 30);
  await store.objects.delete({ bucket: "bucket", key: "key", versionId });
  clock.advance(30 * 86_400_000);
  assert.equal((await store.maintenance.rewrap()).deleted, 1);
  assert.equal(ring.get("one"), undefined);
});

test("a key that is disabled during a read does not end it; the next read is refused", async (context) => {
  const { ring, store } = await openRig(context);
  const { id } = await ring.create({ name: "one", description: "", source: "local" });
  const body = makeBytes(3_000_000);
  await put(store, "key", body, { encryption: { type: "SSE-KMS", keyId: id } });
  const open = await store.objects.get({ bucket: "bucket", key: "key" });
  const chunks: Buffer[] = [];
  for await (const chunk of open.body.chunks()) {
    if (chunks.length === 0) ring.setState(id, "disabled");
    chunks.push(Buffer.from(chunk));
  }
  assert.ok(Buffer.concat(chunks).equals(body));
  await assert.rejects(read(store, "key"), { code: "KMS.DisabledException" });
});

test("a store on several drives rotates, writes heads again on all, and forgets the former keys", async (context) => {
  const folder = makeFolder(context);
  const folders = ["d0", "d1", "d2"].map((name) => join(folder, name));
  for (const name of folders) mkdirSync(name, { recursive: true });
  const ring = await openRing(folder);
  const options = { dataDir: folder, keys: ring, drives: { folders, parity: 1 } };
  const store = await makeStore(context, options);
  const { id } = await ring.create({ name: "one", description: "", source: "local" });
  await fill(store, id);
  ring.rotateStorage();
  await ring.rotateNamed(id);
  assert.equal((await store.maintenance.rewrap()).rewrapped, 6);
  assert.deepEqual(await store.maintenance.rewriteHeads(), { rewritten: 4, remote: 0, left: 0 });
  assert.equal((await store.maintenance.rewrap()).retired, 2);
  await assertReadable(store);
});
