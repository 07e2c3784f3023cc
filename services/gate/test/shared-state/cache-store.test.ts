// The store of the response cache: eviction, readers of evicted entries, and threads that die.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CacheFlights, allocateFlights } from "../../src/shared-state/cache-flights.ts";
import { LOCK } from "../../src/shared-state/cache-memory.ts";
import { type CacheKey, SharedCache, allocateCache } from "../../src/shared-state/index.ts";

const BLOCK = 4_096;
const NO_TAGS = Buffer.alloc(0);
const HEAD = Buffer.from("HTTP/1.1 200 OK\r\n");
const RECORD = {
  status: 200,
  flags: 0,
  responseAtMs: 0,
  initialAgeMs: 0,
  lifetimeMs: 1,
  staleWhileRevalidateMs: 0,
  staleIfErrorMs: 0,
};

function keyOf(name: string, hash = name.length * 31 + (name.codePointAt(0) ?? 0)): CacheKey {
  return { bytes: Buffer.from(name), hashA: hash, hashB: ~hash, resourceHash: hash };
}

function store(cache: SharedCache, key: CacheKey, body: Buffer): boolean {
  const entry = cache.begin(key, NO_TAGS, HEAD, RECORD, cache.readMoment(key.resourceHash));
  if (entry === -1) return false;
  if (cache.append(entry, body)) return cache.publish(entry);
  cache.discard(entry);
  return false;
}

function readBody(cache: SharedCache, key: CacheKey): string | undefined {
  const entry = cache.find(key);
  if (entry === -1) return undefined;
  const { bodyBytes } = cache.read(entry);
  const body = cache.readBody(entry, 0, bodyBytes, false).toString();
  cache.unpin(entry);
  return body;
}

test("the least recently used response is evicted first", () => {
  const buffers = allocateCache(16 * BLOCK, 1);
  const cache = new SharedCache(buffers, 0);
  const keys = Array.from({ length: 16 }, (_, index) => keyOf(`key ${index}`, index));
  for (const key of keys) assert.ok(store(cache, key, Buffer.from("x")));
  const first = cache.find(keys[0]!);
  cache.touch(first, 5_000);
  cache.unpin(first);
  assert.ok(store(cache, keyOf("another", 99), Buffer.from("y")));
  assert.equal(readBody(cache, keys[0]!), "x");
  assert.equal(readBody(cache, keys[1]!), undefined);
  assert.equal(cache.evicted, 1);
});

test("an entry that is read keeps its bytes when it is evicted, replaced or purged", () => {
  const cache = new SharedCache(allocateCache(16 * BLOCK, 1), 0);
  const key = keyOf("read");
  assert.ok(store(cache, key, Buffer.alloc(BLOCK, "a")));
  const entry = cache.find(key);
  for (let index = 0; index < 64; index++) {
    store(cache, keyOf(`other ${index}`, index + 100), Buffer.alloc(BLOCK, "b"));
  }
  assert.equal(cache.find(key), -1);
  assert.equal(cache.readBody(entry, 0, BLOCK, false).toString(), "a".repeat(BLOCK));
  cache.unpin(entry);
  cache.purge(() => true);
  assert.equal(cache.entries, 0);
  // The next store frees what readers held.
  assert.ok(store(cache, key, Buffer.from("c")));
  assert.equal(cache.bytes, BLOCK);
});

test("a response that was requested before an invalidation or a purge is not stored", () => {
  const cache = new SharedCache(allocateCache(16 * BLOCK, 1), 0);
  const key = keyOf("changed");
  for (const change of [() => cache.invalidate(key.resourceHash), () => cache.purge(() => false)]) {
    const entry = cache.begin(key, NO_TAGS, HEAD, RECORD, cache.readMoment(key.resourceHash));
    change();
    assert.equal(cache.publish(entry), false);
    assert.equal(cache.find(key), -1);
    assert.equal(cache.bytes, 0);
  }
});

test("the space that a dead worker was filling or reading is free again", () => {
  const buffers = allocateCache(16 * BLOCK, 2);
  const dead = new SharedCache(buffers, 0);
  const alive = new SharedCache(buffers, 1);
  const control = new SharedCache(buffers, 2);
  const key = keyOf("read");
  assert.ok(store(alive, key, Buffer.from("x")));
  assert.notEqual(dead.find(key), -1);
  assert.notEqual(dead.begin(keyOf("half"), NO_TAGS, HEAD, RECORD, dead.readMoment(0)), -1);
  control.recover(0);
  control.purge(() => true);
  assert.equal(control.bytes, 0);
  assert.ok(store(alive, key, Buffer.from("y")));
  assert.equal(readBody(alive, key), "y");
});

