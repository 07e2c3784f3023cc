// Objects that move to a remote and come back: every byte, every failure of the remote, every change meanwhile.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { LyingS3, type Fault, type SeenRequest } from "@platform/testing/lying-s3";
import { waitFor } from "@platform/testing/wait";
import { randomBytes } from "node:crypto";
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { adoptTier } from "../../src/fsck/adopt-tier.ts";
import { checkStore } from "../../src/fsck/check-store.ts";
import type { KeyProvider } from "../../src/blob/encryption.ts";
import type { PutRequest } from "../../src/model/object.ts";
import { openStore, type StoreOptions } from "../../src/open-store.ts";
import type { Store } from "../../src/object-store.ts";
import { waitUntilWhole } from "../crash/stores.ts";
import { defer, makeBytes, makeFolder, makeStore, put, read } from "../store/fixture.ts";

const secrets = { seal: (text: string) => text, open: (text: string) => text };
const DAY_MS = 86_400_000;
const kek = randomBytes(32);
const keys: KeyProvider = {
  current: () => ({ id: "k", key: kek }),
  find: (id) => (id === "k" ? kek : undefined),
};

interface Rig {
  store: Store;
  remote: LyingS3;
  clock: { aheadMs: number };
  options: StoreOptions;
}

async function makeRig(context: TestContext, more: Partial<StoreOptions> = {}): Promise<Rig> {
  const remote = await LyingS3.start();
  defer(context, () => remote[Symbol.asyncDispose]());
  const clock = { aheadMs: 0 };
  const options: StoreOptions = {
    dataDir: makeFolder(context),
    reserveBytes: 0,
    secrets,
    keys,
    remoteNetworks: ["127.0.0.0/8"],
    partBytesMin: 1,
    clock: { now: () => Date.now() + clock.aheadMs, monotonicMs: () => performance.now() },
    ...more,
  };
  const store = await makeStore(context, options);
  await addRemote(store, remote);
  return { store, remote, clock, options };
}

async function addRemote(store: Store, remote: LyingS3): Promise<void> {
  const settings = { name: "far", endpoint: remote.endpoint, region: "us-east-1", access_key: "a" };
  await store.remotes.add(
    { ...settings, path_style: true, prefix: "p/", allow: ["*"], rate_bytes: 0, classes: [] },
    "secret",
  );
  const tier = { days: 0, prefix: "", remote: "far", bucket: "cold", minimum_size: 0 };
  await store.buckets.setSetting("bucket", "coldTier", tier);
}

async function sweep(store: Store) {
  const started = store.sweeps.start("bucket")!;
  await started.ended;
  return started.sweep;
}

function listKeys(remote: LyingS3): string[] {
  return remote.keys("cold").filter((key) => !key.endsWith("store.json"));
}

async function deleteAll(store: Store, key: string): Promise<void> {
  await store.objects.delete({ bucket: "bucket", key });
}

async function untilNoTask(store: Store, kind = "delete-remote"): Promise<void> {
  await waitFor(
    async () => (await store.tasks.count()).every((one) => one.kind !== kind),
    `the end of ${kind}`,
  );
}

const BODIES: readonly (readonly [string, number, Partial<PutRequest>])[] = [
  ["segment", 100_000, {}],
  ["file", 3 * 1024 * 1024 + 17, {}],
  ["large", 20 * 1024 * 1024 + 1, {}],
  ["sealed", 200_000, { encryption: { type: "SSE-S3" } }],
  ["customer", 2_000_000, { encryption: { type: "SSE-C", key: Buffer.alloc(32, 7) } }],
];

