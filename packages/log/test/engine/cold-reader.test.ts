// Reads of objects beside other users of the log: how fast an object is received, and what else runs meanwhile.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ColdReader } from "../../src/cold/cold-reader.ts";
import type { ColdStore } from "../../src/index.ts";
import { Random } from "../simulation/random.ts";
import { SimClock, SimDisk } from "../simulation/sim-disk.ts";

const MIB = 1024 * 1024;
const PIECE = MIB / 4;
const OBJECT = Buffer.alloc(4 * MIB, "0123456789abcde");
const FILE = { object: "one", bytes: OBJECT.length, partition: 1 };

/** A store that sends pieces as soon as it may. */
function paceStore(): { store: ColdStore; received: () => number } {
  let received = 0;
  const read: ColdStore["read"] = async (_object, start, target, pace) => {
    for (let at = 0; at < target.length; at += PIECE) {
      OBJECT.copy(target, at, start + at, start + at + PIECE);
      received += PIECE;
      await pace?.(PIECE);
    }
  };
  const refuse = (): never => {
    throw new Error("only read");
  };
  const store = { read, put: refuse, remove: refuse, head: refuse, list: refuse };
  return { store, received: () => received };
}

async function openReader() {
  const clock = new SimClock();
  const { store, received } = paceStore();
  const reader = new ColdReader({ clock, hasRoom: () => true, onFailure: () => undefined });
  const cache = new SimDisk(new Random(1));
  await reader.use({ store, cache, cacheBytesMax: 64 * MIB, isUploading: true });
  const into = Buffer.alloc(OBJECT.length);
  const open = (signal?: AbortSignal): Promise<number> =>
    reader.open(FILE, signal).read(into, 0, into.length, 0);
  const reading = (): Promise<number> => open();
  /** Moves the clock in small steps, with four commits in each 100 ms if `isUsed`. */
  const pass = async (ms: number, isUsed: boolean): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 5) {
      if (isUsed && passed % 25 === 0) reader.share.noteCommit(2, clock.now());
      clock.advance(5);
      await turn();
    }
  };
  return { reader, clock, received, into, open, reading, pass };
}

test("an object is received at once while nobody else uses the log", async () => {
  const { reader, received, into, reading } = await openReader();
  assert.equal(await reading(), OBJECT.length);
  assert.equal(received(), OBJECT.length);
  assert.ok(into.equals(OBJECT));
  await reader.close();
});

test("beside commits an object is received piece by piece, at a low rate from the first one on", async () => {
  const { reader, received, into, reading, pass } = await openReader();
  await pass(200, true);
  const read = reading();
  await pass(300, true);
  assert.ok(received() > PIECE, `${received()} bytes`);
  assert.ok(received() <= 2 * MIB, `${received()} bytes in 300 ms`);
  await pass(2_000, true);
  assert.equal(await read, OBJECT.length);
  assert.ok(into.equals(OBJECT));
  await reader.close();
});

test("what is on its way waits as soon as others begin to use the log", async () => {
  const { reader, clock, received, reading, pass } = await openReader();
  const read = reading();
  for (let times = 0; times < 4; times += 1) reader.share.noteCommit(2, clock.now() + times);
  await turn();
  assert.ok(received() < OBJECT.length, `${received()} bytes at once`);
  await pass(3_000, true);
  assert.equal(await read, OBJECT.length);
  await reader.close();
});

test("a closed reader waits for no piece", async () => {
  const { reader, received, reading, pass } = await openReader();
  await pass(200, true);
  const read = reading().catch((error: Error) => error);
  await pass(50, true);
  assert.ok(received() < OBJECT.length);
  await reader.close();
  await read;
});

test("reads that wait for their share go on when nobody else uses the log any more", async () => {
  const { open, clock, pass } = await openReader();
  await pass(200, true);
  const begun = clock.now();
  const reads = Promise.all(Array.from({ length: 20 }, () => open()));
  await pass(100, true);
  for (let isOver = false; !isOver && clock.now() - begun < 30_000;) {
    await pass(100, false);
    isOver = await Promise.race([reads.then(() => true), turn(false)]);
  }
  // At 4 MiB/s they would take 20 s.
  assert.ok(clock.now() - begun < 4_000, `${clock.now() - begun} ms`);
});

test("readers that leave give their share back at once", async () => {
  const { open, clock, pass } = await openReader();
  await pass(200, true);
  const leaving = new AbortController();
  const left = Array.from({ length: 20 }, () =>
    open(leaving.signal).catch((error: Error) => error),
  );
  await turn();
  leaving.abort(new Error("left"));
  // The first one has its share.
  for (const error of await Promise.all(left.slice(1))) assert.equal(String(error), "Error: left");
  const begun = clock.now();
  const read = open();
  for (let isOver = false; !isOver && clock.now() - begun < 15_000;) {
    await pass(100, true);
    isOver = await Promise.race([read.then(() => true), turn(false)]);
  }
  assert.ok(clock.now() - begun < 4_000, `${clock.now() - begun} ms`);
  await read;
});

test("other work runs while a chunk is copied to its reader", async (context) => {
  const { reader, reading } = await openReader();
  await reading();
  let turns = 0;
  let next = setImmediate(function count() {
    turns += 1;
    next = setImmediate(count);
  });
  context.after(() => clearImmediate(next));
  await reading();
  assert.ok(turns >= 6, `${turns} turns`);
  await reader.close();
});
