// Record batches: encoding, decoding, validation.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import {
  BATCH_HEADER_BYTES,
  crc32c,
  crc32cTable,
  decodeBatch,
  decodePlainBatch,
  encodeBatch,
  encodeKept,
  isBatchIntact,
  pickRecords,
  readBatchHeader,
  sealBatch,
  splitBatches,
  stampBatch,
  validateBatch,
  type NewRecord,
} from "../../src/batch/index.ts";
import { LogError } from "../../src/index.ts";

const anyBytes = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
const anyNullable = fc.option(anyBytes, { nil: null });
const anyRecord: fc.Arbitrary<NewRecord> = fc.record(
  {
    key: anyNullable,
    value: anyNullable,
    headers: fc.array(
      fc.record(
        { key: fc.string({ maxLength: 10 }), value: anyNullable },
        { noNullPrototype: true },
      ),
      { maxLength: 3 },
    ),
    timestamp: fc.integer({ min: 0, max: 2 ** 44 }),
  },
  { noNullPrototype: true },
);

function isLogError(code: string) {
  return (error: unknown) => error instanceof LogError && error.code === code;
}

/** Replaces the record section of a plain batch with `section` and sets another compression. */
function recompress(batch: Buffer, compression: number, section: Buffer): Buffer {
  const { bytes: _bytes, ...header } = readBatchHeader(batch)!;
  const out = Buffer.concat([batch.subarray(0, BATCH_HEADER_BYTES), section]);
  sealBatch(out, { ...header, attributes: compression });
  return out;
}

test("a batch decodes to the records that were encoded, at consecutive offsets", () => {
  fc.assert(
    fc.property(
      fc.array(anyRecord, { minLength: 1, maxLength: 20 }),
      fc.nat(2 ** 40),
      (records, baseOffset) => {
        const batch = encodeBatch(records, { baseOffset, producerId: 7, baseSequence: 3 });
        const { header, records: decoded } = decodePlainBatch(batch)!;
        assert.equal(header.recordCount, records.length);
        assert.equal(header.producerId, 7);
        assert.equal(header.maxTimestamp, Math.max(...records.map((r) => r.timestamp)));
        const expected = records.map((record, at) => ({ ...record, offset: baseOffset + at }));
        assert.deepEqual(decoded, expected);
        validateBatch(batch, batch.length);
      },
    ),
  );
});

test("base offset and leader epoch are stamped without touching the checksum", () => {
  const batch = encodeBatch([{ key: null, value: Buffer.from("v"), headers: [], timestamp: 5 }]);
  stampBatch(batch, 2 ** 41 + 3, 9);
  validateBatch(batch, 1_000);
  const header = readBatchHeader(batch)!;
  assert.equal(header.baseOffset, 2 ** 41 + 3);
  assert.equal(header.leaderEpoch, 9);
});

test("flipping any byte covered by the checksum is detected", () => {
  const batch = encodeBatch([
    { key: Buffer.from("k"), value: Buffer.from("value"), headers: [], timestamp: 5 },
  ]);
  for (let at = 8; at < batch.length; at++) {
    if (at >= 12 && at < 16) continue;
    const broken = Buffer.from(batch);
    broken[at] = broken[at]! ^ 0x20;
    assert.throws(() => validateBatch(broken, 1_000), isLogError("invalid-batch"), `byte ${at}`);
    if (at > 20) assert.equal(isBatchIntact(broken), false);
  }
});

test("a record count that disagrees with the last offset delta is rejected despite a valid checksum", () => {
  const batch = encodeBatch([{ key: null, value: null, headers: [], timestamp: 0 }]);
  const { bytes: _bytes, ...header } = readBatchHeader(batch)!;
  for (const change of [{ recordCount: 2 }, { lastOffsetDelta: 1 }, { recordCount: 0 }]) {
    const lying = Buffer.from(batch);
    sealBatch(lying, { ...header, ...change });
    assert.throws(() => validateBatch(lying, 1_000), isLogError("invalid-batch"));
  }
});

