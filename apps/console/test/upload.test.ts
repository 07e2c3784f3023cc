// Uploads: the plan of parts, and the digests by which a resumed upload is compared with the chosen file.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { hashMd5 } from "../src/storage/upload/md5.ts";
import { planParts } from "../src/storage/upload/parts.ts";

const MIB = 1024 * 1024;

test("MD5 is that of the platform, at the edges of blocks and strides", async () => {
  const sizes = [
    0,
    1,
    55,
    56,
    63,
    64,
    65,
    119,
    120,
    128,
    1_000,
    2 * MIB - 1,
    2 * MIB,
    2 * MIB + 65,
  ];
  for (const size of sizes) {
    const bytes = randomBytes(size);
    const expected = createHash("md5").update(bytes).digest("hex");
    assert.equal(await hashMd5(new Blob([bytes])), expected, `${size} bytes`);
  }
});

test("parts cover a file without gaps, within the limits of storage", () => {
  for (const size of [0, 1, 16 * MIB, 16 * MIB + 1, 33 * MIB, 80_000 * MIB, 5_000_000 * MIB]) {
    const parts = planParts(size);
    assert.equal(parts[0]?.start, 0);
    assert.equal(parts.at(-1)?.end, size);
    assert.ok(parts.length <= 10_000, `${parts.length} parts`);
    assert.ok(parts.slice(1).every(({ start }, index) => start === parts[index]!.end));
    const before = parts.slice(0, -1);
    assert.ok(
      before.every(({ start, end }) => end - start >= 5 * MIB && end - start <= 5_120 * MIB),
    );
  }
  assert.throws(() => planParts(60_000_000 * MIB), RangeError);
});
