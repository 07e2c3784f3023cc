// Ranges of segment files that need no second verification for a while.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { VerifiedRanges } from "../../src/segment/verified-ranges.ts";

test("readers at several places of one file do not replace each other's ranges", () => {
  const ranges = new VerifiedRanges(() => 0);
  ranges.add("a", 0, 100);
  ranges.add("a", 1000, 1100);
  ranges.add("b", 500, 600);
  assert.ok(ranges.covers("a", 10, 100));
  assert.ok(ranges.covers("a", 1000, 1100));
  assert.ok(!ranges.covers("a", 500, 600));
  ranges.add("a", 100, 1000);
  assert.ok(ranges.covers("a", 0, 1100));
});

test("a range expires with the oldest part that was merged into it", () => {
  let nowMs = 0;
  const ranges = new VerifiedRanges(() => nowMs);
  ranges.add("a", 0, 100);
  nowMs = 200_000;
  ranges.add("a", 100, 200);
  ranges.add("a", 900, 1000);
  nowMs = 300_001;
  assert.ok(!ranges.covers("a", 150, 160));
  assert.ok(ranges.covers("a", 900, 1000));
});

test("only what was added is covered, whatever the order", () => {
  const spans = fc.array(fc.tuple(fc.nat(50), fc.integer({ min: 1, max: 20 })), { maxLength: 30 });
  fc.assert(
    fc.property(spans, (added) => {
      const ranges = new VerifiedRanges(() => 0);
      const bytes = new Set<number>();
      for (const [from, length] of added) {
        ranges.add("a", from, from + length);
        for (let at = from; at < from + length; at += 1) bytes.add(at);
      }
      for (let at = 0; at < 75; at += 1) {
        assert.equal(ranges.covers("a", at, at + 1), bytes.has(at), `byte ${at}`);
      }
    }),
  );
});

test("the number of ranges per file is bounded", () => {
  const ranges = new VerifiedRanges(() => 0);
  for (let at = 0; at < 65; at += 1) ranges.add("a", at * 100, at * 100 + 10 + at);
  assert.ok(!ranges.covers("a", 0, 10), "the shortest one is dropped");
  assert.ok(ranges.covers("a", 100, 111));
  assert.ok(ranges.covers("a", 6400, 6474));
});
