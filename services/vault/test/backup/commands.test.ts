// Repositories on the command line: a stopped store is backed up, checked and restored.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { makeBytes } from "../store/fixture.ts";
import { serve, type Serving } from "../serving/serving.ts";

const PROGRAM = fileURLToPath(new URL("../../../../bin/platform-vaultd.js", import.meta.url));

type Run = (...words: string[]) => Promise<{ code: number; text: string }>;

function prepare(dataDir: string, more: Readonly<Record<string, string>> = {}): Run {
  const env = {
    PATH: process.env["PATH"],
    NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
    PLATFORM_FORM: process.env["PLATFORM_FORM"],
    PLATFORM_VAULT_DATA_DIR: dataDir,
    ...more,
  };
  return (...words) =>
    new Promise((resolve) => {
      execFile(process.execPath, [PROGRAM, ...words], { env }, (error, stdout, stderr) => {
        resolve({ code: Number(error?.code ?? 0), text: stdout + stderr });
      });
    });
}

function measureFolder(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

const SIZES = [400, 9_000, 40_000, 300_000, 1_200_000];
const COUNT = 300;

function makeBody(number: number, edition: number): Buffer {
  return makeBytes(SIZES[number % SIZES.length]!, number + edition * 10_000);
}

async function fill({ s3 }: Serving, edition: number, numbers: number[]): Promise<void> {
  for (const number of numbers) {
    await s3.must("PUT", `/kept/k${number}`, { body: makeBody(number, edition) });
  }
}

test("a stopped store is backed up again with little more, checked, and restored to any snapshot", async () => {
  await using serving = await serve();
  const { vault, s3 } = serving;
  const run = prepare(vault.dataDir);
  const folder = join(vault.dataDir, "..", "repository");
  await s3.must("PUT", "/kept");
  await fill(
    serving,
    0,
    Array.from({ length: COUNT }, (_, number) => number),
  );
  const held = await run("backup", folder);
  assert.equal(held.code, 1);
  assert.match(held.text, /another process has the store open/);
  await vault.stop();
  const first = await run("backup", folder);
  assert.equal(first.code, 0, first.text);
  const size = measureFolder(folder);

  await vault.start();
  await fill(serving, 1, [50, 101, 202]);
  await vault.stop();
  const second = await run("backup", folder);
  assert.equal(second.code, 0, second.text);
  const grown = measureFolder(folder) - size;
  assert.ok(grown <= 0.03 * size, `1 % of the objects were changed, ${grown} of ${size} written`);

  const checked = await run("repository", "check", folder);
  assert.equal(checked.code, 0, checked.text);
  assert.match(checked.text, /everything is intact/);
  const ids = Array.from(checked.text.matchAll(/snapshot (\S+)/g), ([, id]) => id!);
  assert.equal(ids.length, 2);

  for (const [index, id] of ids.entries()) {
    rmSync(vault.dataDir, { recursive: true });
    const restored = await run("restore", folder, "--snapshot", id);
    assert.equal(restored.code, 0, restored.text);
    assert.equal((await run("fsck")).code, 0);
    await vault.start();
    for (const number of [0, 50, 101, 299]) {
      const edition = index === 1 && number !== 0 && number !== 299 ? 1 : 0;
      const { body } = await s3.must("GET", `/kept/k${number}`);
      assert.deepEqual(body, makeBody(number, edition), `k${number} of ${id}`);
    }
    await vault.stop();
  }
  const object = readdirSync(join(folder, "data"), { recursive: true, withFileTypes: true }).find(
    (entry) => entry.isFile(),
  )!;
  const path = join(object.parentPath, object.name);
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1]! ^= 4;
  writeFileSync(path, bytes);
  const damaged = await run("repository", "check", folder);
  assert.equal(damaged.code, 1);
  assert.match(damaged.text, /does not match its checksum/);
  const nowhere = await run("restore", join(folder, "data"));
  assert.match(nowhere.text, /has no backup\.json/);
});

test("a store on four drives is restored from an encrypted repository", async () => {
  const root = mkdtempSync(join(tmpdir(), "vault-repository-"));
  const drives = [0, 1, 2, 3].map((slot) => join(root, `drive-${slot}`));
  for (const drive of drives) mkdirSync(drive);
  const env = {
    PLATFORM_VAULT_DRIVES: drives.join(","),
    PLATFORM_VAULT_DRIVE_PARITY: "2",
  };
  await using serving = await serve({ env, folder: root });
  const { vault, s3 } = serving;
  await s3.must("PUT", "/kept");
  await fill(serving, 0, [0, 1, 2, 3, 4]);
  await vault.stop();
  const folder = join(vault.dataDir, "..", "repository");
  const secret = join(vault.dataDir, "..", "passphrase");
  writeFileSync(secret, "a passphrase of a test\n");
  const run = prepare(vault.dataDir, env);
  const saved = await run("backup", folder, "--passphrase-file", secret);
  assert.equal(saved.code, 0, saved.text);
  for (const drive of drives) {
    rmSync(drive, { recursive: true });
    mkdirSync(drive);
  }
  rmSync(vault.dataDir, { recursive: true });
  const without = await run("restore", folder);
  assert.match(without.text, /is encrypted: a passphrase is required/);
  const dry = await run("restore", folder, "--dry-run", "--passphrase-file", secret);
  assert.match(dry.text, /is intact/);
  const restored = await run("restore", folder, "--passphrase-file", secret);
  assert.equal(restored.code, 0, restored.text);
  await vault.start();
  for (const number of [0, 4]) {
    const { body } = await s3.must("GET", `/kept/k${number}`);
    assert.deepEqual(body, makeBody(number, 0));
  }
  await vault.stop();
  rmSync(root, { recursive: true });
});