test("a batch at the size bound passes, one more byte does not", () => {
  const batch = encodeBatch([{ key: null, value: Buffer.alloc(500), headers: [], timestamp: 0 }]);
  validateBatch(batch, batch.length);
  assert.throws(() => validateBatch(batch, batch.length - 1), isLogError("too-large"));
});

test("arbitrary bytes with a valid checksum decode to records or fail as invalid-batch", async () => {
  const batch = encodeBatch([{ key: null, value: null, headers: [], timestamp: 0 }]);
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 200 }),
      fc.integer({ min: 0, max: 4 }),
      fc.integer({ min: -2, max: 2 ** 31 - 1 }),
      async (section, compression, recordCount) => {
        const { bytes: _bytes, ...header } = readBatchHeader(batch)!;
        const forged = Buffer.concat([batch.subarray(0, BATCH_HEADER_BYTES), section]);
        sealBatch(forged, { ...header, attributes: compression, recordCount });
        try {
          await decodeBatch(forged, 10_000);
        } catch (error) {
          const codes = ["invalid-batch", "too-large"];
          assert.ok(error instanceof LogError && codes.includes(error.code), String(error));
        }
      },
    ),
    { numRuns: 400 },
  );
});

test("gzip and zstd batches decode up to the size bound", async () => {
  const records = [{ key: null, value: Buffer.alloc(5_000, 1), headers: [], timestamp: 1 }];
  const plain = encodeBatch(records);
  const section = plain.subarray(BATCH_HEADER_BYTES);
  const packed = { 1: gzipSync(section), 4: zstdCompressSync(section) };
  for (const [compression, bytes] of Object.entries(packed)) {
    const batch = recompress(plain, Number(compression), bytes);
    assert.equal(decodePlainBatch(batch), undefined);
    const decoded = await decodeBatch(batch, section.length);
    assert.deepEqual(decoded.records[0]!.value, records[0]!.value);
    await assert.rejects(decodeBatch(batch, section.length - 1), isLogError("too-large"));
  }
});

test("snappy batches decode, raw and in the framing of snappy-java", async () => {
  const records = [
    { key: null, value: Buffer.from("snappysnappysnappy"), headers: [], timestamp: 1 },
  ];
  const plain = encodeBatch(records);
  const section = plain.subarray(BATCH_HEADER_BYTES);
  // One literal of the first 13 bytes up to the end of the first "snappy", a copy of the rest.
  const start = section.indexOf("snappy");
  const literal = section.subarray(0, start + 6);
  const raw = Buffer.concat([
    Buffer.from([section.length, (literal.length - 1) << 2]),
    literal,
    Buffer.from([((12 - 1) << 2) | 2, 6, 0]),
    Buffer.from([0]),
    section.subarray(start + 18),
  ]);
  const framed = Buffer.concat([
    Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
    Buffer.from([0, 0, 0, raw.length]),
    raw,
  ]);
  for (const bytes of [raw, framed]) {
    const decoded = await decodeBatch(recompress(plain, 2, bytes));
    assert.deepEqual(decoded.records[0]!.value, records[0]!.value);
  }
  await assert.rejects(decodeBatch(recompress(plain, 2, raw), 10), isLogError("too-large"));
  const cut = recompress(plain, 2, raw.subarray(0, raw.length - 2));
  await assert.rejects(decodeBatch(cut), isLogError("invalid-batch"));
});

test("lz4 frames decode, with stored and with compressed blocks", async () => {
  const records = [{ key: null, value: Buffer.from("lz4lz4lz4lz4lz4"), headers: [], timestamp: 1 }];
  const plain = encodeBatch(records);
  const section = plain.subarray(BATCH_HEADER_BYTES);
  const head = Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]);
  const end = Buffer.alloc(4);
  const stored = Buffer.alloc(4);
  stored.writeUInt32LE((section.length | 0x80000000) >>> 0);
  const start = section.indexOf("lz4");
  const literals = section.subarray(0, start + 3);
  const rest = section.subarray(start + 15);
  const block = Buffer.concat([
    Buffer.from([(literals.length << 4) | (12 - 4)]),
    literals,
    Buffer.from([3, 0, rest.length << 4]),
    rest,
  ]);
  const size = Buffer.alloc(4);
  size.writeUInt32LE(block.length);
  for (const body of [
    [stored, section],
    [size, block],
  ]) {
    const decoded = await decodeBatch(recompress(plain, 3, Buffer.concat([head, ...body, end])));
    assert.deepEqual(decoded.records[0]!.value, records[0]!.value);
  }
  const frame = Buffer.concat([head, size, block, end]);
  await assert.rejects(decodeBatch(recompress(plain, 3, frame), 10), isLogError("too-large"));
});