test("a moved object is read back through the remote, whole and in ranges, and its local bytes go", async (context) => {
  const { store, remote } = await makeRig(context);
  const bodies = BODIES.map(([key, size, more], index) => ({
    key,
    more,
    bytes: makeBytes(size, index + 1),
  }));
  for (const { key, bytes, more } of bodies)
    await put(store, key, bytes, { ...more, checksum: "CRC32C" });
  await put(store, "small", "in the index");
  const before = await Promise.all(
    bodies.map(({ key }) => store.objects.describe({ bucket: "bucket", key })),
  );
  const { report, details } = await sweep(store);
  assert.deepEqual(
    { moved: report.moved, skipped: report.skipped, failed: report.failed },
    { moved: 5, skipped: 1, failed: 0 },
  );
  assert.deepEqual(
    details.map(({ key, reason }) => [key, reason]),
    [["small", "in the index"]],
  );
  assert.equal(listKeys(remote).length, 5);
  await store.maintenance.collect();
  await store.maintenance.collect();
  for (const [index, { key, bytes, more }] of bodies.entries()) {
    const customerKey =
      more.encryption?.type === "SSE-C" ? { customerKey: more.encryption.key } : {};
    assert.ok((await read(store, key, customerKey)).equals(bytes), key);
    const range = { start: 70_001, end: Math.min(bytes.length, 1_200_000) - 2 };
    assert.ok(
      (await read(store, key, { ...customerKey, range })).equals(
        bytes.subarray(range.start, range.end + 1),
      ),
    );
    const after = await store.objects.describe({ bucket: "bucket", key });
    assert.deepEqual({ ...after, storageClass: "STANDARD" }, before[index]);
    assert.equal(after.storageClass, "COLD");
  }
  assert.equal((await store.maintenance.scrub()).damaged.length, 0);
  assert.equal((await sweep(store)).report.moved, 0, "nothing moves twice");
});

test("a part of a body that is tampered with in the remote is an error, never delivered", async (context) => {
  const { store, remote } = await makeRig(context);
  await put(store, "a", makeBytes(500_000));
  await sweep(store);
  remote.judge = ({ method, headers }) =>
    method === "GET" && headers.range !== undefined ? { kind: "garble" } : undefined;
  await assert.rejects(read(store, "a"), { code: "InternalError" });
  assert.ok(store.remotes.find("far")!.counts.wrongBlocks > 0);
  remote.judge = () => undefined;
  assert.ok((await read(store, "a")).equals(makeBytes(500_000)));
});

const READ_FAULTS: readonly (readonly [string, Fault, string])[] = [
  ["half a body", { kind: "half" }, "ServiceUnavailable"],
  ["another range", { kind: "shift" }, "InternalError"],
  ["a missing key", { kind: "refuse", status: 404, code: "NoSuchKey" }, "InternalError"],
  ["a redirect", { kind: "refuse", status: 301, code: "PermanentRedirect" }, "ServiceUnavailable"],
  [
    "refused credentials",
    { kind: "refuse", status: 403, code: "InvalidAccessKeyId" },
    "ServiceUnavailable",
  ],
  ["an overload", { kind: "refuse", status: 503, code: "SlowDown" }, "ServiceUnavailable"],
  [
    "an archived object",
    { kind: "refuse", status: 403, code: "InvalidObjectState" },
    "InvalidObjectState",
  ],
];

test("a failing remote fails the read with a clear error, and nothing is lost", async (context) => {
  const { store, remote } = await makeRig(context);
  await put(store, "a", makeBytes(500_000));
  await sweep(store);
  for (const [name, fault, code] of READ_FAULTS) {
    remote.judge = ({ headers }) => (headers.range === undefined ? undefined : fault);
    await assert.rejects(read(store, "a"), { code }, name);
    remote.judge = () => undefined;
    await waitFor(
      () =>
        read(store, "a").then(
          (bytes) => bytes.equals(makeBytes(500_000)),
          () => false,
        ),
      name,
    );
  }
});

const WRITE_FAULTS: readonly (readonly [string, (request: SeenRequest) => Fault | undefined])[] = [
  ["loses what it accepted", ({ method }) => (method === "PUT" ? { kind: "lose" } : undefined)],
  ["keeps other bytes", ({ method }) => (method === "PUT" ? { kind: "alter" } : undefined)],
  [
    "is full",
    ({ method }) =>
      method === "PUT" ? { kind: "refuse", status: 507, code: "InsufficientStorage" } : undefined,
  ],
  [
    "refuses",
    ({ method }) =>
      method === "PUT" ? { kind: "refuse", status: 403, code: "AccessDenied" } : undefined,
  ],
];

test("an object stays here unless the remote has proved that it has it", async (context) => {
  const { store, remote } = await makeRig(context);
  await put(store, "a", makeBytes(500_000));
  await sweep(store);
  await deleteAll(store, "a");
  await untilNoTask(store);
  for (const [name, judge] of WRITE_FAULTS) {
    await put(store, "a", makeBytes(500_000));
    remote.judge = judge;
    const { report } = await sweep(store);
    assert.equal(report.failed, 1, name);
    remote.judge = () => undefined;
    assert.equal(
      (await store.objects.describe({ bucket: "bucket", key: "a" })).storageClass,
      "STANDARD",
    );
    assert.ok((await read(store, "a")).equals(makeBytes(500_000)), name);
    await untilNoTask(store);
    assert.deepEqual(listKeys(remote), [], `${name}: no key stays behind`);
  }
});

