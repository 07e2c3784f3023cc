// The hashing code against OpenSSL's MD5 and the CRC's definition.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import fc from "fast-check";
import { computeChecksum } from "../../src/hash/checksum.ts";
import { formatCrc64 } from "../../src/hash/crc64.ts";
import { HashKernel, HashMemory } from "../../src/hash/hash-kernel.ts";

const MEMORY = new HashMemory(8, 5);
const KERNEL = new HashKernel(MEMORY);
KERNEL.prepare();

const md5 = (bytes: Buffer) => createHash("md5").update(bytes).digest();

function place(frame: number, bytes: Buffer): number {
  bytes.copy(MEMORY.viewFrame(frame));
  return MEMORY.locateFrame(frame);
}

describe("the hash kernel", () => {
  test("computes MD5 and CRC64NVME at each length around the ends of blocks", () => {
    for (let length = 0; length <= 260; length += 1) {
      const body = Buffer.from(Array.from({ length }, (_, index) => (index * 31 + length) & 0xff));
      const at = place(0, body);
      KERNEL.start(3);
      KERNEL.finish(3, at, length, length, true);
      assert.deepEqual(KERNEL.readMd5(3), md5(body), `MD5 of ${length} bytes`);
      assert.deepEqual(
        formatCrc64(KERNEL.readCrc64(3)),
        computeChecksum("CRC64NVME", body),
        `CRC64NVME of ${length} bytes`,
      );
    }
  });

  test("hashes two to four bodies in parallel as it does each of them alone", () => {
    const bodies = fc.array(fc.uint8Array({ minLength: 64, maxLength: 1_000 }), {
      minLength: 2,
      maxLength: 4,
    });
    const property = fc.property(bodies, fc.boolean(), (arrays, hasCrc) => {
      const all = arrays.map((array) => Buffer.from(array));
      const blocks = Math.min(...all.map((body) => Math.floor(body.length / 64)));
      const runs = all.map((body, slot) => ({ slot, at: place(slot, body) }));
      for (const { slot } of runs) KERNEL.start(slot);
      KERNEL.runWide(runs, blocks, hasCrc);
      for (const [slot, body] of all.entries()) {
        const done = blocks * 64;
        KERNEL.finish(slot, runs[slot]!.at + done, body.length - done, body.length, hasCrc);
        assert.deepEqual(KERNEL.readMd5(slot), md5(body));
        if (!hasCrc) continue;
        const crc = formatCrc64(KERNEL.readCrc64(slot));
        assert.deepEqual(crc, computeChecksum("CRC64NVME", body));
      }
    });
    fc.assert(property, { numRuns: 200 });
  });

  test("writes the length of a body of more than 512 MiB into all of its bits", () => {
    // The state after 2^29 + 64 zero bytes, by repeating one frame of zeros.
    MEMORY.viewFrame(0).fill(0);
    const at = MEMORY.locateFrame(0);
    const total = 2 ** 29 + 64;
    KERNEL.start(0);
    for (let done = 0; done < 2 ** 29; done += 262_144) KERNEL.run(0, at, 4_096, false);
    KERNEL.finish(0, at, 64, total, false);
    const expected = createHash("md5");
    const zeros = Buffer.alloc(2 ** 20);
    for (let done = 0; done < 2 ** 29; done += zeros.length) expected.update(zeros);
    assert.deepEqual(KERNEL.readMd5(0), expected.update(zeros.subarray(0, 64)).digest());
  });
});
