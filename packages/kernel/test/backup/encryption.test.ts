// Encrypted backups: round trips, wrong passphrases, tampering.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import fc from "fast-check";
import {
  BackupKey,
  readPassphrase,
  restoreBackup,
  verifyBackup,
  writeBackup,
} from "@platform/kernel/backup";

const passphrase = "correct horse battery staple";
const source = { service: "demo", dataFormats: { oldest: 1, newest: 1 } };
const contents = { small: Buffer.from("secret"), large: randomBytes(2_500_000) };

async function makeBackup(t: TestContext) {
  const base = mkdtempSync(join(tmpdir(), "platform-encrypted-"));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const folder = join(base, "backup");
  writeFileSync(join(base, "small"), contents.small);
  writeFileSync(join(base, "large"), contents.large);
  const key = await BackupKey.create(passphrase);
  await writeBackup(
    { folder, service: "demo", version: "1", dataFormat: 1, nowMs: 0, key },
    async (target) => {
      await target.addFile("small", join(base, "small"));
      await target.addFile("large", join(base, "large"));
      return null;
    },
  );
  return { base, folder, target: join(base, "restored") };
}

test("an encrypted backup contains no plain text and is restored with its passphrase", async (t) => {
  const { folder, target } = await makeBackup(t);
  assert.ok(!readFileSync(join(folder, "data/small")).includes("secret"));
  // Without the passphrase its checksums can be verified, for copies on other machines.
  await verifyBackup({ folder, ...source });
  await assert.rejects(restoreBackup({ folder, target, ...source }), /a passphrase is required/);
  await assert.rejects(
    restoreBackup({ folder, target, ...source, passphrase: `${passphrase}!` }),
    /the passphrase is wrong/,
  );
  await restoreBackup({ folder, target, ...source, passphrase });
  assert.deepEqual(readFileSync(join(target, "small")), contents.small);
  assert.deepEqual(readFileSync(join(target, "large")), contents.large);
});

test("changes by someone without the passphrase are found, also with valid checksums", async (t) => {
  const { folder, target } = await makeBackup(t);
  const path = join(folder, "backup.json");
  const { manifest_sha256: _, ...manifest } = JSON.parse(readFileSync(path, "utf8"));
  manifest.files.pop();
  rmSync(join(folder, "data/large"));
  const hash = createHash("sha256").update(JSON.stringify(manifest)).digest("hex");
  writeFileSync(path, JSON.stringify({ ...manifest, manifest_sha256: hash }));
  await verifyBackup({ folder, ...source });
  await assert.rejects(
    restoreBackup({ folder, target, ...source, passphrase }),
    /changed by someone without the passphrase/,
  );
});

test("any contents in any pieces are decrypted to the same bytes", async () => {
  const key = await BackupKey.create(passphrase);
  const sizes = fc.constantFrom(0, 1, 1024 * 1024 - 1, 1024 * 1024, 1024 * 1024 + 1, 3_000_000);
  const property = fc.asyncProperty(
    sizes,
    fc.integer({ min: 5_000, max: 700_000 }),
    async (size, cut) => {
      const bytes = randomBytes(size);
      const stored = Buffer.concat(await collect(key.encrypt("a", pieces(bytes, cut))));
      assert.equal(stored.length, 24 + size + 16 * Math.max(1, Math.ceil(size / 1024 / 1024)));
      const opened = Buffer.concat(await collect(key.decrypt("a", pieces(stored, cut + 1))));
      assert.ok(opened.equals(bytes));
    },
  );
  await fc.assert(property, { numRuns: 20 });
});

test("flipped, cut, reordered and exchanged files cannot be decrypted", async () => {
  const key = await BackupKey.create(passphrase);
  const bytes = randomBytes(2 * 1024 * 1024);
  const stored = Buffer.concat(await collect(key.encrypt("a", pieces(bytes, 100_000))));
  const piece = 1024 * 1024 + 16;
  const flipped = Buffer.from(stored);
  flipped[100]! ^= 1;
  const swapped = Buffer.concat([
    stored.subarray(0, 24),
    stored.subarray(24 + piece),
    stored.subarray(24, 24 + piece),
  ]);
  const damages: [string, Buffer, string][] = [
    ["a flipped bit", flipped, "a"],
    ["a missing last piece", stored.subarray(0, 24 + piece), "a"],
    ["exchanged pieces", swapped, "a"],
    ["the path of another file", stored, "b"],
    ["no contents", Buffer.alloc(0), "a"],
    ["only a head", stored.subarray(0, 24), "a"],
    ["a cut head", stored.subarray(0, 20), "a"],
    ["another magic", Buffer.concat([Buffer.from("X"), stored.subarray(1)]), "a"],
  ];
  for (const [name, damaged, path] of damages) {
    await assert.rejects(
      collect(key.decrypt(path, pieces(damaged, 300_000))),
      /cannot be decrypted/,
      name,
    );
  }
});

test("passphrases come from files, and short ones are refused", async (t) => {
  const base = mkdtempSync(join(tmpdir(), "platform-passphrase-"));
  t.after(() => rmSync(base, { recursive: true, force: true }));
  const file = join(base, "passphrase");
  writeFileSync(file, "  with spaces \r\n");
  assert.equal(await readPassphrase(file), "  with spaces ");
  writeFileSync(file, "\n");
  await assert.rejects(readPassphrase(file), /passphrase is empty/);
  await assert.rejects(readPassphrase(join(base, "none")), /passphrase file cannot be read/);
  await assert.rejects(BackupKey.create("elevenchars"), /at least 12 characters/);
});

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect(chunks: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const all: Buffer[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}