test("compaction keeps a batch's offsets, times and producer", () => {
  const records = [1, 2, 3].map((n) => ({
    key: Buffer.from(`k${n}`),
    value: Buffer.from(`v${n}`),
    headers: [],
    timestamp: 100 * n,
  }));
  const batch = encodeBatch(records, {
    baseOffset: 40,
    producerId: 5,
    producerEpoch: 2,
    baseSequence: 9,
    leaderEpoch: 3,
  });
  const original = decodePlainBatch(batch)!;
  const kept = encodeKept(original.header, [original.records[1]!]);
  const { header, records: left } = decodePlainBatch(kept)!;
  assert.ok(isBatchIntact(kept));
  assert.deepEqual(
    { ...header, bytes: 0, recordCount: 0 },
    { ...original.header, bytes: 0, recordCount: 0 },
  );
  assert.deepEqual(left, [original.records[1]]);
});

test("concatenated batches are split, and an incomplete last one is left out", () => {
  const one = encodeBatch([{ key: null, value: Buffer.from("1"), headers: [], timestamp: 0 }]);
  const two = encodeBatch([{ key: null, value: Buffer.from("22"), headers: [], timestamp: 0 }]);
  const split = [...splitBatches(Buffer.concat([one, two, one.subarray(0, 30)]))];
  assert.deepEqual(split, [one, two]);
});

test("the table CRC32C agrees with RFC 3720 and with the native implementation", () => {
  // RFC 3720, B.4: 32 bytes of zeroes, and 32 bytes counting up.
  assert.equal(crc32cTable(Buffer.alloc(32)), 0x8a9136aa);
  const counting = Buffer.from(Array.from({ length: 32 }, (_, n) => n));
  assert.equal(crc32cTable(counting), 0x46dd794e);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(100), (bytes, cut) => {
      assert.equal(crc32cTable(bytes), crc32c(bytes));
      const head = bytes.subarray(0, cut);
      assert.equal(crc32c(bytes.subarray(cut), crc32c(head)), crc32c(bytes));
      assert.equal(crc32cTable(bytes.subarray(cut), crc32cTable(head)), crc32c(bytes));
    }),
  );
});

test("picked records equal decoded ones and share no memory with the batch", () => {
  fc.assert(
    fc.property(
      fc.array(anyRecord, { minLength: 1, maxLength: 20 }),
      fc.nat(2 ** 40),
      fc.uniqueArray(fc.integer({ min: -2, max: 22 })),
      (records, baseOffset, deltas) => {
        const batch = encodeBatch(records, { baseOffset });
        const wanted = deltas.sort((a, b) => a - b).map((delta) => baseOffset + delta);
        const all = decodePlainBatch(batch)!.records;
        const picked = pickRecords(batch, Float64Array.from(wanted));
        const expected = all.filter(({ offset }) => wanted.includes(offset));
        assert.deepEqual(picked, expected);
        const copy = structuredClone(picked);
        batch.fill(0);
        assert.deepEqual(structuredClone(picked), copy);
      },
    ),
  );
  const plain = encodeBatch([{ key: null, value: null, headers: [], timestamp: 1 }]);
  const packed = recompress(plain, 1, gzipSync(plain.subarray(BATCH_HEADER_BYTES)));
  for (const batch of [packed, plain.subarray(0, 30)]) {
    assert.throws(() => pickRecords(batch, Float64Array.of(0)), isLogError("invalid-batch"));
  }
});
