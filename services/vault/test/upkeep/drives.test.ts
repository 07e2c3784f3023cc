// Several drives: one of three may be pulled, replaced, damaged or lose its index without any loss of data.
import assert from "node:assert/strict";
import {
  cpSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
  closeSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { waitFor } from "@platform/testing/wait";
import { openStore, type StoreOptions } from "../../src/open-store.ts";
import type { Store } from "../../src/object-store.ts";
import { defer, makeBytes, makeFolder, owner, put, read } from "../store/fixture.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
/** One body of each kind: in the index, in a segment, in shards of one stripe, and of several stripes with an odd end. */
const SIZES = { small: 5_000, middle: 200 * KIB, large: 1.2 * MIB, long: 3 * MIB + 12_345 };

const pattern = makeBytes(SIZES.long + 1_000);

// Different for each round, and cheap.
function makeBody(size: number, round: number): Buffer {
  return pattern.subarray(round, round + size);
}

interface Rig {
  root: string;
  folders: string[];
  open(options?: Partial<StoreOptions>): Promise<Store>;
}

function makeRig(context: TestContext, count = 3, parity = 1): Rig {
  const root = makeFolder(context);
  const folders = Array.from({ length: count }, (_, slot) => join(root, `drive-${slot}`));
  for (const folder of folders) mkdirSync(folder);
  return {
    root,
    folders,
    open: async (options = {}) => {
      const store = await openStore({
        dataDir: join(root, "data"),
        reserveBytes: 0,
        scrubBytesPerSecond: 1024 * MIB,
        healBytesPerSecond: 1024 * MIB,
        drives: { folders, parity, checkEveryMs: 20 },
        ...options,
      });
      defer(context, () => store.close());
      if (store.buckets.find("bucket") === undefined) {
        await store.buckets.create({ bucket: "bucket", owner, region: "us-east-1" });
      }
      return store;
    },
  };
}

async function fill(store: Store, round: number): Promise<void> {
  for (const [name, size] of Object.entries(SIZES)) {
    await put(store, `${name}-${round}`, makeBody(size, round));
  }
}

async function checkAll(store: Store, rounds: readonly number[]): Promise<void> {
  for (const round of rounds) {
    for (const [name, size] of Object.entries(SIZES)) {
      const body = await read(store, `${name}-${round}`);
      assert.ok(body.equals(makeBody(size, round)), `${name}-${round}`);
    }
  }
}

async function waitUntil(store: Store, isReached: () => boolean, what: string): Promise<void> {
  await waitFor(isReached, () => `${what}: ${JSON.stringify(store.listDrives())}`);
}

const states = (store: Store) => store.listDrives().map(({ state }) => state);
const areAllPresent = (store: Store) => () => states(store).every((state) => state === "present");

function pull(rig: Rig, slot: number): () => void {
  const away = `${rig.folders[slot]!}-away`;
  renameSync(rig.folders[slot]!, away);
  return () => renameSync(away, rig.folders[slot]!);
}

/** Flips a bit in each file of a kind on a drive. */
function flipBits(folder: string, ending: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).size > 4_096);
  for (const path of files) {
    const fd = openSync(path, "r+");
    const byte = Buffer.alloc(1);
    const position = statSync(path).size >> 1;
    readSync(fd, byte, 0, 1, position);
    byte[0]! ^= 0x10;
    writeSync(fd, byte, 0, 1, position);
    closeSync(fd);
  }
  return files.length;
}

test("objects on three drives are readable as a whole and in ranges, even after a restart", async (context) => {
  const rig = makeRig(context);
  const store = await rig.open();
  await fill(store, 1);
  await checkAll(store, [1]);
  const whole = makeBody(SIZES.long, 1);
  for (const [start, end] of [
    [0, 0],
    [MIB - 1, MIB],
    [2 * MIB - 10, 2 * MIB + 10],
    [1.5 * MIB, 2.9 * MIB],
    [SIZES.long - 1, SIZES.long - 1],
  ] as const) {
    const body = await read(store, "long-1", { range: { start, end } });
    assert.ok(body.equals(whole.subarray(start, end + 1)), `${start} to ${end}`);
  }
  await store.close();
  await checkAll(await rig.open(), [1]);
});