test("a worker that dies with the lock leaves an empty store, and readers their bytes", () => {
  const buffers = allocateCache(16 * BLOCK, 2);
  const alive = new SharedCache(buffers, 1);
  const control = new SharedCache(buffers, 2);
  const [read, gone] = [keyOf("read"), keyOf("gone away")];
  assert.ok(store(alive, read, Buffer.alloc(BLOCK, "a")));
  assert.ok(store(alive, gone, Buffer.from("x")));
  const entry = alive.find(read);
  const filling = alive.begin(keyOf("filling it"), NO_TAGS, HEAD, RECORD, alive.readMoment(0));
  Atomics.store(new Int32Array(buffers.words), LOCK, 1);
  // Others give up instead of waiting for ever.
  assert.equal(store(alive, keyOf("refused"), Buffer.from("x")), false);
  control.recover(0);
  assert.equal(readBody(alive, gone), undefined);
  for (let index = 0; index < 40; index++)
    store(alive, keyOf(`n${index}`, index), Buffer.from("b"));
  assert.equal(alive.readBody(entry, 0, BLOCK, false).toString(), "a".repeat(BLOCK));
  alive.unpin(entry);
  assert.ok(alive.append(filling, Buffer.from("whole")) && alive.publish(filling));
  assert.equal(readBody(alive, keyOf("filling it")), "whole");
});

test("whatever is stored, a lookup returns the last body of its key or nothing", () => {
  const step = fc.record({
    key: fc.integer({ min: 0, max: 11 }),
    size: fc.integer({ min: 0, max: 3 * BLOCK }),
    does: fc.constantFrom("store", "store", "find", "find", "invalidate", "purge", "discard"),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const cache = new SharedCache(allocateCache(32 * BLOCK, 1), 0);
      const expected = new Map<number, string>();
      for (const [index, { key: number, size, does }] of steps.entries()) {
        // Hashes collide on purpose.
        const key = keyOf(`key ${number}`, number % 3);
        const body = String.fromCodePoint(97 + (index % 26)).repeat(size);
        if (does === "store") {
          if (store(cache, key, Buffer.from(body))) expected.set(number, body);
        } else if (does === "invalidate") {
          cache.invalidate(key.resourceHash);
          for (const other of expected.keys()) {
            if (other % 3 === number % 3) expected.delete(other);
          }
        } else if (does === "purge") {
          cache.purge((bytes) => bytes.toString() === `key ${number}`);
          expected.delete(number);
        } else if (does === "discard") {
          const entry = cache.begin(key, NO_TAGS, HEAD, RECORD, cache.readMoment(0));
          if (entry !== -1) cache.discard(entry);
        } else {
          const found = readBody(cache, key);
          if (found !== undefined) assert.equal(found, expected.get(number));
        }
      }
      cache.purge(() => true);
      for (let index = 0; index < 12; index++) cache.invalidate(index);
      assert.ok(cache.entries >= 0);
    }),
  );
});

test("a fetch that ends wakes those that wait, one of a dead worker too", async () => {
  const buffer = allocateFlights();
  const readSeconds = (): number => 1;
  const [one, other, control] = [0, 1, 2].map((at) => new CacheFlights(buffer, at, readSeconds));
  assert.equal(one!.take(7), "leader");
  assert.equal(other!.take(7), "waits");
  const landed = other!.wait(7, 60_000);
  one!.land(7, true);
  await landed;
  assert.equal(other!.take(7), "leader");
  const recovered = one!.wait(7, 60_000);
  control!.recover(1);
  await recovered;
  assert.equal(one!.take(7), "leader");
  one!.land(7, false);
  assert.equal(other!.take(7), "passes");
});

test("a key whose response is not stored does not keep another one of its place from waiting", () => {
  const buffer = allocateFlights();
  const [one, other] = [0, 1].map((thread) => new CacheFlights(buffer, thread, () => 1));
  const [unstored, neighbour] = [7, 7 + (1 << 20)];
  assert.equal(one!.take(unstored), "leader");
  assert.equal(other!.take(neighbour), "passes", "they share a place");
  one!.land(unstored, false);
  assert.equal(other!.take(unstored), "passes");
  assert.equal(other!.take(neighbour), "leader");
});

test("a worker that dies before a fetch bears its name leaves no key locked", async () => {
  const buffer = allocateFlights();
  const [control, other] = [2, 0].map((thread) => new CacheFlights(buffer, thread, () => 1));
  const dead = new CacheFlights(buffer, 1, () => 1);
  assert.equal(dead.take(7), "leader");
  const words = new Int32Array(buffer);
  const owner = words.indexOf(2);
  assert.notEqual(owner, -1);
  words[owner] = 0;
  const waiting = other!.wait(7, 60_000);
  assert.equal(other!.take(7), "waits");
  control!.recover(1);
  await waiting;
  assert.equal(other!.take(7), "leader");
});