test("a remote without checksums is read back, and one that lies in its ETag is found out", async (context) => {
  const { store, remote } = await makeRig(context);
  const bare = await LyingS3.start({ hasChecksums: false });
  defer(context, () => bare[Symbol.asyncDispose]());
  await store.remotes.change("far", { endpoint: bare.endpoint });
  await put(store, "a", makeBytes(9 * 1024 * 1024));
  bare.judge = ({ method, query }) =>
    method === "POST" && query.has("uploadId") ? { kind: "alter" } : undefined;
  assert.equal((await sweep(store)).report.failed, 1);
  bare.judge = () => undefined;
  assert.equal((await sweep(store)).report.moved, 1);
  assert.ok((await read(store, "a")).equals(makeBytes(9 * 1024 * 1024)));
  assert.equal(listKeys(remote).length, 0);
});

test("an answer that is lost after an upload does not fail the move", async (context) => {
  const { store, remote } = await makeRig(context);
  await put(store, "a", makeBytes(500_000));
  let drops = 1;
  remote.judge = ({ method, key }) =>
    method === "PUT" && !key.endsWith("store.json") && drops-- > 0 ? { kind: "drop" } : undefined;
  assert.equal((await sweep(store)).report.moved, 1);
  assert.ok((await read(store, "a")).equals(makeBytes(500_000)));
});

test("deletion, overwriting and expiry delete the remote bytes, exactly once and only then", async (context) => {
  const { store, remote } = await makeRig(context);
  await store.buckets.setVersioning("bucket", "Enabled");
  await put(store, "a", makeBytes(100_000, 1));
  await put(store, "b", makeBytes(100_000, 2));
  await sweep(store);
  const first = await store.objects.describe({ bucket: "bucket", key: "a" });
  assert.equal(listKeys(remote).length, 2);
  await put(store, "a", makeBytes(100_000, 3));
  await store.objects.delete({ bucket: "bucket", key: "b" });
  await untilNoTask(store);
  assert.equal(listKeys(remote).length, 2, "a noncurrent version keeps its bytes");
  assert.ok((await read(store, "a", { versionId: first.versionId })).equals(makeBytes(100_000, 1)));
  remote.judge = ({ method }) =>
    method === "DELETE" ? { kind: "refuse", status: 500, code: "InternalError" } : undefined;
  await store.objects.delete({ bucket: "bucket", key: "a", versionId: first.versionId });
  await waitFor(() => store.tasks.readAttempts("delete-remote").failed > 0, "a failed deletion");
  assert.equal(listKeys(remote).length, 2);
  remote.judge = () => undefined;
  await untilNoTask(store);
  assert.equal(listKeys(remote).length, 1);
});

test("a change while an object moves wins, and the uploaded key is deleted", async (context) => {
  const { store, remote } = await makeRig(context);
  const changes: [string, (key: string) => Promise<unknown>, (key: string) => Promise<void>][] = [
    [
      "overwrite",
      (key) => put(store, key, makeBytes(70_000, 9)),
      async (key) => assert.ok((await read(store, key)).equals(makeBytes(70_000, 9))),
    ],
    [
      "delete",
      (key) => deleteAll(store, key),
      async (key) => assert.rejects(read(store, key), { code: "NoSuchKey" }),
    ],
  ];
  for (const [name, change, check] of changes) {
    await put(store, name, makeBytes(300_000));
    remote.judge = async ({ method, key }) => {
      if (method === "HEAD" && !key.endsWith("store.json")) {
        remote.judge = () => undefined;
        await change(name);
      }
      return undefined;
    };
    const { report } = await sweep(store);
    assert.equal(report.failed, 0, name);
    await check(name);
    await untilNoTask(store);
    const inRemote = (await store.objects.list({ bucket: "bucket" })).objects.filter(
      ({ storageClass }) => storageClass === "COLD",
    );
    assert.equal(listKeys(remote).length, inRemote.length, name);
  }
});

