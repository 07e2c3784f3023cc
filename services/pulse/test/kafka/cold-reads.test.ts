// Reads that take longer than the requests for them: shared by the next requests, and ended without any.
import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeBatch } from "@platform/log/batch";
import type { PartitionView, ReadResult } from "@platform/log";
import { ColdReads } from "../../src/kafka/cold-reads.ts";

const view = {} as PartitionView;
const MIB = 1024 * 1024;

/** Reads that end when a test says it. */
function stage() {
  const begun: { offset: number; bytesMax: number; signal: AbortSignal; end: typeof end }[] = [];
  let end: (result: ReadResult) => void;
  const reads = new ColdReads((_view, offset, bytesMax, signal) => {
    const { promise, resolve } = Promise.withResolvers<ReadResult>();
    end = resolve;
    begun.push({ offset, bytesMax, signal, end });
    return promise;
  });
  const ask = (offset: number, bytesMax = MIB, isStrict = false) =>
    reads.read(view, offset, { bytesMax, isStrict, untilMs: performance.now() + 5 });
  return { reads, begun, ask };
}

function found(...sizes: number[]): ReadResult {
  const buffers = sizes.map((size, offset) =>
    encodeBatch([{ key: null, value: Buffer.alloc(size), headers: [], timestamp: 1 }], {
      baseOffset: offset,
    }),
  );
  return {
    buffers,
    bytes: buffers.reduce((sum, { length }) => sum + length, 0),
    nextOffset: sizes.length,
  };
}

test("requests that ask again share one read, and the last one has its records", async () => {
  const { begun, ask } = stage();
  for (let times = 0; times < 50; times++) assert.equal(await ask(7), undefined);
  assert.equal(begun.length, 1);
  const result = found(100);
  begun[0]!.end(result);
  assert.equal(await ask(7), result);
  assert.equal(begun[0]!.signal.aborted, false);
  await ask(7);
  assert.equal(begun.length, 2, "the next one begins anew");
});

test("a result of several requests is told from that of one", async () => {
  const { reads, begun, ask } = stage();
  const both = Promise.all([ask(7), ask(7)]);
  const result = found(100);
  begun[0]!.end(result);
  assert.deepEqual(await both, [result, result]);
  assert.equal(reads.isShared(result), true);
  const alone = ask(8);
  const other = found(100);
  begun[1]!.end(other);
  assert.equal(await alone, other);
  assert.equal(reads.isShared(other), false);
});

test("records that come between two requests are kept for the second", async () => {
  const { begun, ask } = stage();
  assert.equal(await ask(7), undefined);
  const result = found(100);
  begun[0]!.end(result);
  await Promise.resolve();
  assert.equal(await ask(7), result);
  assert.equal(begun.length, 1);
});

test("a read whose client does not ask again ends after two seconds", async (t) => {
  const { begun, ask } = stage();
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = ask(7);
  t.mock.timers.tick(10);
  assert.equal(await asked, undefined);
  t.mock.timers.tick(1_900);
  assert.equal(begun[0]!.signal.aborted, false);
  t.mock.timers.tick(200);
  assert.equal(begun[0]!.signal.aborted, true);
  const again = ask(7);
  t.mock.timers.tick(10);
  await again;
  assert.equal(begun.length, 2, "the next one begins anew");
});

test("a client that asks for one position after the other leaves at most sixteen reads", async () => {
  const { begun, ask } = stage();
  for (let offset = 0; offset < 40; offset++) await ask(offset);
  const ended = begun.filter(({ signal }) => signal.aborted).map(({ offset }) => offset);
  assert.deepEqual(
    ended,
    Array.from({ length: 24 }, (_, offset) => offset),
  );
});

test("a first batch that exceeds strict bounds is there for the request with more room", async () => {
  const { begun, ask } = stage();
  const result = found(300_000);
  const asked = ask(7, 1_000, true);
  begun[0]!.end(result);
  assert.equal(await asked, undefined);
  assert.equal(await ask(7), result);
  assert.equal(begun.length, 1);
});

test("a request with less room does not get the batches of one with more", async () => {
  const { begun, ask } = stage();
  assert.equal(await ask(7), undefined);
  begun[0]!.end(found(300_000, 300_000));
  const asked = ask(7, 400_000);
  while (begun.length < 2) await new Promise(setImmediate);
  assert.equal(begun[1]!.bytesMax, 400_000);
  const result = found(300_000);
  begun[1]!.end(result);
  assert.equal(await asked, result);
});

test("a read has at most four MiB", async () => {
  const { begun, ask } = stage();
  await ask(7, 64 * MIB);
  assert.equal(begun[0]!.bytesMax, 4 * MIB);
});

test("a read that fails is begun again by the next request", async () => {
  let times = 0;
  const reads = new ColdReads(() => {
    times++;
    return Promise.reject(new Error("the store is away"));
  });
  const ask = () =>
    reads.read(view, 0, { bytesMax: 1, isStrict: false, untilMs: performance.now() + 5 });
  await assert.rejects(ask(), /away/);
  await assert.rejects(ask(), /away/);
  assert.equal(times, 2);
});
