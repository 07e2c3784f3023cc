// A store that was restored from a backup beside the one that was backed up: neither deletes what the other uses.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { fetchBackup, receiveBackup } from "@platform/kernel/backup";
import { LyingS3 } from "@platform/testing/lying-s3";
import { StagedVault, vaultRoot } from "@platform/testing/staged-vault";
import { waitFor } from "@platform/testing/wait";
import { callJson, readJson } from "../serving/json-api.ts";
import { S3TestClient } from "../serving/s3-client.ts";
import { serve } from "../serving/serving.ts";
import { makeBytes, makeFolder } from "../store/fixture.ts";

const PROGRAM = fileURLToPath(new URL("../../../../bin/platform-vaultd.js", import.meta.url));
const token = "a-token-for-backups-only";
const BODY = makeBytes(300_000);

function runTool(dataDir: string, ...words: string[]) {
  const env = { ...process.env, PLATFORM_VAULT_DATA_DIR: dataDir };
  return promisify(execFile)(process.execPath, [PROGRAM, ...words], { env });
}

test("a restored store reads the moved bytes, deletes none of them, and adopts them on command", async (context) => {
  const root = makeFolder(context);
  await using remote = await LyingS3.start();
  await using serving = await serve({ env: { PLATFORM_VAULT_BACKUP_TOKEN: token } });
  const { s3, vault } = serving;
  const body = { name: "far", endpoint: remote.endpoint, access_key: "a", secret_key: "s" };
  await readJson(callJson(serving, "POST", "/admin/remotes", body), 201);
  await s3.must("PUT", "/photos");
  const tier = { days: 0, remote: "far", bucket: "cold", minimum_size: 0 };
  await s3.must("PUT", "/photos?cold-tier", { body: JSON.stringify(tier) });
  for (const key of ["a", "b"]) await s3.must("PUT", `/photos/${key}`, { body: BODY });
  await s3.must("POST", "/photos?cold-tier&sweep");
  const list = (): string[] => remote.keys("cold").filter((key) => !key.endsWith("store.json"));
  assert.equal(list().length, 2);
  const { stream } = await fetchBackup({ url: vault.adminUrl, token });
  const folder = join(root, "backup");
  await receiveBackup({ folder, service: "vault" }, stream);

  await runTool(join(root, "other", "data"), "restore", folder);
  const other = await StagedVault.start({ folder: join(root, "other") });
  const client = new S3TestClient(other.port, vaultRoot);
  assert.ok((await client.must("GET", "/photos/a")).body.equals(BODY));
  await client.must("DELETE", "/photos/a");
  await client.must("PUT", "/photos/c", { body: BODY });
  await client.must("POST", "/photos?cold-tier&sweep");
  assert.equal(list().length, 3, "its own key is under another id");
  await client.must("DELETE", "/photos/c");
  await waitFor(() => list().length === 2, "the deletion of its own key");
  assert.ok((await s3.must("GET", "/photos/a")).body.equals(BODY), "the first store still has it");

  await other.stop();
  const { stdout } = await runTool(join(root, "other", "data"), "adopt-tier");
  assert.match(stdout, /^adopted the keys of the store [0-9a-f]{32}$/m);
  await vault.stop();
  await other.start();
  await client.must("DELETE", "/photos/b");
  await waitFor(() => list().length === 1, "the deletion of an adopted key");
  client.close();
  await other[Symbol.asyncDispose]();
});
