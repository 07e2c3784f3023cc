// Backups of a running store under continuous writes: objects, keys and encrypted bodies after a restore.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { fetchBackup, receiveBackup } from "@platform/kernel/backup";
import { makeBytes } from "../store/fixture.ts";
import { S3TestClient, type Key } from "./s3-client.ts";
import { serve } from "./serving.ts";

const PROGRAM = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const token = "a-token-for-backups-only";
const SIZES = [700, 60_000, 1_500_000];

function run(dataDir: string, ...words: string[]): Promise<{ code: number; text: string }> {
  const env = { PATH: process.env["PATH"], PLATFORM_VAULT_DATA_DIR: dataDir };
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

  const acknowledged = new Map<string, Buffer>();
  const over = new AbortController();
  const write = async (lane: number): Promise<void> => {
    for (let number = 0; !over.signal.aborted; number += 1) {
      const name = `${lane}/${number}`;
      const body = makeBytes(SIZES[number % SIZES.length]!, lane * 1_000 + number + 1);
      const headers = number % 5 === 0 ? { "x-amz-server-side-encryption": "AES256" } : {};
      await s3.must("PUT", `/photos/${name}`, { body, headers });
      if (number % 4 === 3) await s3.must("DELETE", `/photos/${name}`);
      else acknowledged.set(name, body);
    }
  };
  const writers = [1, 2, 3].map(write);
  const deadlineMs = Date.now() + 30_000;
  while (acknowledged.size < 40 && Date.now() < deadlineMs) await sleep(10);
  const before = new Map(acknowledged);
  const folder = join(vault.dataDir, "..", "backup");
  const { stream } = await fetchBackup({ url: vault.adminUrl, token });
  const manifest = await receiveBackup({ folder, service: "vault" }, stream);
  assert.ok(acknowledged.size > before.size, "writes continued");
  over.abort();
  await Promise.all(writers);
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
  for (const [name, body] of before) {
    const answer = await client.send("GET", `/photos/${name}`);
    assert.equal(answer.status, 200, `${name}: ${answer.text.slice(0, 200)}`);
    assert.ok(answer.body.equals(body), name);
  }
  client.close();
  assert.ok(manifest.files.length > 2);
});
