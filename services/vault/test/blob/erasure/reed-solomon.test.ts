// Any k shards restore the others.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ReedSolomon } from "../../../src/blob/erasure/reed-solomon.ts";

test("any k remaining shards restore every lost shard", () => {
  const cases = fc.record({
    data: fc.integer({ min: 1, max: 8 }),
    parity: fc.integer({ min: 0, max: 4 }),
    length: fc.integer({ min: 1, max: 50 }),
    order: fc.array(fc.nat(), { minLength: 12, maxLength: 12 }),
    seed: fc.array(fc.nat(255), { minLength: 1, maxLength: 400 }),
  });
  fc.assert(
    fc.property(cases, ({ data, parity, length, order, seed }) => {
      const code = new ReedSolomon(data, parity);
      const make = (shard: number) =>
        Uint8Array.from({ length }, (_, at) => seed[(shard * length + at) % seed.length]! ^ shard);
      const shards = Array.from({ length: data + parity }, (_, shard) =>
        shard < data ? make(shard) : new Uint8Array(length),
      );
      code.encode(shards.slice(0, data), shards.slice(data));
      const kept = shards
        .map((bytes, index) => ({ bytes, index }))
        .sort((a, b) => order[a.index]! - order[b.index]!)
        .slice(0, data);
      const present = new Map(kept.map(({ bytes, index }) => [index, bytes]));
      for (const [index, wanted] of shards.entries()) {
        const found = new Uint8Array(length);
        code.reconstruct(index, present, found);
        assert.deepEqual(found, wanted);
      }
    }),
    { numRuns: 300 },
  );
});

test("with one parity shard the parity is the XOR of the data", () => {
  const code = new ReedSolomon(2, 1);
  const parity = new Uint8Array(3);
  code.encode([Uint8Array.of(1, 2, 3), Uint8Array.of(4, 4, 255)], [parity]);
  assert.deepEqual([...parity], [5, 6, 252]);
});

test("too few shards are refused", () => {
  const code = new ReedSolomon(3, 2);
  const present = new Map([[0, new Uint8Array(1)]]);
  assert.throws(() => code.reconstruct(1, present, new Uint8Array(1)), /too few shards/);
});
