// Checks of large batches: the same answer as in one piece, while other work runs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeBatch, isBatchIntact } from "../../src/batch/index.ts";
import { isLargeBatchIntact } from "../../src/batch/header.ts";
import { SLICE_BYTES } from "../../src/batch/slice.ts";

function batchOf(bytes: number): Buffer {
  const value = Buffer.alloc(bytes, 7);
  return encodeBatch([{ key: null, value, headers: [], timestamp: 1 }]);
}

test("a large batch is intact exactly if each of its bytes is", async () => {
  for (const size of [10, SLICE_BYTES - 100, SLICE_BYTES, 3 * SLICE_BYTES + 1]) {
    const bytes = Buffer.concat([Buffer.alloc(5), batchOf(size), Buffer.alloc(5)]);
    assert.equal(isBatchIntact(bytes, 5), true);
    assert.equal(await isLargeBatchIntact(bytes, 5), true, `${size} bytes`);
    for (const at of [26, 70, 66 + Math.floor(size / 2), bytes.length - 6]) {
      bytes[at]! ^= 1;
      assert.equal(await isLargeBatchIntact(bytes, 5), false, `byte ${at} of ${size}`);
      bytes[at]! ^= 1;
    }
    assert.equal(await isLargeBatchIntact(bytes.subarray(0, bytes.length - 6), 5), false, "cut");
  }
});

test("other work runs while a large batch is checked", async (context) => {
  const bytes = batchOf(8 * SLICE_BYTES);
  let turns = 0;
  const count = (): void => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  context.after(() => clearImmediate(next));
  assert.equal(await isLargeBatchIntact(bytes, 0), true);
  assert.ok(turns >= 7, `${turns} turns`);
});
