// Seals of rows: a row does not match after any change.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { BlobRow, VersionRow } from "../../src/index/records.ts";
import { sealBlob, sealVersion } from "../../src/index/seal.ts";

const VERSION: VersionRow = {
  bucket: 1,
  key: Buffer.from("some/key"),
  seq: 100_017,
  version: "null",
  size: 4_096,
  etag: "d41d8cd98f00b204e9800998ecf8427e",
  modified: 1_790_000_000_123,
  blob: 2 ** 33 + 7,
  class: "STANDARD",
  checksum: "CRC64NVME:F:yqOWAqsAAAA=",
  owner: '{"id":"0123456789","displayName":"owner"}',
  tags: '{"one":"ä€😀"}',
  retain_mode: null,
  retain_until: null,
  hold: 0,
  detail: '{"headers":{"contentType":"text/plain"}}',
};
// 64 KiB minus 32 bytes are hashed at a time.
const SIZES = [
  0, 1, 3, 31, 32, 33, 63, 64, 65, 95, 96, 100, 4_096, 65_503, 65_504, 65_505, 140_001,
];

function makeBlob(data: Uint8Array | null): BlobRow {
  return {
    id: 2 ** 33 + 7,
    kind: "inline",
    size: 10,
    stored: 10,
    segment: null,
    position: null,
    extent: 10,
    cipher: null,
    data,
  };
}

const value = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double(),
  fc.string({ unit: "binary", maxLength: 80 }),
  fc.uint8Array({ maxLength: 80 }),
  fc.constant(null),
);

test("a seal changes with each column, whatever its new value", () => {
  const seal = sealVersion(VERSION);
  const columns = fc.constantFrom(...(Object.keys(VERSION) as (keyof VersionRow)[]));
  fc.assert(
    fc.property(columns, value, (column, changed) => {
      const before = VERSION[column];
      fc.pre(!Object.is(before, changed));
      assert.notEqual(sealVersion({ ...VERSION, [column]: changed }), seal, column);
      assert.equal(sealVersion({ ...VERSION }), seal);
    }),
    { numRuns: 2_000 },
  );
});

test("values that are equal as text or as null are distinguished", () => {
  const alike: unknown[] = [
    0,
    1,
    1.5,
    "",
    "0",
    "1",
    null,
    "null",
    new Uint8Array(0),
    Buffer.from("1"),
  ];
  const seals = alike.map((size) => sealVersion({ ...VERSION, size: size as number }));
  assert.equal(new Set(seals).size, alike.length);
});

test("a seal changes with each bit of a body, at each size", () => {
  for (const size of SIZES) {
    const data = Buffer.alloc(size, "some body");
    const seal = sealBlob(makeBlob(data));
    // Bytes that followed it before do not count.
    sealBlob(makeBlob(Buffer.alloc(size + 40, 0xff)));
    assert.equal(sealBlob(makeBlob(Buffer.from(data))), seal, `${size} bytes`);
    const step = Math.max(1, Math.floor(size / 97));
    for (let at = 0; at < size; at += step) {
      for (const place of new Set([at, size - 1 - at])) {
        for (let bit = 0; bit < 8; bit += 1) {
          data[place]! ^= 1 << bit;
          assert.notEqual(sealBlob(makeBlob(data)), seal, `${size} bytes, bit ${bit} of ${place}`);
          data[place]! ^= 1 << bit;
        }
      }
    }
    const longer = Buffer.concat([data, Buffer.alloc(1)]);
    assert.notEqual(sealBlob(makeBlob(longer)), seal, `a zero after ${size} bytes`);
  }
  assert.notEqual(sealBlob(makeBlob(null)), sealBlob(makeBlob(new Uint8Array(0))));
});

test("swapped ranges of a body are detected", () => {
  const data = Buffer.from(
    Array.from({ length: 4_096 }, (_, at) => Math.imul(at, 0x9e3779b1) >>> 24),
  );
  const seal = sealBlob(makeBlob(data));
  for (const bytes of [1, 8, 32, 512, 2_048]) {
    const swapped = Buffer.concat([
      data.subarray(bytes, 2 * bytes),
      data.subarray(0, bytes),
      data.subarray(2 * bytes),
    ]);
    assert.notEqual(Buffer.compare(swapped, data), 0);
    assert.notEqual(sealBlob(makeBlob(swapped)), seal, `${bytes} bytes`);
  }
});