test("a drive pulled under load fails no read and no write; it is healed after its return, and the log shows that", async (context) => {
  const rig = makeRig(context);
  const told: string[] = [];
  const write = (line: string) => {
    const { msg, folder, reason } = JSON.parse(line) as Record<string, string>;
    told.push([folder, msg, reason].filter(Boolean).join(": "));
  };
  const log = createLogger({ service: "vault", format: "json", write });
  const store = await rig.open({ log });
  await fill(store, 1);
  let round = 1;
  const over = new AbortController();
  const written: number[] = [1];
  const load = async () => {
    while (!over.signal.aborted) {
      round += 1;
      const own = round;
      await fill(store, own);
      written.push(own);
      await checkAll(store, [1, own]);
    }
  };
  const lanes = [load(), load()];
  await waitUntil(store, () => written.length > 3, "load before the pull");
  const putBack = pull(rig, 1);
  await waitUntil(store, () => states(store)[1] === "absent", "the pull is noticed");
  const before = written.length;
  await waitUntil(store, () => written.length > before + 4, "load without the drive");
  putBack();
  await waitUntil(store, () => states(store)[1] !== "absent", "the return is noticed");
  const during = written.length;
  await waitUntil(store, () => written.length > during + 2, "load after the return");
  over.abort();
  await Promise.all(lanes);
  await waitUntil(store, areAllPresent(store), "healed");
  const pulled = told.filter((text) => text.startsWith(`${rig.folders[1]!}: `));
  assert.match(pulled[0]!, /: a drive is lost: ./);
  assert.ok(pulled.includes(`${rig.folders[1]!}: a drive is back and is being healed`));
  assert.match(pulled.at(-1)!, /: a drive is complete again$/);
  // Tests if it is complete: another drive is lost, and everything must be readable from the two others.
  pull(rig, 0);
  await waitUntil(store, () => states(store)[0] === "absent", "the second pull is noticed");
  await checkAll(store, written);
});

test("a drive replaced by an empty one is filled, but only where somebody has said so", async (context) => {
  const rig = makeRig(context);
  const store = await rig.open();
  await fill(store, 1);
  pull(rig, 2);
  await waitUntil(store, () => states(store)[2] === "absent", "the pull is noticed");
  await fill(store, 2);
  mkdirSync(rig.folders[2]!);
  await store.maintenance.checkDrives();
  await store.maintenance.checkDrives();
  assert.equal(states(store)[2], "absent");
  assert.deepEqual(readdirSync(rig.folders[2]!), []);
  writeFileSync(join(rig.folders[2]!, "replace-drive"), "");
  await waitUntil(store, areAllPresent(store), "filled");
  pull(rig, 0);
  await waitUntil(store, () => states(store)[0] === "absent", "another pull is noticed");
  await checkAll(store, [1, 2]);
});

test("flipped bits are corrected when they are read, and healed by a scrub", async (context) => {
  const rig = makeRig(context);
  const store = await rig.open({ segmentBytesMax: 1 });
  await fill(store, 1);
  await put(store, "last", makeBytes(SIZES.middle, 9));
  const flipped =
    flipBits(join(rig.folders[0]!, "files"), ".blob") +
    flipBits(join(rig.folders[0]!, "segments"), ".seg");
  assert.ok(flipped >= 2);
  await checkAll(store, [1]);
  const found = await store.maintenance.scrub();
  const again = await store.maintenance.scrub();
  assert.deepEqual([again.damaged, again.missing], [[], []]);
  assert.ok(found.healed > 0 || store.readStats().corruptBlocks > 0);
  pull(rig, 1);
  await waitUntil(store, () => states(store)[1] === "absent", "the pull is noticed");
  await checkAll(store, [1]);
});

test("the index lost on one drive is restored from the others", async (context) => {
  const rig = makeRig(context);
  const first = await rig.open();
  await fill(first, 1);
  await first.close();
  for (const ending of ["", "-wal", "-shm"]) {
    rmSync(join(rig.folders[0]!, `index.sqlite${ending}`), { force: true });
  }
  const second = await rig.open();
  await waitUntil(second, areAllPresent(second), "the index is there again");
  await fill(second, 2);
  await second.close();
  pull(rig, 1);
  const third = await rig.open();
  assert.deepEqual(states(third)[1], "absent");
  await checkAll(third, [1, 2]);
});

test("a drive that missed writes while the store was closed catches up", async (context) => {
  const rig = makeRig(context);
  const first = await rig.open();
  await fill(first, 1);
  await first.close();
  const putBack = pull(rig, 0);
  const second = await rig.open();
  await fill(second, 2);
  await second.objects.delete({ bucket: "bucket", key: "long-1" });
  await second.close();
  putBack();
  const third = await rig.open();
  await waitUntil(third, areAllPresent(third), "caught up");
  pull(rig, 2);
  await waitUntil(third, () => states(third)[2] === "absent", "the pull is noticed");
  await checkAll(third, [2]);
  await assert.rejects(read(third, "long-1"), { code: "NoSuchKey" });
});