test("a copy onto itself brings an object back, and copies elsewhere have bytes of their own", async (context) => {
  const { store, remote } = await makeRig(context);
  await put(store, "a", makeBytes(300_000), { encryption: { type: "SSE-S3" } });
  await sweep(store);
  await store.copies.copy({
    source: { bucket: "bucket", key: "a" },
    bucket: "bucket",
    key: "c",
    attributes: {},
  });
  const copy = await store.objects.describe({ bucket: "bucket", key: "c" });
  assert.equal(copy.storageClass, "STANDARD");
  assert.deepEqual(copy.encryption, { type: "SSE-S3" }, "its bytes stay encrypted");
  await store.copies.copy({
    source: { bucket: "bucket", key: "a" },
    bucket: "bucket",
    key: "a",
    attributes: {},
  });
  await untilNoTask(store);
  assert.deepEqual(listKeys(remote), []);
  for (const key of ["a", "c"]) assert.ok((await read(store, key)).equals(makeBytes(300_000)));
});

test("objects of parts move part by part; parts in the index stay", async (context) => {
  const { store, remote } = await makeRig(context);
  const parts = [makeBytes(6_000_000, 1), makeBytes(100_000, 2), makeBytes(500, 3)];
  const { uploadId } = await store.uploads.create({ bucket: "bucket", key: "m" });
  const address = { bucket: "bucket", key: "m", uploadId };
  const etags: { partNumber: number; etag: string }[] = [];
  for (const [index, bytes] of parts.entries()) {
    const upload = store.uploads.beginPart({
      ...address,
      partNumber: index + 1,
      contentLength: bytes.length,
    });
    await upload.write(bytes);
    etags.push({ partNumber: index + 1, etag: (await upload.commit()).etag });
  }
  const before = await store.uploads.complete({ ...address, parts: etags });
  assert.equal((await sweep(store)).report.moved, 1);
  assert.equal(listKeys(remote).length, 2);
  assert.ok((await read(store, "m")).equals(Buffer.concat(parts)));
  assert.ok((await read(store, "m", { partNumber: 2 })).equals(parts[1]!));
  assert.equal((await store.objects.describe({ bucket: "bucket", key: "m" })).etag, before.etag);
  await store.tiers.requestRestore({ bucket: "bucket", key: "m" }, 1);
  await untilNoTask(store, "restore");
  remote.judge = () => ({ kind: "refuse", status: 503, code: "SlowDown" });
  assert.ok((await read(store, "m")).equals(Buffer.concat(parts)));
  remote.judge = () => undefined;
  await deleteAll(store, "m");
  await untilNoTask(store);
  assert.deepEqual(listKeys(remote), []);
});

test("a restore makes a local copy for some days; its end leaves the remote bytes", async (context) => {
  const { store, remote, clock } = await makeRig(context);
  const address = { bucket: "bucket", key: "a" };
  await put(store, "a", makeBytes(2_000_000));
  await assert.rejects(store.tiers.requestRestore(address, 1), { code: "InvalidObjectState" });
  await sweep(store);
  remote.judge = ({ headers }) =>
    headers.range === undefined ? undefined : { kind: "refuse", status: 503, code: "SlowDown" };
  assert.equal((await store.tiers.requestRestore(address, 2)).isRestored, false);
  await assert.rejects(store.tiers.requestRestore(address, 2), {
    code: "RestoreAlreadyInProgress",
  });
  await waitFor(() => store.tasks.readAttempts("restore").failed > 0, "a failed restore");
  assert.equal(listKeys(remote).length, 1, "a failed restore deletes nothing");
  remote.judge = () => undefined;
  await untilNoTask(store, "restore");
  const { restore } = await store.objects.describe(address);
  assert.equal(restore?.untilMs, Math.ceil((Date.now() + 2 * DAY_MS) / DAY_MS) * DAY_MS);
  const requests = remote.requests.length;
  assert.ok((await read(store, "a")).equals(makeBytes(2_000_000)));
  assert.equal(remote.requests.length, requests, "the copy is read");
  assert.equal((await store.tiers.requestRestore(address, 5)).isRestored, true);
  clock.aheadMs += 3 * DAY_MS;
  assert.ok((await store.objects.describe(address)).restore !== undefined, "it has a new end");
  clock.aheadMs += 4 * DAY_MS;
  await untilNoTask(store, "end-restore");
  assert.equal((await store.objects.describe(address)).restore, undefined);
  assert.equal(listKeys(remote).length, 1, "the end of a restore deletes nothing in the remote");
  assert.ok((await read(store, "a")).equals(makeBytes(2_000_000)));
  assert.ok(remote.requests.length > requests);
});

