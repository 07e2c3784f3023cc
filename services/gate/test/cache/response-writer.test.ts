// Stores a response while it passes, in a real store.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ResponseWriter } from "../../src/cache/response-writer.ts";
import { type CacheKey, SharedCache, allocateCache } from "../../src/shared-state/index.ts";

const RECORD = {
  status: 200,
  flags: 0,
  responseAtMs: 0,
  initialAgeMs: 0,
  lifetimeMs: 60_000,
  staleWhileRevalidateMs: 0,
  staleIfErrorMs: 0,
};
const KEY: CacheKey = { bytes: Buffer.from("key"), hashA: 1, hashB: 2, resourceHash: 3 };

/** Writes pieces of 3 bytes; for each one that reached the client and for the end: whether the store had the response. */
function write(contentLength: number, pieces: readonly string[], ends: boolean): boolean[] {
  const cache = new SharedCache(allocateCache(65_536, 1), 0);
  const isStored = (): boolean => {
    const entry = cache.find(KEY);
    if (entry === -1) return false;
    cache.unpin(entry);
    return true;
  };
  const moment = cache.readMoment(KEY.resourceHash);
  const entry = cache.begin(KEY, Buffer.alloc(0), Buffer.from("head"), RECORD, moment);
  const outcomes: boolean[] = [];
  const writer = new ResponseWriter(cache, entry, contentLength, (isDone) => outcomes.push(isDone));
  const seen: boolean[] = [];
  const note = (): void => void seen.push(isStored());
  const output = { write: note, end: note };
  for (const piece of pieces) writer.onBytes(Buffer.from(piece), output as never);
  if (ends) writer.onEnd(output as never);
  else writer.onAbort();
  assert.deepEqual(outcomes, [seen.at(-1) ?? false]);
  return seen;
}

test("a client that has the last byte of a known length finds the response in the store", () => {
  assert.deepEqual(write(6, ["abc", "def"], true), [false, true, true]);
});

test("without a length the response is in the store when its end is sent", () => {
  assert.deepEqual(write(-1, ["abc", "def"], true), [false, false, true]);
});

test("a response that breaks off is not in the store", () => {
  assert.deepEqual(write(9, ["abc", "def"], false), [false, false]);
  assert.deepEqual(write(-1, ["abc", "def"], false), [false, false]);
});
