// The bounded cache.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createManualClock } from "@platform/kernel/time";
import { Cache } from "../../src/cache/cache.ts";

test("values expire after the cache's lifetime or their own", () => {
  const clock = createManualClock();
  const cache = new Cache({ ttl: 60 }, clock);
  cache.set("a", { n: 1 });
  cache.set("b", 2, 120);
  clock.advance(60_000);
  assert.equal(cache.get("a"), undefined);
  assert.equal(cache.get("b"), 2);
  assert.deepEqual(cache.counts, { entries: 1, bytes: 2, hits: 1, misses: 1, evictions: 0 });
});

test("the least recently used entries are evicted at the bound of entries and of bytes", () => {
  const cache = new Cache({ entriesMax: 2 });
  for (const key of ["a", "b"]) cache.set(key, key);
  cache.get("a");
  cache.set("c", "c");
  assert.deepEqual([cache.get("a"), cache.get("b"), cache.get("c")], ["a", undefined, "c"]);
  const small = new Cache({ bytesMax: 20 });
  small.set("a", "12345678");
  small.set("b", "12345678");
  assert.deepEqual([small.get("a"), small.get("b")], [undefined, "12345678"]);
  assert.equal(small.set("b", "x".repeat(30)), false);
  assert.equal(small.get("b"), undefined);
  assert.equal(small.counts.bytes, 0);
});

test("concurrent loads of a key share one call, and errors are not kept", async () => {
  const cache = new Cache();
  let calls = 0;
  const load = async (): Promise<number> => {
    await Promise.resolve();
    return ++calls;
  };
  assert.deepEqual(await Promise.all([cache.load("a", load), cache.load("a", load)]), [1, 1]);
  assert.equal(await cache.load("a", load), 1);
  const fail = (): never => {
    throw new Error("down");
  };
  await assert.rejects(cache.load("b", fail), /down/);
  assert.equal(await cache.load("b", () => 5), 5);
});

test("keys and values that cannot be stored are refused", () => {
  const cache = new Cache();
  assert.throws(() => cache.set("", 1), /1 to 1024 characters/);
  assert.throws(() => cache.set("a", undefined), /type undefined cannot be stored/);
  assert.throws(() => cache.set("a", 1n), TypeError);
  assert.throws(() => new Cache({ ttl: -1 }), /above 0, not -1/);
});