test("commits that only a lost drive has are dropped if the others have continued", async (context) => {
  const rig = makeRig(context);
  const store = await rig.open();
  await put(store, "before", "1");
  for (const slot of [1, 2])
    cpSync(rig.folders[slot]!, `${rig.folders[slot]!}-at-the-cut`, { recursive: true });
  await put(store, "on one alone", "2");
  await store.close();
  for (const slot of [1, 2]) {
    rmSync(rig.folders[slot]!, { recursive: true });
    renameSync(`${rig.folders[slot]!}-at-the-cut`, rig.folders[slot]!);
  }
  const putBack = pull(rig, 0);
  // As many groups as the lost drive had: the number of the last one does not distinguish them.
  const second = await rig.open();
  await second.close();
  putBack();
  const third = await rig.open();
  await waitUntil(third, areAllPresent(third), "healed");
  await assert.rejects(read(third, "on one alone"), { code: "NoSuchKey" });
  await put(third, "after", "3");
  await third.close();
  for (const slot of [0, 1, 2]) {
    const bringBack = pull(rig, slot);
    const without = await rig.open();
    assert.equal((await read(without, "before")).toString(), "1");
    assert.equal((await read(without, "after")).toString(), "3");
    await assert.rejects(read(without, "on one alone"), { code: "NoSuchKey" });
    await without.close();
    bringBack();
  }
});

test("a copy of the index with a readable position that cannot be opened is left out, and replaced", async (context) => {
  const rig = makeRig(context);
  const first = await rig.open();
  await fill(first, 1);
  await first.close();
  const path = join(rig.folders[0]!, "index.sqlite");
  const database = new DatabaseSync(path);
  database.exec("pragma wal_checkpoint(truncate)");
  const page = database.prepare("select rootpage from sqlite_schema where name = 'buckets'").get();
  const { page_size: pageBytes } = database.prepare("pragma page_size").get() as {
    page_size: number;
  };
  database.close();
  const fd = openSync(path, "r+");
  writeSync(
    fd,
    Buffer.alloc(pageBytes, 0xff),
    0,
    pageBytes,
    (Number(page?.["rootpage"]) - 1) * pageBytes,
  );
  closeSync(fd);
  const second = await rig.open();
  await waitUntil(second, areAllPresent(second), "the copy is there again");
  await checkAll(second, [1]);
  await second.close();
  pull(rig, 1);
  await checkAll(await rig.open(), [1]);
});

test("with more drives missing than parity covers the store refuses, and names the reason", async (context) => {
  const rig = makeRig(context);
  const store = await rig.open();
  await fill(store, 1);
  pull(rig, 0);
  pull(rig, 1);
  await waitUntil(store, () => states(store).filter((s) => s === "absent").length === 2, "gone");
  await assert.rejects(put(store, "late", makeBytes(10)), { code: "ServiceUnavailable" });
  await assert.rejects(put(store, "late", makeBytes(SIZES.long)), { code: "ServiceUnavailable" });
  assert.ok((await read(store, "small-1")).equals(makeBody(SIZES.small, 1)));
  // The data comes back with the drives: clients repeat a 503, and not a 500.
  await assert.rejects(read(store, "long-1"), { code: "ServiceUnavailable" });
  const described = store.describeLostDrives() ?? "";
  for (const folder of rig.folders.slice(0, 2)) assert.ok(described.includes(folder), described);
  await store.close();
  await assert.rejects(rig.open(), /too few drives are present/);
});

test("five drives with two of parity survive the loss of two", async (context) => {
  const rig = makeRig(context, 5, 2);
  const store = await rig.open();
  await fill(store, 1);
  pull(rig, 1);
  pull(rig, 4);
  await waitUntil(store, () => states(store).filter((s) => s === "absent").length === 2, "gone");
  await fill(store, 2);
  await checkAll(store, [1, 2]);
});

test("a drive of another store, or in another slot, is refused", async (context) => {
  const rig = makeRig(context);
  const store = await rig.open();
  await fill(store, 1);
  await store.close();
  const [first, second] = rig.folders as [string, string];
  renameSync(first, `${first}-x`);
  renameSync(second, first);
  renameSync(`${first}-x`, second);
  await assert.rejects(rig.open(), /it is drive 1, not 0/);
});
