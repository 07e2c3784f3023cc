// Range fields and multipart/byteranges (RFC 9110 section 14).
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { layOutRanges, RANGES_MAX, readRanges } from "../../src/content/index.ts";

const SIZE = 10_000;
const cases: readonly [field: string, expected: string | undefined][] = [
  ["bytes=0-0", "0-1"],
  ["bytes=9999-", "9999-10000"],
  ["bytes=-1", "9999-10000"],
  ["bytes=-20000", "0-10000"],
  ["bytes=0-20000", "0-10000"],
  ["Bytes = 1-2 ", "1-3"],
  ["bytes=0-9, 500-509,-10", "0-10 500-510 9990-10000"],
  // The order is that of the request.
  ["bytes=500-509,0-9", "500-510 0-10"],
  // Ranges that overlap, or nearly touch, are one.
  ["bytes=0-9,5-20", "0-21"],
  ["bytes=0-9,50-59", "0-60"],
  ["bytes=500-509,0-9,505-600", "0-10 500-601"],
  ["bytes=0-,0-,0-", "0-10000"],
  // Those that are not satisfiable are left out.
  ["bytes=10000-,0-0", "0-1"],
  ["bytes=10000-", ""],
  ["bytes=-0", ""],
  ["bytes=,0-0,", "0-1"],
  ["bytes=", undefined],
  ["bytes=-", undefined],
  ["bytes=5-4", undefined],
  ["bytes=0-0,5-4", undefined],
  ["bytes=a-b", undefined],
  ["lines=0-1", undefined],
  ["bytes=1-2-3", undefined],
  ["bytes=+1-2", undefined],
];

const show = (field: string, size = SIZE): string | undefined =>
  readRanges(field, size)
    ?.map(({ start, end }) => `${start}-${end}`)
    .join(" ");

for (const [field, expected] of cases) {
  test(`Range ${field} selects ${expected ?? "everything, because it is ignored"}`, () => {
    assert.equal(show(field), expected);
  });
}

test("a field with too many ranges is ignored", () => {
  const list = (count: number): string =>
    `bytes=${Array.from({ length: count }, (_, at) => `${at * 200}-${at * 200}`).join()}`;
  assert.equal(readRanges(list(RANGES_MAX), SIZE)?.length, RANGES_MAX);
  assert.equal(readRanges(list(RANGES_MAX + 1), SIZE), undefined);
});

test("ranges of any request never repeat a byte", () => {
  const range = fc.tuple(fc.nat(12_000), fc.option(fc.nat(12_000)));
  fc.assert(
    fc.property(fc.array(range, { minLength: 1, maxLength: RANGES_MAX }), (parts) => {
      const text = parts.map(([first, last]) => `${first}-${last === null ? "" : first + last}`);
      const found = readRanges(`bytes=${text.join()}`, SIZE)!;
      const seen = new Uint8Array(SIZE);
      for (const { start, end } of found) {
        assert.ok(start < end && end <= SIZE);
        for (let at = start; at < end; at++) {
          assert.equal(seen[at], 0);
          seen[at] = 1;
        }
      }
      for (const [first, last] of parts) {
        const end = last === null ? SIZE : Math.min(SIZE, first + last + 1);
        for (let at = first; at < end; at++) assert.equal(seen[at], 1);
      }
    }),
  );
});

test("several ranges are the parts of a multipart body of the announced length", () => {
  const ranges = readRanges("bytes=0-1,500-502", SIZE)!;
  const { type, segments, length } = layOutRanges(ranges, SIZE, "text/plain");
  const boundary = /^multipart\/byteranges; boundary=([0-9a-f]{30})$/.exec(type)![1]!;
  const text = segments
    .map((one) => (Buffer.isBuffer(one) ? one.toString() : "x".repeat(one.end - one.start)))
    .join("");
  assert.equal(text.length, length);
  const part = (range: string, body: string): string =>
    `\r\n--${boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes ${range}/${SIZE}\r\n\r\n${body}`;
  assert.equal(text, `${part("0-1", "xx")}${part("500-502", "xxx")}\r\n--${boundary}--\r\n`);
});
