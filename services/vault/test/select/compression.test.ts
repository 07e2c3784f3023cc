// Compressed objects, and ranges of objects.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { constants, gzipSync, zstdCompressSync } from "node:zlib";
import { decompress } from "../../src/select/input/decompress.ts";
import type { SelectError } from "../../src/select/language/fault.ts";
import { ask, askRows, askWithStats, CSV, DOCUMENT, LINES, TO_CSV } from "./rig.ts";

const ALL = "SELECT * FROM S3Object";
const NONE = { ...CSV, header: "NONE" } as const;

const numbers = `n\n${Array.from({ length: 100_000 }, (_, n) => `${n}\n`).join("")}`;
const sum = "SELECT SUM(n) AS s FROM S3Object";
const total = [{ s: 4_999_950_000 }];
const PACKED: Record<"GZIP" | "ZSTD" | "BZIP2", (text: string) => Buffer> = {
  GZIP: (text) => gzipSync(text),
  ZSTD: (text) => zstdCompressSync(text, { params: { [constants.ZSTD_c_checksumFlag]: 1 } }),
  BZIP2: (text) => execFileSync("bzip2", ["-c"], { input: text, maxBuffer: 1e8 }),
};
for (const [name, pack] of Object.entries(PACKED)) {
  const compression = name as keyof typeof PACKED;
  test(`${name}: whole, in pieces, and several streams after each other`, async () => {
    const packed = pack(numbers);
    for (const pieceBytes of [1_000_000, 977]) {
      assert.deepEqual(await askRows(sum, { data: packed, compression, pieceBytes }), total);
    }
    const two = Buffer.concat([pack("n\n1\n"), pack("2\n")]);
    assert.deepEqual(await askRows(sum, { data: two, compression }), [{ s: 3 }]);
    const { stats } = await askWithStats(sum, { data: packed, compression });
    assert.equal(stats.scannedBytes, packed.length);
    assert.equal(stats.processedBytes, numbers.length);
  });

  test(`${name}: truncated and damaged bytes are TruncatedInput`, async () => {
    const packed = pack(numbers);
    const cut = packed.subarray(0, packed.length - 20);
    await assert.rejects(askRows(sum, { data: cut, compression }), { code: "TruncatedInput" });
    const damaged = Buffer.from(packed);
    const middle = Math.floor(packed.length / 2);
    damaged.fill(0xff, middle, middle + 64);
    await assert.rejects(askRows(sum, { data: damaged, compression }), (error: SelectError) =>
      ["TruncatedInput", "InvalidTextEncoding"].includes(error.code),
    );
    await assert.rejects(askRows(sum, { data: "n\n1\n", compression }), {
      code: "TruncatedInput",
    });
  });
}

test("a window of zstd of more than 128 MiB is refused", async () => {
  // A frame with a window descriptor of 2 GiB (RFC 8878 section 3.1.1.1.2), and an empty raw block.
  const frame = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3, 0x01, 0x00, 0x00]);
  await assert.rejects(ask(ALL, { data: frame, compression: "ZSTD" }), {
    code: "TruncatedInput",
  });
});

test("an object that grows to more than a thousand times its size ends after 1 GiB", async () => {
  const frame = zstdCompressSync(Buffer.alloc(64 * 1024 * 1024, "1,2\n"));
  async function* read(count: number): AsyncGenerator<Buffer, void, undefined> {
    for (let n = 0; n < count; n += 1) yield frame;
  }
  let bytes = 0;
  const grow = async (): Promise<void> => {
    for await (const piece of decompress("ZSTD", read(18))) bytes += piece.length;
  };
  await assert.rejects(grow(), { code: "QueryLimitExceeded" });
  assert.ok(bytes <= 1024 ** 3 && bytes > 0.99 * 1024 ** 3, `${bytes} bytes`);
});

test("bzip2 of any text, with long runs", async () => {
  const text = `${"a".repeat(1_000)}\n${"ab".repeat(300_000)}\n${"c".repeat(259)}`;
  const packed = PACKED.BZIP2(text);
  const found = await ask(ALL, {
    data: packed,
    compression: "BZIP2",
    input: NONE,
    output: TO_CSV,
  });
  assert.equal(found, `${text}\n`);
});

const data = Array.from({ length: 500 }, (_, n) => `{"n":${n}}\n`).join("");
const csv = `n\n${Array.from({ length: 500 }, (_, n) => `${n}\n`).join("")}`;

test("ranges that cover an object cover each record once", async () => {
  for (const [text, input] of [
    [data, LINES],
    [csv, CSV],
    [`\ufeff${data}`, LINES],
  ] as const) {
    const size = Buffer.byteLength(text);
    for (const step of [1_000, 97, 10]) {
      const found: unknown[] = [];
      for (let start = 0; start < size; start += step) {
        const scanRange = { start, end: Math.min(start + step, size) - 1 };
        found.push(
          ...(await askRows("SELECT n FROM S3Object", {
            data: text,
            input,
            scanRange,
            pieceBytes: 64,
          })),
        );
      }
      assert.deepEqual(
        found.map((row) => Number((row as { n: unknown }).n)),
        Array.from({ length: 500 }, (_, n) => n),
        `${input.format} by ${step}`,
      );
    }
  }
});

test("the last bytes of an object are a range", async () => {
  const rows = await askRows("SELECT n FROM S3Object", { data: csv, scanRange: { suffix: 9 } });
  assert.deepEqual(rows, [{ n: "498" }, { n: "499" }]);
});

test("little more than the range is read", async () => {
  const large = data.repeat(200);
  const { stats } = await askWithStats("SELECT COUNT(*) FROM S3Object", {
    data: large,
    input: LINES,
    scanRange: { start: 1_000, end: 2_000 },
    pieceBytes: 1_024,
  });
  assert.ok(stats.scannedBytes < 5_000, String(stats.scannedBytes));
});

test("ranges are refused for documents, compressed objects and quoted record delimiters", async () => {
  const scanRange = { start: 0, end: 10 };
  for (const asked of [
    { input: DOCUMENT },
    { input: LINES, compression: "GZIP" },
    { input: { ...CSV, allowsQuotedRecordDelimiter: true } },
  ] as const)
    await assert.rejects(ask(ALL, { data, scanRange, ...asked }), {
      code: "UnsupportedScanRangeInput",
    });
  await assert.rejects(
    ask(ALL, { data, input: LINES, scanRange: { start: 1e9, end: undefined } }),
    { code: "InvalidScanRange" },
  );
});
