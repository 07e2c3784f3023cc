import assert from "node:assert/strict";
import { test } from "node:test";
import { mixesLookAlikes } from "../../src/names/index.ts";

test("words that mix scripts with similar letters are found", () => {
  for (const word of ["p\u0430ypal", "\u0391pple", "g\u0585ogle", "\u{10404}range"]) {
    assert.ok(mixesLookAlikes(word), word);
  }
});

test("words of one script, and scripts that are written together, are not", () => {
  for (const word of ["paypal", "москва", "ελλάδα", "東京Tower", "カラオケkaraoke", "", "42"]) {
    assert.ok(!mixesLookAlikes(word), word);
  }
});
