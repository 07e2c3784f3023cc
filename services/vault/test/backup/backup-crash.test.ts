// Backups and restores of a service that is killed.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { checkRepository, FolderStorage, Repository } from "@platform/kernel/backup";
import { waitFor } from "@platform/testing/wait";
import { fill, listVersions, VERSIONED, waitForJob } from "../job/rig.ts";
import { callJson } from "../serving/json-api.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { back, restore, start } from "./rig.ts";

/** Kills of the service under each job. */
const KILLS = Number(process.env["VAULT_BACKUP_KILLS"] ?? 5);
const KEYS = Math.max(400, KILLS * 40);

let root: string;
let backups: string;
let serving: Serving;
before(async () => {
  root = mkdtempSync(join(tmpdir(), "vault-backups-"));
  backups = join(root, "backups");
  mkdirSync(backups);
  serving = await serve({ env: { PLATFORM_VAULT_BACKUP_DIR: backups } });
  const { s3 } = serving;
  await s3.must("PUT", "/source");
  await s3.must("PUT", "/source?versioning", { body: VERSIONED });
  const keys = Array.from({ length: KEYS }, (_, number) => `k${number % (KEYS / 2)}`);
  await fill(s3, "source", keys, (key) => key.repeat(key.endsWith("7") ? 20_000 : 20));
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  rmSync(root, { recursive: true, force: true });
});

async function killDuring(job: string): Promise<void> {
  const { vault } = serving;
  for (let kill = 0; kill < KILLS; kill += 1) {
    await wait(20 + ((kill * 67) % 400));
    await vault.kill();
    await vault.start();
  }
  const ended = await waitForJob(serving, job);
  assert.equal(ended.state, "completed", ended.reason ?? "");
}

function list(folder: string): string[] {
  return readdirSync(folder).filter((name) => name !== "lock");
}

test("a backup that is killed ends whole, and leaves nothing behind", async () => {
  const { s3, vault } = serving;
  const id = await start(serving, "/admin/backup", { repository: { path: "r" } });
  await killDuring(id);
  await s3.must("PUT", "/source/later", { body: "later" });
  await back(serving);
  const storage = new FolderStorage(join(backups, "r"));
  const dataFormats = { oldest: 1, newest: 1_000 };
  const repository = await Repository.open({ storage, service: "vault", dataFormats });
  const { problems, unused } = await checkRepository(repository, {});
  assert.deepEqual([problems, unused], [[], 0]);
  assert.deepEqual(list(join(backups, "r", "tmp")), []);
  assert.deepEqual(
    list(vault.dataDir).filter((name) => name.startsWith("index-backup")),
    [],
  );
});

test("a restore that is killed continues: every version is there once, and nothing else", async () => {
  const { s3, vault } = serving;
  const body = { repository: { path: "r" }, as: { source: "restored" } };
  const id = await start(serving, "/admin/backup/restore", body);
  await killDuring(id);
  assert.deepEqual(await listVersions(s3, "restored"), await listVersions(s3, "source"));
  assert.equal((await s3.must("GET", "/restored/k7")).text, "k7".repeat(20_000));
  await waitFor(() => list(join(vault.dataDir, "restoring")).length === 0, "nothing is staged");
});

test("a restore that is cancelled leaves no bucket, and its name is free", async () => {
  const { s3, vault } = serving;
  const body = { repository: { path: "r" }, as: { source: "cancelled" } };
  const id = await start(serving, "/admin/backup/restore", body);
  await callJson(serving, "PATCH", `/admin/batch/${id}`, { state: "cancelled" });
  assert.equal((await waitForJob(serving, id)).state, "cancelled");
  assert.equal((await s3.send("HEAD", "/cancelled")).status, 404);
  await vault.stop();
  await vault.start();
  await waitFor(() => list(join(vault.dataDir, "restoring")).length === 0, "nothing is staged");
  const again = await restore(serving, { as: { source: "cancelled" } });
  assert.equal(again.state, "completed", again.reason ?? "");
});
