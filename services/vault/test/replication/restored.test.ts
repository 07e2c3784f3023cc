// A store that was restored from a backup: its rules wait while the other one may still send.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { fetchBackup, receiveBackup } from "@platform/kernel/backup";
import { StagedVault, vaultRoot } from "@platform/testing/staged-vault";
import { S3TestClient } from "../serving/s3-client.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { makeFolder } from "../store/fixture.ts";
import { addRemote, listVersions, makeBucket, readStates, replicate, settle } from "./stores.ts";

const PROGRAM = fileURLToPath(new URL("../../../../bin/platform-vaultd.js", import.meta.url));
const token = "a-token-for-backups-only";

test("a restored store keeps its rules, and sends nothing until they are put again, or it takes the place of the other one", async (context) => {
  const root = makeFolder(context);
  await using far = await serve();
  await using near = await serve({ env: { PLATFORM_VAULT_BACKUP_TOKEN: token } });
  await addRemote(near, "far", far.vault.url);
  for (const bucket of ["one", "two"]) {
    await makeBucket(near, bucket);
    await makeBucket(far, bucket);
    await replicate(near, bucket, "far");
    await near.s3.must("PUT", `/${bucket}/before`, { body: "x" });
    await settle(near, bucket);
  }
  const { stream } = await fetchBackup({ url: near.vault.adminUrl, token });
  const folder = join(root, "backup");
  await receiveBackup({ folder, service: "vault" }, stream);
  const dataDir = join(root, "other", "data");
  const runTool = (...words: string[]) => {
    const env = { ...process.env, PLATFORM_VAULT_DATA_DIR: dataDir };
    return promisify(execFile)(process.execPath, [PROGRAM, ...words], { env });
  };
  await runTool("restore", folder);
  const vault = await StagedVault.start({ folder: join(root, "other") });
  const s3 = new S3TestClient(vault.port, vaultRoot);
  const other = { s3, vault } as unknown as Serving;
  const list = async (bucket: string): Promise<string[]> =>
    (await listVersions(far, bucket)).map((row) => row.split(" ")[1]!);

  for (const bucket of ["one", "two"]) await s3.must("PUT", `/${bucket}/other`, { body: "y" });
  const [state] = (await readStates(other, "one")) as unknown as {
    suspended: string | null;
    pending: number;
  }[];
  assert.match(state?.suspended ?? "", /restored/);
  assert.equal(state?.pending, 1);
  const ready = await fetch(`${vault.adminUrl}/readyz`);
  assert.equal(ready.status, 200);
  assert.match(await ready.text(), /rules of one, two wait/);
  await near.s3.must("PUT", "/one/near", { body: "z" });
  await settle(near, "one");
  assert.deepEqual(await list("one"), ["before", "near"], "the first store still sends");

  await replicate(other, "one", "far");
  await settle(other, "one");
  assert.deepEqual(await list("one"), ["before", "near", "other"]);
  assert.deepEqual(await list("two"), ["before"]);

  await vault.stop();
  const { stdout } = await runTool("adopt-tier");
  assert.match(stdout, /adopted the keys of the store [0-9a-f]{32}/);
  await near.vault.stop();
  await vault.start();
  await settle(other, "two");
  assert.deepEqual(await list("two"), ["before", "other"]);
  s3.close();
  await vault[Symbol.asyncDispose]();
});
