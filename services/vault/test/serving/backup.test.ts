// Backups of a running store under continuous writes: objects, keys and encrypted bodies after a restore.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { fetchBackup, receiveBackup } from "@platform/kernel/backup";
import { waitFor } from "@platform/testing/wait";
import { makeBytes } from "../store/fixture.ts";
import { S3TestClient, type Key } from "./s3-client.ts";
import { serve } from "./serving.ts";

const PROGRAM = fileURLToPath(new URL("../../../../bin/platform-vaultd.js", import.meta.url));
const token = "a-token-for-backups-only";
const SIZES = [700, 60_000, 1_500_000];

function run(dataDir: string, ...words: string[]): Promise<{ code: number; text: string }> {
  return runWith({}, dataDir, ...words);
}

function runWith(
  more: Readonly<Record<string, string>>,
  dataDir: string,
  ...words: string[]
): Promise<{ code: number; text: string }> {
  const env = {
    PATH: process.env["PATH"],
    NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
    PLATFORM_FORM: process.env["PLATFORM_FORM"],
    PLATFORM_VAULT_DATA_DIR: dataDir,
    ...more,
  };
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, ...words], { env }, (error, stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), text: stdout + stderr });
    });
  });
}

test("every object acknowledged before a backup is restored byte for byte, with users, keys and encryption", async () => {
  await using serving = await serve({ env: { PLATFORM_VAULT_BACKUP_TOKEN: token } });
  const { vault, s3, admin } = serving;
  await s3.must("PUT", "/photos");
  const user = { policies: {}, namespaces: [] };
  await admin.must("PUT", "/api/v1/users/ada", {
    headers: { "content-type": "application/json" },
    body: JSON.stringify(user),
  });
  const made = await admin.send("POST", "/api/v1/keys", {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ user: "ada" }),
  });
  const { access_key: accessKey, secret_key: secretKey } = JSON.parse(made.text);
  const key: Key = { accessKey, secretKey };
  const policy = {
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Principal: { AWS: "arn:aws:iam::000000000001:user/ada" },
        Action: "s3:GetObject",
        Resource: "arn:aws:s3:::photos/*",
      },
    ],
  };
  await s3.must("PUT", "/photos?policy", { body: JSON.stringify(policy) });

  const writes = new Writes(s3);
  const before = await writes.waitFor(40);
  const folder = join(vault.dataDir, "..", "backup");
  const { stream } = await fetchBackup({ url: vault.adminUrl, token });
  const manifest = await receiveBackup({ folder, service: "vault" }, stream);
  assert.ok(writes.acknowledged.size > before.size, "writes continued");
  await writes.stop();
  await vault.stop();

  const refused = await run(vault.dataDir, "restore", folder);
  assert.match(refused.text, /data is not empty; move it away/);
  rmSync(vault.dataDir, { recursive: true });
  const path = join(folder, "backup.json");
  const text = readFileSync(path, "utf8");
  rmSync(path);
  const half = await run(vault.dataDir, "restore", folder);
  assert.match(half.text, /has no backup\.json: not a backup, or an incomplete one/);
  writeFileSync(path, text);
  assert.equal(existsSync(vault.dataDir), false);
  const restored = await run(vault.dataDir, "restore", folder);
  assert.equal(restored.code, 0, restored.text);
  const checked = await run(vault.dataDir, "fsck");
  assert.equal(checked.code, 0, checked.text);
  assert.match(checked.text, /every row is intact/);

  await vault.start();
  const client = new S3TestClient(vault.port, key);
  await requireObjects(client, before);
  client.close();
  assert.ok(manifest.files.length > 2);
});

