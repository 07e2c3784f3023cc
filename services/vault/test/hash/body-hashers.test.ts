// Hashers as uploads use them: on this thread and on others, many in parallel, with scarce memory.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, describe, test } from "node:test";
import { BodyHashers } from "../../src/hash/body-hashers.ts";
import type { BodyHasher } from "../../src/hash/body-hasher.ts";
import { computeChecksum } from "../../src/hash/checksum.ts";
import { StoreError } from "../../src/model/store-error.ts";
import type { ChecksumAlgorithm } from "../../src/model/object.ts";

const MIB = 1024 * 1024;
const RANDOM = randomBytes(6 * MIB);
const ALGORITHMS = ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"] as const;

async function send(hasher: BodyHasher, body: Buffer, chunkBytes: number): Promise<void> {
  // The same buffer each time, overwritten like that of a connection.
  const chunk = Buffer.alloc(chunkBytes);
  for (let at = 0; at < body.length; at += chunkBytes) {
    const bytes = body.copy(chunk, 0, at, at + chunkBytes);
    const waiting = hasher.update(chunk.subarray(0, bytes));
    chunk.fill(0xee);
    await waiting;
  }
}

async function check(
  hashers: BodyHashers,
  body: Buffer,
  options: { chunkBytes?: number; algorithms?: readonly ChecksumAlgorithm[] } = {},
): Promise<void> {
  const { chunkBytes = 65_536, algorithms = ["CRC64NVME"] } = options;
  const hasher = hashers.begin(body.length, algorithms);
  await send(hasher, body, chunkBytes);
  const { bytes, md5, checksums } = await hasher.digest();
  assert.equal(bytes, body.length);
  assert.deepEqual(md5, createHash("md5").update(body).digest());
  assert.deepEqual(
    checksums,
    Object.fromEntries(algorithms.map((name) => [name, computeChecksum(name, body)])),
  );
}

// A slot is freed with the last frame of its body.
async function retry<T>(work: () => T | Promise<T>): Promise<T> {
  for (const end = Date.now() + 20_000; ;) {
    try {
      return await work();
    } catch (error) {
      const isBusy = error instanceof StoreError && error.code === "SlowDown";
      if (!isBusy || Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
}

function beginAll(hashers: BodyHashers, count: number, bytes: number): BodyHasher[] {
  const begun: BodyHasher[] = [];
  try {
    while (begun.length < count) begun.push(hashers.begin(bytes, ["SHA1"]));
    return begun;
  } catch (error) {
    for (const hasher of begun) hasher.forget();
    throw error;
  }
}

describe("hashers of bodies", () => {
  const hashers = new BodyHashers();
  after(() => hashers.close());

  for (const bytes of [0, 1, 4_096, 100_001, 524_288, 524_289, 3 * MIB, 5 * MIB + 77]) {
    test(`compute all digests of ${bytes} bytes, in chunks of any size`, async () => {
      const body = RANDOM.subarray(0, bytes);
      await check(hashers, body, { algorithms: ALGORITHMS });
      await check(hashers, body, { algorithms: ALGORITHMS, chunkBytes: 7_777 });
      await check(hashers, body, { algorithms: [], chunkBytes: MIB });
    });
  }

  test("keep parallel bodies apart, each with its own checksums", async () => {
    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        check(hashers, RANDOM.subarray(index, index + 300_000 + 97_003 * (index % 23)), {
          algorithms: index % 3 === 0 ? ["SHA256"] : ["CRC64NVME"],
          chunkBytes: 10_000 + 9_001 * (index % 7),
        }),
      ),
    );
  });
});

describe("hashers of bodies with little memory", () => {
  test("continue while many bodies stall with a partly filled frame", async () => {
    const hashers = new BodyHashers({ threads: 1, frames: 2 });
    const slow = Array.from({ length: 20 }, (_, index) => ({
      body: RANDOM.subarray(0, 2 * MIB + index),
      hasher: hashers.begin(2 * MIB + index, ["CRC64NVME"]),
    }));
    for (const { body, hasher } of slow) await hasher.update(body.subarray(0, 1_000));
    await check(hashers, RANDOM);
    await Promise.all(slow.map(({ body, hasher }) => send(hasher, body.subarray(1_000), 50_000)));
    for (const { body, hasher } of slow) {
      const { md5 } = await hasher.digest();
      assert.deepEqual(md5, createHash("md5").update(body).digest());
    }
    await hashers.close();
  });

  test("refuse one body above the limit, and accept it when another has ended", async () => {
    const hashers = new BodyHashers({ bodiesMax: 3, threads: 1 });
    const [small, large, done] = [10, MIB, 10].map((bytes) => hashers.begin(bytes, []));
    assert.throws(() => hashers.begin(10, []), { code: "SlowDown" });
    await large!.update(RANDOM.subarray(0, 400_000));
    large!.forget();
    small!.forget();
    await done!.digest();
    await check(hashers, RANDOM.subarray(0, 100));
    await retry(() => check(hashers, RANDOM));
    await hashers.close();
  });

  test("leave nothing behind of bodies that are dropped at any moment", async () => {
    const hashers = new BodyHashers({ bodiesMax: 8, frames: 3, threads: 1 });
    for (let round = 0; round < 30; round += 1) {
      const given = await retry(() => beginAll(hashers, 7, 4 * MIB));
      const sending = given.map((hasher) => send(hasher, RANDOM.subarray(0, 3 * MIB), 200_000));
      await retry(() => check(hashers, RANDOM.subarray(0, 700_000)));
      const digests = given.slice(0, 2).map((hasher) => hasher.digest());
      for (const hasher of given) hasher.forget();
      await Promise.allSettled([...sending, ...digests]);
    }
    await hashers.close();
  });
});

describe("hashers of bodies whose thread ends", () => {
  test("reject, and the next body has a new thread", async () => {
    const hashers = new BodyHashers({ threads: 1 });
    const hasher = hashers.begin(MIB, []);
    await hasher.update(RANDOM.subarray(0, 600_000));
    await hashers.close();
    await assert.rejects(async () => {
      await hasher.update(RANDOM.subarray(0, MIB - 600_000));
      await hasher.digest();
    }, /hash thread has ended/);
    await check(hashers, RANDOM);
    await hashers.close();
  });
});
