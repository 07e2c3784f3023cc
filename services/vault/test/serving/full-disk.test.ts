// A disk that is really full: a file system of 48 MiB in memory.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fillDisk, mountSmallDisk } from "@platform/testing/disks";
import { serve } from "./serving.ts";

const MIB = 1024 * 1024;
const SIZES = [1_000, 100_000, 2 * MIB];
/** Consecutive refusals after which the disk counts as full. */
const REFUSALS = 12;
test("on a full disk puts are refused, reads continue, and after kill -9 exactly the acknowledged objects are present", async (t) => {
  const folder = mountSmallDisk(t, { mib: 48 });
  // Anywhere else it would fill the disk of the machine.
  if (folder === undefined) return t.skip("a file system cannot be mounted here");
  const env = { PLATFORM_VAULT_DISK_RESERVE: "0", PLATFORM_VAULT_ENABLE_AUDIT: "false" };
  const ballast = join(folder, "ballast");
  writeFileSync(ballast, Buffer.alloc(6 * MIB));
  await using serving = await serve({ folder, env });
  const { s3, vault } = serving;
  await s3.must("PUT", "/full");
  const acknowledged = new Map<string, string>();
  const refused = new Map<string, number>();
  for (let number = 0, inARow = 0; inARow < REFUSALS; number += 1) {
    const body = randomBytes(SIZES[number % SIZES.length]!);
    const key = `/full/${number}`;
    const answer = await s3.send("PUT", key, { body });
    if (answer.status === 200) {
      inARow = 0;
      acknowledged.set(key, createHash("sha256").update(body).digest("hex"));
      continue;
    }
    inARow += 1;
    assert.ok([503, 507].includes(answer.status), `${answer.status} ${answer.text}`);
    assert.match(answer.text, /<Message>.{20,}<\/Message>/);
    refused.set(key, answer.status);
  }
  t.diagnostic(`${acknowledged.size} puts succeeded; refused: ${[...refused.values()].join(" ")}`);
  assert.ok(acknowledged.size > 10);
  const checkAll = async () => {
    for (const [key, hash] of acknowledged) {
      const { body } = await s3.must("GET", key);
      assert.equal(createHash("sha256").update(body).digest("hex"), hash, key);
    }
    for (const key of refused.keys()) assert.equal((await s3.send("GET", key)).status, 404, key);
  };
  await checkAll();
  await vault.kill();
  rmSync(ballast);
  await vault.start();
  await checkAll();
  const [first] = acknowledged.keys();
  await s3.must("DELETE", first!);
  await s3.must("PUT", "/full/again", { body: "there is room" });
});

test("an index with a log is opened on a disk that is full to its last byte", async (t) => {
  const folder = mountSmallDisk(t, { mib: 48 });
  if (folder === undefined) return t.skip("a file system cannot be mounted here");
  const env = { PLATFORM_VAULT_DISK_RESERVE: "0", PLATFORM_VAULT_ENABLE_AUDIT: "false" };
  await using serving = await serve({ folder, env });
  const { s3, vault } = serving;
  await s3.must("PUT", "/kept");
  await s3.must("PUT", "/kept/a", { body: "a" });
  // Its log stays: a clean stop would empty it.
  await vault.kill();
  fillDisk(join(folder, "ballast"));
  await vault.start();
  assert.equal((await s3.must("GET", "/kept/a")).text, "a");
  await s3.must("DELETE", "/kept/a");
});

test("where only the reserve is left, puts are refused with 507; reading and deleting go on", async () => {
  const env = { PLATFORM_VAULT_ENABLE_AUDIT: "false" };
  await using serving = await serve({ env });
  const { s3, vault } = serving;
  await s3.must("PUT", "/kept");
  await s3.must("PUT", "/kept/a", { body: "a" });
  await s3.must("PUT", "/kept/b", { body: "b" });
  await vault.stop();
  await vault.start({ PLATFORM_VAULT_DISK_RESERVE: String(2 ** 50) });
  for (const size of SIZES) {
    const answer = await s3.send("PUT", "/kept/c", { body: Buffer.alloc(size) });
    assert.deepEqual([answer.status, answer.code], [507, "InsufficientStorage"]);
  }
  assert.equal((await s3.must("GET", "/kept/a")).text, "a");
  await s3.must("DELETE", "/kept/b");
  const listed = await s3.must("GET", "/kept?list-type=2");
  assert.match(listed.text, /<KeyCount>1<\/KeyCount>.*<Key>a<\/Key>/);
});
