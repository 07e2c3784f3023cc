// Hashing alone, in this process: the code that the service assembles itself, compared with OpenSSL and plain JavaScript.
import { createHash } from "node:crypto";
import { advanceCrc64, CRC64_START } from "../../../services/vault/src/hash/crc64.ts";
import {
  FRAME_BYTES,
  HashKernel,
  HashMemory,
} from "../../../services/vault/src/hash/hash-kernel.ts";
import { BLOCK_BYTES, LANES } from "../../../services/vault/src/hash/kernel-module.ts";
import type { BenchCase } from "../../harness/case.ts";
import { runRounds } from "../../harness/rounds.ts";
import type { Row } from "../../harness/report.ts";

const MIB = 2 ** 20;
const BODY_BYTES = 8 * MIB;
const FRAMES_PER_BODY = BODY_BYTES / FRAME_BYTES;
const BLOCKS_PER_FRAME = FRAME_BYTES / BLOCK_BYTES;
const ROUND_MS = 500;
const WITHOUT = "OpenSSL and a table in JavaScript";

interface Hasher {
  row: Row;
  /** Hashes `bodies` bodies. */
  bodies: number;
  run: () => void;
}

/** MD5 and CRC-64 of large bodies. */
export const hash: BenchCase = {
  name: "hash",
  title: "MD5 and CRC-64/NVME of 8 MiB, without a store",
  run: async (context) => {
    const hashers = listHashers();
    for (const { run } of hashers) run();
    await runRounds(context, hashers, measure, ({ msEach }) => `${msEach!.toFixed(1)} ms per body`);
    return {
      work: "Both digests of bodies of 8 MiB in memory, on one thread; the columns show the time per body.",
      columns: [{ key: "msEach", title: "ms per body", digits: 1 }],
      rows: hashers.map(({ row }) => row),
      ratioColumns: ["msEach"],
      goals: [{ column: "msEach", against: WITHOUT, atMost: 1 }],
    };
  },
};

function listHashers(): Hasher[] {
  const memory = new HashMemory(LANES, LANES);
  const kernel = new HashKernel(memory);
  kernel.prepare();
  for (let frame = 0; frame < LANES; frame += 1) memory.viewFrame(frame).fill(frame + 1);
  const body = memory.viewFrame(0).subarray(0, FRAME_BYTES);
  return [
    describeHasher("four bodies in parallel", LANES, () => hashWide(memory, kernel)),
    describeHasher("one body", 1, () => hashOne(memory, kernel)),
    describeHasher(WITHOUT, 1, () => hashWithout(body)),
  ];
}

function describeHasher(name: string, bodies: number, run: () => void): Hasher {
  const row: Row = { name, isOurs: name !== WITHOUT, version: "", rounds: [] };
  return { row, bodies, run };
}

function hashWide(memory: HashMemory, kernel: HashKernel): void {
  const runs = Array.from({ length: LANES }, (_, slot) => ({ slot, at: memory.locateFrame(slot) }));
  for (const { slot } of runs) kernel.start(slot);
  for (let frame = 0; frame < FRAMES_PER_BODY; frame += 1) {
    kernel.runWide(runs, BLOCKS_PER_FRAME, true);
  }
}

function hashOne(memory: HashMemory, kernel: HashKernel): void {
  kernel.start(0);
  for (let frame = 0; frame < FRAMES_PER_BODY; frame += 1) {
    kernel.run(0, memory.locateFrame(0), BLOCKS_PER_FRAME, true);
  }
}

function hashWithout(frame: Buffer): void {
  const md5 = createHash("md5");
  let crc = CRC64_START;
  for (let count = 0; count < FRAMES_PER_BODY; count += 1) {
    md5.update(frame);
    crc = advanceCrc64(crc, frame);
  }
  md5.digest();
}

function measure({ bodies, run }: Hasher): Promise<{ msEach: number }> {
  const begun = performance.now();
  let count = 0;
  while (performance.now() - begun < ROUND_MS) {
    run();
    count += bodies;
  }
  return Promise.resolve({ msEach: (performance.now() - begun) / count });
}
