import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatHttpDate, TimestampFormatter } from "../../../src/s3/wire/timestamp.ts";

test("a timestamp of a listing equals that of Date, regardless of the previous one", () => {
  const time = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31, 23, 59, 59, 999) });
  const neighbours = fc.tuple(time, fc.integer({ min: 0, max: 90_000_000 }));
  fc.assert(
    fc.property(fc.array(neighbours, { maxLength: 20 }), (pairs) => {
      const timestamps = new TimestampFormatter();
      for (const timeMs of pairs.flatMap(([first, later]) => [first, first + later, first])) {
        assert.equal(timestamps.format(timeMs), new Date(timeMs).toISOString());
      }
    }),
  );
});

test("a date of a header equals that of Date, regardless of the previous one", () => {
  for (const timeMs of [0, 999, 1_000, 1_001, 0, Date.UTC(2026, 11, 31, 23, 59, 59, 999)])
    assert.equal(formatHttpDate(timeMs), new Date(timeMs).toUTCString());
});
