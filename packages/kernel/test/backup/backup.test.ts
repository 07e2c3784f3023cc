// Backups: writing, restoring, rejected input.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import {
  BackupError,
  formatCount,
  restoreBackup,
  verifyBackup,
  writeBackup,
  type BackupManifest,
} from "@platform/kernel/backup";

const service = "demo";
const dataFormats = { oldest: 1, newest: 2 };
const sample = { small: Buffer.from("hello"), large: Buffer.alloc(2_500_000, "abc") };

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "platform-backup-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "small.txt"), sample.small);
  writeFileSync(join(folder, "large.bin"), sample.large);
  return folder;
}

function write(base: string, folder = join(base, "backup"), dataFormat = 2) {
  const options = { folder, service, version: "1.2.3", dataFormat, nowMs: 1_000 };
  return writeBackup(options, async (target) => {
    await target.expect(sample.small.length + sample.large.length);
    await target.addFile("small.txt", join(base, "small.txt"));
    await target.addFile("deep/er/large.bin", join(base, "large.bin"));
    return { upTo: 42 };
  });
}

function restore(base: string, source: Partial<{ service: string }> = {}) {
  const target = join(base, "restored");
  return restoreBackup({ folder: join(base, "backup"), target, service, dataFormats, ...source });
}

function editManifest(base: string, change: (manifest: BackupManifest) => void): void {
  const path = join(base, "backup", "backup.json");
  const { manifest_sha256: _, ...manifest } = JSON.parse(readFileSync(path, "utf8"));
  change(manifest);
  const hash = createHash("sha256").update(JSON.stringify(manifest)).digest("hex");
  writeFileSync(path, JSON.stringify({ ...manifest, manifest_sha256: hash }));
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

test("a restored folder has identical files, readable only by their owner", async (t) => {
  const base = makeFolder(t);
  const manifest = await write(base);
  assert.deepEqual(manifest.mark, { upTo: 42 });
  assert.deepEqual(
    manifest.files.map(({ path, size }) => [path, size]),
    [
      ["small.txt", 5],
      ["deep/er/large.bin", 2_500_000],
    ],
  );
  assert.deepEqual(
    await verifyBackup({ folder: join(base, "backup"), service, dataFormats }),
    manifest,
  );
  assert.deepEqual(await restore(base), manifest);
  assert.deepEqual(readFileSync(join(base, "restored/small.txt")), sample.small);
  assert.deepEqual(readFileSync(join(base, "restored/deep/er/large.bin")), sample.large);
  for (const path of ["backup", "backup/data/deep", "restored", "restored/deep/er"]) {
    assert.equal(modeOf(join(base, path)), 0o700, path);
  }
  for (const path of ["backup/backup.json", "backup/data/small.txt", "restored/small.txt"]) {
    assert.equal(modeOf(join(base, path)), 0o600, path);
  }
  assert.deepEqual(readdirSync(base).sort(), ["backup", "large.bin", "restored", "small.txt"]);
});

test("a file is backed up to the requested length, and a shorter one is rejected", async (t) => {
  const base = makeFolder(t);
  const source = join(base, "small.txt");
  const part = (name: string, length: number) => {
    const options = { service, version: "1", dataFormat: 2, nowMs: 0, folder: join(base, name) };
    return writeBackup(options, async (target) => {
      await target.addFile("part", source, length);
      return null;
    });
  };
  assert.equal((await part("cut", 2)).files[0]?.size, 2);
  assert.equal(readFileSync(join(base, "cut/data/part"), "utf8"), "he");
  await assert.rejects(part("long", 6), /small\.txt has 5 bytes, expected 6/);
  assert.equal(existsSync(join(base, "long")), false);
});

const damages: [name: string, damage: (backup: string) => void, message: RegExp][] = [
  ["a missing file", (b) => rmSync(join(b, "data/small.txt")), /small\.txt: missing/],
  ["a longer file", (b) => appendFileSync(join(b, "data/small.txt"), "!"), /small\.txt: more than/],
  [
    "a shorter file",
    (b) => writeFileSync(join(b, "data/small.txt"), "hell"),
    /small\.txt: 4 bytes, expected 5/,
  ],
  [
    "a changed file",
    (b) => writeFileSync(join(b, "data/small.txt"), "hellO"),
    /small\.txt: does not match its checksum/,
  ],
  ["an extra file", (b) => writeFileSync(join(b, "data/more"), ""), /data\/more: not listed/],
  [
    "a link in place of a file",
    (b) => {
      renameSync(join(b, "data/small.txt"), join(b, "../other"));
      symlinkSync("../../other", join(b, "data/small.txt"));
    },
    /small\.txt: neither a file nor a folder/,
  ],
  ["a missing manifest", (b) => rmSync(join(b, "backup.json")), /has no backup\.json/],
  [
    "a manifest cut short",
    (b) =>
      writeFileSync(join(b, "backup.json"), readFileSync(join(b, "backup.json")).subarray(0, -9)),
    /backup\.json: not JSON/,
  ],
  [
    "a changed mark",
    (b) =>
      writeFileSync(
        join(b, "backup.json"),
        readFileSync(join(b, "backup.json"), "utf8").replace("42", "43"),
      ),
    /backup\.json: the manifest does not match its checksum/,
  ],
];

for (const [name, damage, message] of damages) {
  test(`a backup with ${name} is rejected and nothing is restored`, async (t) => {
    const base = makeFolder(t);
    await write(base);
    damage(join(base, "backup"));
    const folder = join(base, "backup");
    await assert.rejects(verifyBackup({ folder, service, dataFormats }), message);
    await assert.rejects(restore(base), message);
    assert.deepEqual(
      readdirSync(base).filter((entry) => entry.startsWith("restored")),
      [],
    );
  });
}

const paths = ["../out", "/etc/x", "a/../../out", "a//b", "./a", "", "a\\..\\b", "c:x", "a\0b"];
for (const path of paths) {
  test(`a manifest with the path ${JSON.stringify(path)} is rejected`, async (t) => {
    const base = makeFolder(t);
    await write(base);
    editManifest(base, ({ files }) => void (files[0]!.path = path));
    await assert.rejects(restore(base), { name: "BackupError", message: /backup\.json: path / });
    assert.equal(existsSync(join(base, "restored")), false);
  });
}

test("backups of another service, format or data format are rejected with the reason", async (t) => {
  const base = makeFolder(t);
  await write(base);
  await assert.rejects(restore(base, { service: "other" }), /is a backup of demo, not of other/);
  editManifest(base, (manifest) => void (manifest.data_format = 3));
  await assert.rejects(restore(base), /demo 1\.2\.3 with data format 3; this version reads 1 to 2/);
  editManifest(base, (manifest) => void Object.assign(manifest, { format: 3 }));
  await assert.rejects(restore(base), /backup format 3; this version reads formats 1 and 2/);
});

test("counts have the right plural", () => {
  const counts = [0, 1, 14].map((count) => formatCount(count, "file"));
  assert.deepEqual(counts, ["0 files", "1 file", "14 files"]);
  assert.equal(formatCount(2, "entry", "entries"), "2 entries");
});

test("non-empty folders are never written to", async (t) => {
  const base = makeFolder(t);
  await write(base);
  await assert.rejects(write(base), /backup is not empty/);
  mkdirSync(join(base, "restored"));
  writeFileSync(join(base, "restored/mine"), "");
  await assert.rejects(restore(base), /restored is not empty/);
  rmSync(join(base, "restored/mine"));
  await restore(base);
});

test("a failed check undoes a restore; insufficient space is detected before copying", async (t) => {
  const base = makeFolder(t);
  await write(base);
  const check = () => Promise.reject(new Error("not whole"));
  const folder = join(base, "backup");
  const target = join(base, "restored");
  const restoring = restoreBackup({ folder, target, service, dataFormats, check });
  await assert.rejects(restoring, /not whole/);
  const options = { service, version: "1", dataFormat: 1, nowMs: 0, folder: join(base, "huge") };
  const huge = writeBackup(options, async (into) => {
    await into.expect(2 ** 60);
    return null;
  });
  await assert.rejects(huge, /bytes free, but \d+ bytes are needed/);
  assert.deepEqual(readdirSync(base).sort(), ["backup", "large.bin", "small.txt"]);
});

test("a killed backup or restore leaves no folder that looks complete", async (t) => {
  const base = makeFolder(t);
  await write(base);
  const killHalfway = async (...words: string[]) => {
    const program = join(import.meta.dirname, "interrupted.ts");
    const child = spawn(process.execPath, [program, ...words], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    t.after(() => child.kill("SIGKILL"));
    await once(child.stdout, "data");
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  editManifest(base, (manifest) => void (manifest.data_format = 1));
  await killHalfway("backup", join(base, "second"), join(base, "small.txt"));
  await killHalfway("restore", join(base, "backup"), join(base, "restored"));
  assert.equal(existsSync(join(base, "second")), false);
  assert.equal(existsSync(join(base, "restored")), false);
  const [partial] = readdirSync(base).filter((name) => name.startsWith("second.partial-"));
  assert.ok(partial !== undefined);
  const folder = join(base, partial);
  await assert.rejects(verifyBackup({ folder, service, dataFormats }), BackupError);
  await restore(base);
  assert.deepEqual(readFileSync(join(base, "restored/small.txt")), sample.small);
});