test("fsck accepts moved and restored objects, and rebuilds them without an index", async (context) => {
  const { store, remote, options } = await makeRig(context);
  await put(store, "a", makeBytes(1_500_000, 1));
  await put(store, "b", makeBytes(2_000_000, 2), { encryption: { type: "SSE-S3" } });
  await sweep(store);
  await store.maintenance.collect();
  await store.maintenance.collect();
  await store.tiers.requestRestore({ bucket: "bucket", key: "b" }, 9);
  await untilNoTask(store, "restore");
  await store.close();
  const { dataDir } = options;
  const { findings, isWhole } = await checkStore({ dataDir, isRepair: false });
  assert.ok(isWhole, JSON.stringify(findings));
  for (const ending of ["", "-wal", "-shm", ".mark"])
    rmSync(`${dataDir}/index.sqlite${ending}`, { force: true });
  rmSync(`${dataDir}/index-copy.sqlite`, { force: true });
  await checkStore({ dataDir, isRepair: true });
  const again = await openStore(options);
  defer(context, () => again.close());
  // The registration, with its secret, was in the index only.
  await assert.rejects(read(again, "a"), /not registered/);
  await addRemote(again, remote);
  assert.ok((await read(again, "a")).equals(makeBytes(1_500_000, 1)));
  assert.ok((await read(again, "b")).equals(makeBytes(2_000_000, 2)));
  assert.equal(again.remotes.describe("far")!.usage.blobs, 2);
  await deleteAll(again, "a");
  await untilNoTask(again);
  assert.equal(listKeys(remote).length, 2, "the keys of the former store id are not deleted");
  await again.close();
  adoptTier({ data_dir: dataDir, drives: [] }, () => undefined);
  const owner = await openStore(options);
  defer(context, () => owner.close());
  await deleteAll(owner, "b");
  await untilNoTask(owner);
  assert.equal(listKeys(remote).length, 1, "until it adopts them");
});

test("a reader that began before a deletion reads to the end; the bytes go after it", async (context) => {
  const { store, remote } = await makeRig(context);
  const bytes = makeBytes(6 * 1024 * 1024);
  await put(store, "a", bytes);
  await sweep(store);
  const { body } = await store.objects.get({ bucket: "bucket", key: "a" });
  const chunks = body.chunks();
  const pieces = [(await chunks.next()).value as Buffer];
  await deleteAll(store, "a");
  await waitFor(
    () => store.tasks.readAttempts("delete-remote").failed > 0,
    "a deletion that waits",
  );
  assert.equal(listKeys(remote).length, 1);
  for await (const piece of chunks) pieces.push(piece);
  assert.ok(Buffer.concat(pieces).equals(bytes));
  await untilNoTask(store);
  assert.deepEqual(listKeys(remote), []);
});

test("compaction moves stubs and restored copies like other records", async (context) => {
  const { store, options } = await makeRig(context, { segmentBytesMax: 600_000 });
  for (const key of ["a", "b", "c"]) await put(store, key, makeBytes(250_000, key.charCodeAt(0)));
  await sweep(store);
  await store.tiers.requestRestore({ bucket: "bucket", key: "a" }, 9);
  await untilNoTask(store, "restore");
  for (let index = 0; index < 8; index += 1) await put(store, `filler-${index}`, makeBytes(90_000));
  for (let index = 0; index < 8; index += 1) await deleteAll(store, `filler-${index}`);
  let moved = 0;
  for (let round = 0; round < 8; round += 1) {
    moved += await store.maintenance.compact();
    await store.maintenance.collect();
  }
  assert.ok(moved > 0);
  for (const key of ["a", "b", "c"])
    assert.ok((await read(store, key)).equals(makeBytes(250_000, key.charCodeAt(0))), key);
  await store.close();
  const { dataDir } = options;
  const { findings, isWhole } = await checkStore({ dataDir, isRepair: false });
  assert.ok(isWhole, JSON.stringify(findings));
});

