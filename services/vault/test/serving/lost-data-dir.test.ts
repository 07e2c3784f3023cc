// The disk of data_dir is lost, the drives are not: objects and buckets are present, encrypted ones need the key.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { serve } from "./serving.ts";

test("without data_dir a store on several drives requires its master key; with another one it has everything except encrypted objects", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "vault-lost-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const drives = [0, 1, 2].map((slot) => join(folder, `drive-${slot}`));
  for (const drive of drives) mkdirSync(drive);
  const env = { PLATFORM_VAULT_DRIVES: drives.join(","), PLATFORM_VAULT_ENABLE_AUDIT: "false" };
  await using serving = await serve({ folder, env });
  const { s3, vault } = serving;
  await s3.must("PUT", "/kept");
  const body = randomBytes(1_500_000);
  const encryption = { "x-amz-server-side-encryption": "AES256" };
  await s3.must("PUT", "/kept/plain", { body });
  await s3.must("PUT", "/kept/small", { body: "small" });
  await s3.must("PUT", "/kept/sealed", { body, headers: encryption });
  await vault.stop();

  cpSync(vault.dataDir, join(folder, "backup"), { recursive: true });
  rmSync(vault.dataDir, { recursive: true });
  await assert.rejects(vault.start(), /master\.key is missing or empty.*PLATFORM_VAULT_MASTER_KEY/);
  await vault.start({ PLATFORM_VAULT_MASTER_KEY: randomBytes(32).toString("base64") });
  assert.ok((await s3.must("GET", "/kept/plain")).body.equals(body));
  assert.equal((await s3.must("GET", "/kept/small")).text, "small");
  const sealed = await s3.send("GET", "/kept/sealed");
  assert.ok(sealed.status >= 400, `${sealed.status}`);
  assert.match(sealed.text, /key/i);
  await vault.stop();

  rmSync(vault.dataDir, { recursive: true });
  cpSync(join(folder, "backup"), vault.dataDir, { recursive: true });
  await vault.start();
  assert.ok((await s3.must("GET", "/kept/sealed")).body.equals(body));
});
