// Every kind of file × every kind of damage: acknowledged data is present, or its loss is reported. VAULT_FAULT_MATRIX=all
// runs every cell; the short form runs the cells that once failed.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { basename, join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { checkStore, type FsckReport } from "../../src/fsck/check-store.ts";
import type { Store } from "../../src/object-store.ts";
import { makeBytes, makeFolder, owner, put } from "../store/fixture.ts";
import { nameDrives, openTestStore, waitUntilWhole } from "./stores.ts";

const IS_LONG = process.env["VAULT_FAULT_MATRIX"] === "all";

/** Every file of a store has one of these kinds; the first file of a kind, by name, is damaged. */
const KINDS: readonly (readonly [string, RegExp])[] = [
  ["index", /(^|\/)index\.sqlite$/],
  ["index wal", /index\.sqlite-wal$/],
  ["index shm", /index\.sqlite-shm$/],
  ["index mark", /index\.sqlite\.mark$/],
  ["index copy", /index-copy\.sqlite$/],
  ["disk reserve", /index\.sqlite\.reserve$/],
  ["lock", /lock\.sqlite$/],
  ["lock journal", /lock\.sqlite-journal$/],
  ["buckets", /buckets\.json$/],
  ["scrub result", /scrub\.json$/],
  ["drive identity", /drive\.json$/],
  ["segment", /segments\/.*\.seg$/],
  ["body or shard", /files\/.*\.blob$/],
  ["staging", /staging\/[0-9a-f]{14}$/],
  ["quarantine", /quarantine\//],
];

const FAULTS = [
  "flip at start",
  "flip in middle",
  "flip at end",
  "truncated",
  "emptied",
  "missing",
  "older",
] as const;
type Fault = (typeof FAULTS)[number];

/** The states of a store before the damage. */
const LAYOUTS = [
  { name: "one drive, killed", drives: 1, isKilled: true },
  { name: "one drive, after a checkpoint", drives: 1, isKilled: false },
  { name: "three drives (2+1), killed", drives: 3, isKilled: true },
] as const;
type Layout = (typeof LAYOUTS)[number];

/** The short form: cells with former silent losses, and one of each other kind. */
const SHORT: Record<Layout["name"], readonly (readonly [string, Fault])[]> = {
  "one drive, after a checkpoint": [
    ["index", "flip at start"],
    ["index", "flip in middle"],
    ["index", "missing"],
    ["index", "older"],
  ],
  "one drive, killed": [
    ["index", "emptied"],
    ["index wal", "flip in middle"],
    ["index wal", "missing"],
    ["index mark", "flip at start"],
    ["disk reserve", "missing"],
    ["lock", "flip at start"],
    ["segment", "flip in middle"],
    ["body or shard", "missing"],
  ],
  "three drives (2+1), killed": [
    ["index wal", "truncated"],
    ["drive identity", "flip in middle"],
    ["body or shard", "truncated"],
  ],
};

interface Acknowledged {
  bucket: string;
  key: string;
  versionId?: string;
  etag: string;
  digest: string;
}

interface Image {
  drives: number;
  /** The state when the process was killed, and an earlier state. */
  now: string;
  older: string;
  acknowledged: Acknowledged[];
}

type State = "whole" | "error" | "missing" | "wrong";

for (const layout of LAYOUTS) {
  test(`${layout.name}: damage to a file never loses data silently`, async (context) => {
    const image = await makeImage(context, layout);
    const rows: string[] = [];
    const failures: string[] = [];
    for (const [kind, pattern] of KINDS) {
      const path = findFile(image.now, pattern);
      if (path === undefined || (!layout.isKilled && !kind.startsWith("index"))) continue;
      const cells: string[] = [];
      for (const fault of FAULTS) {
        const isWanted = SHORT[layout.name].some(([of, what]) => of === kind && what === fault);
        if (!IS_LONG && !isWanted) continue;
        if (fault === "older" && !hasOlder(image, path)) continue;
        const outcome = await tryCell(context, image, path, fault).catch((error: unknown) => {
          failures.push(`${kind}, ${fault}: ${(error as Error).message}`);
          return "FAILED";
        });
        cells.push(`${fault}: ${outcome}`);
      }
      if (cells.length > 0) rows.push(`${kind} | ${cells.join(" | ")}`);
    }
    for (const row of rows) context.diagnostic(row);
    assert.deepEqual(failures, []);
  });
}

// All kinds of data, put before and after the last clean stop, with a kill in the middle.
async function makeImage(context: TestContext, { drives, isKilled }: Layout): Promise<Image> {
  const root = makeFolder(context);
  for (const folder of nameDrives(root, drives)) mkdirSync(folder, { recursive: true });
  const acknowledged: Acknowledged[] = [];
  let store = await openTestStore(root, drives);
  await store.buckets.create({ bucket: "bucket", owner, region: "eu" });
  await store.buckets.create({ bucket: "versioned", owner, region: "eu" });
  await store.buckets.setVersioning("versioned", "Enabled");
  await fill(store, acknowledged, "first");
  await store.maintenance.scrub();
  if (drives === 1) assert.deepEqual(await store.maintenance.copyIndex(), []);
  await store.close();
  const older = makeFolder(context);
  cpSync(root, older, { recursive: true });
  store = await openTestStore(root, drives);
  await fill(store, acknowledged, "second");
  const cut = store.objects.beginPut({
    bucket: "bucket",
    key: "cut short",
    contentLength: 5_000_000,
  });
  await cut.write(makeBytes(4_500_000, 99));
  const now = makeFolder(context);
  if (isKilled) cpSync(root, now, { recursive: true });
  await cut.abort();
  await store.close();
  if (!isKilled) {
    // The state after 8 MiB of commits: everything is in the index itself.
    const index = new DatabaseSync(join(root, "index.sqlite"));
    index.exec("pragma wal_checkpoint(truncate)");
    index.close();
    cpSync(root, now, { recursive: true });
  }
  const folder = nameDrives(now, drives)[0]!;
  mkdirSync(join(folder, "quarantine"), { recursive: true });
  writeFileSync(join(folder, "quarantine", "00000000000001.blob"), makeBytes(1000, 5));
  for (const path of listFiles(now)) {
    assert.ok(
      KINDS.some(([, pattern]) => pattern.test(path)),
      `${path} has no known kind`,
    );
  }
  return { drives, now, older, acknowledged };
}

async function fill(store: Store, acknowledged: Acknowledged[], name: string): Promise<void> {
  const sizes = [0, 1, 100, 5_000, 16_000, 20_000, 200_000, 1_300_000];
  const note = (
    bucket: string,
    key: string,
    body: Buffer,
    result: { etag: string; versionId: string },
  ) => {
    const versionId = bucket === "versioned" ? { versionId: result.versionId } : {};
    const digest = createHash("sha256").update(body).digest("hex");
    acknowledged.push({ bucket, key, ...versionId, etag: result.etag, digest });
  };
  for (const [seed, size] of sizes.entries()) {
    const body = makeBytes(size, seed + name.length);
    const key = `${name}/${size}`;
    note("bucket", key, body, await put(store, key, body, { metadata: { name } }));
  }
  for (let index = 0; index < 40; index += 1) {
    const body = makeBytes(300 + index * 100, index + 1);
    const key = `${name}/small/${index}`;
    note("bucket", key, body, await put(store, key, body));
  }
  for (const size of [50, 30_000]) {
    const body = makeBytes(size, name.length);
    const key = `versions/${size}`;
    note("versioned", key, body, await put(store, key, body, { bucket: "versioned" }));
  }
  const { uploadId } = await store.uploads.create({ bucket: "bucket", key: `${name}/parts` });
  const address = { bucket: "bucket", key: `${name}/parts`, uploadId };
  const parts = [];
  const bodies = [makeBytes(100_000, 1), makeBytes(2_000, 2)];
  for (const [index, body] of bodies.entries()) {
    const part = store.uploads.beginPart({
      ...address,
      partNumber: index + 1,
      contentLength: body.length,
    });
    await part.write(body);
    parts.push({ partNumber: index + 1, etag: (await part.commit()).etag });
  }
  const completed = await store.uploads.complete({ ...address, parts });
  note("bucket", address.key, Buffer.concat(bodies), { ...completed, versionId: "null" });
  // Unlike overwritten objects, deleted objects must not hide a loss.
  await put(store, `${name}/gone`, "gone");
  await store.objects.delete({ bucket: "bucket", key: `${name}/gone` });
}

async function tryCell(
  context: TestContext,
  image: Image,
  path: string,
  fault: Fault,
): Promise<string> {
  const root = makeFolder(context);
  try {
    cpSync(image.now, root, { recursive: true });
    damage(join(root, path), fault, join(image.older, path));
    const options = describeStore(root, image.drives);
    const dry = await checkStore({ ...options, isRepair: false });
    let repaired: FsckReport | undefined;
    let store: Store;
    try {
      store = await openTestStore(root, image.drives);
    } catch (error) {
      assert.match((error as Error).message, /platform-vaultd fsck/);
      assert.ok(!dry.isWhole || dry.findings.some(({ state }) => state === "restored"));
      repaired = await checkStore({ ...options, isRepair: true });
      store = await openTestStore(root, image.drives);
    }
    let outcome: string;
    try {
      outcome = await judge(image, store, dry, repaired);
    } finally {
      await store.close();
    }
    if (outcome !== "a drive is left out") return outcome;
    repaired = await checkStore({ ...options, isRepair: true });
    store = await openTestStore(root, image.drives);
    try {
      return `${outcome}, ${await judge(image, store, dry, repaired)} after fsck`;
    } finally {
      await store.close();
    }
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function judge(
  image: Image,
  store: Store,
  dry: FsckReport,
  repaired: FsckReport | undefined,
): Promise<string> {
  const before = await readAll(store, image.acknowledged);
  const counts = count(before);
  assert.equal(counts.wrong, 0, "wrong bytes were returned");
  if (counts.missing > 0) {
    const isTold = repaired?.findings.some(({ state }) => state === "lost") === true;
    assert.ok(isTold, `${counts.missing} objects are lost silently`);
  }
  if (counts.error > 0) {
    assert.ok(
      dry.findings.some(({ state }) => state === "lost" || state === "damaged"),
      "fsck does not report unreadable data",
    );
  }
  if (image.drives > 1) {
    assert.equal(
      counts.whole,
      image.acknowledged.length,
      "damage on one drive is not reconstructed",
    );
    if (store.listDrives().some(({ state }) => state === "absent")) return "a drive is left out";
    await waitUntilWhole(store);
  }
  const scrub = await store.maintenance.scrub();
  if (image.drives === 1 && counts.error > 0) {
    assert.ok(scrub.damaged.length + scrub.missing.length > 0, "the scrub finds no damage");
  }
  await put(store, "after", makeBytes(1_500_000, 77));
  await put(store, "after/small", "small");
  for (let round = 0; round < 3; round += 1) await store.maintenance.collect();
  const after = await readAll(store, image.acknowledged);
  for (const [index, state] of before.entries()) {
    if (state === "whole") assert.equal(after[index], "whole", "upkeep has removed what was whole");
  }
  const start = repaired === undefined ? "" : "refused, restored, ";
  if (counts.whole === image.acknowledged.length) return `${start}whole`;
  return `${start}${counts.whole} whole, ${counts.error} errors, ${counts.missing} told as lost`;
}

async function readAll(store: Store, acknowledged: readonly Acknowledged[]): Promise<State[]> {
  const states: State[] = [];
  for (const object of acknowledged) states.push(await readOne(store, object));
  return states;
}

async function readOne(
  store: Store,
  { bucket, key, versionId, etag, digest }: Acknowledged,
): Promise<State> {
  try {
    const address = { bucket, key, ...(versionId === undefined ? {} : { versionId }) };
    const reader = await store.objects.get(address);
    const hash = createHash("sha256");
    for await (const chunk of reader.body.chunks()) hash.update(chunk);
    return hash.digest("hex") === digest && reader.object.etag === etag ? "whole" : "wrong";
  } catch (error) {
    const { code } = error as { code?: string };
    return code?.startsWith("NoSuch") === true ? "missing" : "error";
  }
}

function count(states: readonly State[]): Record<State, number> {
  const counts = { whole: 0, error: 0, missing: 0, wrong: 0 };
  for (const state of states) counts[state] += 1;
  return counts;
}

function damage(path: string, fault: Fault, older: string): void {
  const bytes = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
  const flip = (at: number) => {
    if (bytes.length === 0) return;
    bytes[Math.min(bytes.length - 1, Math.max(0, at))]! ^= 0x10;
    writeFileSync(path, bytes);
  };
  switch (fault) {
    case "flip at start":
      return flip(5);
    case "flip in middle":
      return flip(bytes.length >> 1);
    case "flip at end":
      return flip(bytes.length - 5);
    case "truncated":
      return truncateSync(path, bytes.length >> 1);
    case "emptied":
      return truncateSync(path, 0);
    case "missing":
      return rmSync(path);
    case "older":
      return cpSync(older, path);
    default:
      fault satisfies never;
  }
}

function hasOlder({ now, older }: Image, path: string): boolean {
  const before = join(older, path);
  return existsSync(before) && !readFileSync(before).equals(readFileSync(join(now, path)));
}

function describeStore(root: string, drives: number) {
  return drives === 1
    ? { dataDir: root }
    : { dataDir: join(root, "data"), drives: nameDrives(root, drives) };
}

// The largest of its kind: the worst case.
function findFile(root: string, pattern: RegExp): string | undefined {
  return listFiles(root)
    .filter((path) => pattern.test(path))
    .sort((a, b) => statSync(join(root, b)).size - statSync(join(root, a)).size)[0];
}

function listFiles(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && basename(entry.name) !== "")
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}
