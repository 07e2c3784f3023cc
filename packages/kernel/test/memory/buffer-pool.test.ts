// Memory that is lent, given back and lent again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BufferPool } from "@platform/kernel/memory";

test("a buffer that was given back is lent again, once", () => {
  const pool = new BufferPool({ sizes: [1_000, 4_000], spareMax: 1 });
  const [one, other] = [pool.take(700), pool.take(1_000)];
  assert.deepEqual([one.length, other.length], [700, 1_000]);
  assert.notEqual(one.buffer, other.buffer);
  pool.recycle(one.subarray(10, 20));
  pool.recycle(one);
  pool.recycle(other);
  const again = pool.take(900);
  assert.equal(again.buffer, one.buffer);
  assert.equal(again.length, 900);
  assert.notEqual(pool.take(900).buffer, other.buffer, "more spare buffers than allowed");
});

test("lengths that no size suits, and buffers of others, are not kept", () => {
  const pool = new BufferPool({ sizes: [1_000, 4_000], spareMax: 4 });
  for (const length of [0, 499, 1_999, 4_001]) {
    const buffer = pool.take(length);
    assert.equal(buffer.length, length);
    pool.recycle(buffer);
    assert.notEqual(pool.take(1_000).buffer, buffer.buffer);
    assert.notEqual(pool.take(4_000).buffer, buffer.buffer);
  }
  const foreign = Buffer.alloc(1_000);
  pool.recycle(foreign);
  assert.notEqual(pool.take(1_000).buffer, foreign.buffer);
});

test("spare buffers of all sizes have a bound together", () => {
  const pool = new BufferPool({ sizes: [1_000, 4_000], spareMax: 8, spareBytesMax: 5_000 });
  const [large, small, more] = [pool.take(4_000), pool.take(1_000), pool.take(1_000)];
  for (const buffer of [large, small, more]) pool.recycle(buffer);
  assert.equal(pool.take(1_000).buffer, small.buffer);
  assert.notEqual(pool.take(1_000).buffer, more.buffer, "more spare bytes than allowed");
  pool.recycle(small);
  assert.equal(pool.take(4_000).buffer, large.buffer);
  assert.equal(pool.take(1_000).buffer.byteLength, 1_000);
});

test("spare memory that nobody takes is given back", (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  const pool = new BufferPool({ sizes: [1_000], spareMax: 4 });
  const buffer = pool.take(1_000);
  pool.recycle(buffer);
  context.mock.timers.tick(10_000);
  assert.equal(pool.take(1_000).buffer, buffer.buffer, "it was in use a moment ago");
  pool.recycle(buffer);
  context.mock.timers.tick(20_000);
  assert.notEqual(pool.take(1_000).buffer, buffer.buffer);
});