test("fsck with remotes names objects whose bytes there are gone or other ones, and keys without an object", async (context) => {
  const { store, remote, options } = await makeRig(context);
  for (const [index, key] of ["a", "b", "c"].entries())
    await put(store, key, makeBytes(1_200_000, index + 1));
  await sweep(store);
  await store.close();
  const { dataDir, remoteNetworks: networks = [] } = options;
  const check = async () => {
    const { findings, isWhole } = await checkStore({
      dataDir,
      isRepair: false,
      remotes: { secrets, networks },
    });
    return { isWhole, texts: findings.map(({ state, text }) => `${state} ${text}`) };
  };
  const whole = await check();
  assert.ok(
    whole.isWhole && whole.texts.includes("whole 3 bodies in remotes"),
    String(whole.texts),
  );
  const [first, second] = listKeys(remote);
  remote.objects.delete(`cold/${first}`);
  remote.objects.get(`cold/${second}`)!.bytes[500_000]! ^= 1;
  const kept = remote.objects.get(`cold/${second}`)!;
  remote.objects.set(`cold/${second!.slice(0, -1)}z`, kept);
  const { isWhole, texts } = await check();
  assert.equal(isWhole, false);
  assert.ok(
    texts.some((text) => /^lost bucket\/[abc]: .*does not have the stored data/.test(text)),
    String(texts),
  );
  assert.ok(
    texts.some((text) => /^lost bucket\/[abc]: other bytes/.test(text)),
    String(texts),
  );
  assert.ok(
    texts.some((text) => /^note a key without an object: far: cold\/p\/.*z$/.test(text)),
    String(texts),
  );
});

test("a remote is removed only when nothing uses it", async (context) => {
  const { store, remote } = await makeRig(context);
  await put(store, "a", makeBytes(100_000));
  await sweep(store);
  await assert.rejects(store.remotes.remove("far"), /the cold tier of bucket/);
  await store.buckets.deleteSetting("bucket", "coldTier");
  await assert.rejects(store.remotes.remove("far"), /used by objects/);
  remote.judge = ({ method }) =>
    method === "DELETE" ? { kind: "refuse", status: 503, code: "SlowDown" } : undefined;
  await deleteAll(store, "a");
  await assert.rejects(store.remotes.remove("far"), /deletions/);
  remote.judge = () => undefined;
  await untilNoTask(store);
  await store.remotes.remove("far");
  assert.deepEqual(store.remotes.list(), []);
});

test("a lost registration can be added again", async (context) => {
  const { store, remote, options } = await makeRig(context);
  await put(store, "a", makeBytes(100_000));
  await sweep(store);
  await store.close();
  const again = await openStore(options);
  defer(context, () => again.close());
  assert.ok((await read(again, "a")).equals(makeBytes(100_000)));
  await again.remotes.change("far", { access_key: "b", secret_key: "other" });
  assert.ok((await read(again, "a")).equals(makeBytes(100_000)));
  assert.equal(remote.requests.at(-1)?.headers.authorization?.includes("Credential=b/"), true);
});

test("a store on three drives loses one in the middle of a sweep: everything moves, and is read without it", async (context) => {
  const root = makeFolder(context);
  const folders = [0, 1, 2].map((slot) => join(root, `drive-${slot}`));
  for (const folder of folders) mkdirSync(folder);
  const drives = { folders, parity: 1, checkEveryMs: 50 };
  const { store, remote, options } = await makeRig(context, { drives });
  const bodies = new Map<string, Buffer>();
  for (let index = 0; index < 12; index += 1) {
    const key = `k${index}`;
    bodies.set(key, makeBytes(index % 2 === 0 ? 300_000 : 2_500_000, index + 1));
    await put(store, key, bodies.get(key)!);
  }
  let uploads = 0;
  remote.judge = ({ method, key }) => {
    if (method === "PUT" && !key.endsWith("store.json")) uploads += 1;
    if (uploads === 5) renameSync(folders[1]!, `${folders[1]}-away`);
    if (uploads === 5) uploads += 1;
    return undefined;
  };
  await sweep(store);
  // Objects that met the loss of the drive itself are moved by the next one.
  await sweep(store);
  const { objects } = await store.objects.list({ bucket: "bucket" });
  assert.ok(objects.every(({ storageClass }) => storageClass === "COLD"));
  await untilNoTask(store);
  assert.equal(listKeys(remote).length, 12);
  for (const [key, bytes] of bodies) assert.ok((await read(store, key)).equals(bytes), key);
  await store.close();
  renameSync(`${folders[1]}-away`, folders[1]!);
  const healed = await openStore(options);
  defer(context, () => healed.close());
  await waitUntilWhole(healed);
  await healed.close();
  renameSync(folders[0]!, `${folders[0]}-away`);
  const again = await openStore(options);
  defer(context, () => again.close());
  for (const [key, bytes] of bodies) assert.ok((await read(again, key)).equals(bytes), key);
});