for (const pulled of [undefined, 1]) {
  const state = pulled === undefined ? "four drives" : "four drives, one of which is pulled";
  test(`a store on ${state} is saved under continuous writes, and restored to new drives`, async () => {
    const root = mkdtempSync(join(tmpdir(), "vault-drives-"));
    const makeDrives = (name: string): string[] => {
      const folders = [0, 1, 2, 3].map((slot) => join(root, `${name}-${slot}`));
      for (const folder of folders) mkdirSync(folder);
      return folders;
    };
    const name = (drives: readonly string[]): Record<string, string> => ({
      PLATFORM_VAULT_DRIVES: drives.join(","),
      PLATFORM_VAULT_DRIVE_PARITY: "2",
    });
    const first = makeDrives("first");
    const backupToken = { PLATFORM_VAULT_BACKUP_TOKEN: token };
    await using serving = await serve({ env: { ...backupToken, ...name(first) }, folder: root });
    const { vault } = serving;
    const { s3, admin } = serving;
    await s3.must("PUT", "/photos");
    const writes = new Writes(s3);
    await writes.waitFor(8);
    if (pulled !== undefined) {
      renameSync(first[pulled]!, join(root, "pulled"));
      await waitForDrive(admin, pulled, "absent");
    }
    const before = await writes.waitFor(writes.acknowledged.size + 8);
    const folder = join(root, "backup");
    const { stream } = await fetchBackup({ url: vault.adminUrl, token });
    await receiveBackup({ folder, service: "vault" }, stream);
    await writes.stop();
    await vault.stop();
    for (const path of [vault.dataDir, ...first]) rmSync(path, { recursive: true, force: true });

    const second = makeDrives("second");
    const without = await run(vault.dataDir, "restore", folder);
    assert.match(without.text, /of a store on 4 drives, of which 2 may be lost: set drives/);
    writeFileSync(join(second[3]!, "other"), "");
    const used = await runWith(name(second), vault.dataDir, "restore", folder);
    assert.match(used.text, /second-3 must exist and be empty/);
    rmSync(join(second[3]!, "other"));
    const damaged = join(folder, "data", "drives", "0", "drive.json");
    const text = readFileSync(damaged, "utf8");
    writeFileSync(damaged, text.replace("1", "2"));
    const refused = await runWith(name(second), vault.dataDir, "restore", folder);
    assert.match(refused.text, /drives\/0\/drive\.json: does not match its checksum/);
    assert.deepEqual(
      second.map((drive) => readdirSync(drive)),
      [[], [], [], []],
    );
    writeFileSync(damaged, text);
    const restored = await runWith(name(second), vault.dataDir, "restore", folder);
    assert.equal(restored.code, 0, restored.text);
    const checked = await runWith(name(second), vault.dataDir, "fsck");
    if (pulled === undefined) assert.equal(checked.code, 0, checked.text);

    await vault.start(name(second));
    await waitForDrive(admin, pulled ?? 0, "present");
    await requireObjects(s3, before);
    // As redundant as before: two drives may be lost.
    for (const slot of [2, 3]) {
      renameSync(second[slot]!, join(root, `lost-${slot}`));
      await waitForDrive(admin, slot, "absent");
    }
    await requireObjects(s3, before);
    await vault.stop();
    rmSync(root, { recursive: true });
  });
}

async function waitForDrive(admin: S3TestClient, slot: number, state: string): Promise<void> {
  await waitFor(async () => {
    const { text } = await admin.send("GET", "/api/v1/drives");
    const { drives } = JSON.parse(text) as { drives: { slot: number; state: string }[] };
    return drives.some((drive) => drive.slot === slot && drive.state === state);
  }, `drive ${slot} is ${state}`);
}

/** Between two writes of a client, so that a slow backup does not make a large store. */
const PAUSE_MS = 20;

/** Clients that write all the time, and remember what was acknowledged and not deleted. */
class Writes {
  readonly acknowledged = new Map<string, Buffer>();
  readonly #s3: S3TestClient;
  readonly #over = new AbortController();
  readonly #running: Promise<void>[];

  constructor(s3: S3TestClient) {
    this.#s3 = s3;
    this.#running = [1, 2, 3].map((lane) => this.#write(lane));
  }

  /** A copy of what is acknowledged, when it is so many objects at least. */
  async waitFor(count: number): Promise<Map<string, Buffer>> {
    const deadlineMs = Date.now() + 30_000;
    while (this.acknowledged.size < count && Date.now() < deadlineMs) await sleep(10);
    return new Map(this.acknowledged);
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#running);
  }

  async #write(lane: number): Promise<void> {
    for (let number = 0; !this.#over.signal.aborted; number += 1) {
      const name = `${lane}/${number}`;
      const body = makeBytes(SIZES[number % SIZES.length]!, lane * 1_000 + number + 1);
      const headers = number % 5 === 0 ? { "x-amz-server-side-encryption": "AES256" } : {};
      await this.#s3.must("PUT", `/photos/${name}`, { body, headers });
      if (number % 4 === 3) await this.#s3.must("DELETE", `/photos/${name}`);
      else this.acknowledged.set(name, body);
      await sleep(PAUSE_MS);
    }
  }
}

async function requireObjects(
  client: S3TestClient,
  objects: ReadonlyMap<string, Buffer>,
): Promise<void> {
  for (const [name, body] of objects) {
    const answer = await client.send("GET", `/photos/${name}`);
    assert.equal(answer.status, 200, `${name}: ${answer.text.slice(0, 200)}`);
    assert.ok(answer.body.equals(body), name);
  }
}
