// Users, keys and the master key of a running store that are damaged or lost while it is stopped.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { cpSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { serve } from "./serving.ts";

test("a damaged file of users and keys is restored from its copy, and reported", async () => {
  await using serving = await serve();
  const { s3, admin, vault } = serving;
  await s3.must("PUT", "/kept");
  const statement = { Effect: "Allow", Action: "s3:*", Resource: "*" };
  const policies = { all: { Version: "2012-10-17", Statement: [statement] } };
  const headers = { "content-type": "application/json" };
  await admin.must("PUT", "/api/v1/users/ada", { body: JSON.stringify({ policies }), headers });
  const key = { accessKey: "key-of-ada", secretKey: "secret-of-ada" };
  const names = { user: "ada", access_key: key.accessKey, secret_key: key.secretKey };
  await admin.must("POST", "/api/v1/keys", { body: JSON.stringify(names), headers });
  await s3.must("PUT", "/kept/a", { key, body: "x" });
  await vault.stop();

  const path = join(vault.dataDir, "access", "directory.json");
  const bytes = readFileSync(path);
  bytes[bytes.indexOf("key-of-ada")]! ^= 1;
  writeFileSync(path, bytes);
  await vault.start();
  assert.equal((await s3.must("GET", "/kept/a", { key })).text, "x");
  assert.match(vault.output, /"level":"error".*a copy of the users and keys was damaged/);
  assert.ok(existsSync(`${path}.damaged`));
});

test("a store whose master key is missing or empty does not start with a new one", async () => {
  await using serving = await serve();
  const { s3, vault } = serving;
  await s3.must("PUT", "/kept");
  const body = randomBytes(300_000);
  const encryption = { "x-amz-server-side-encryption": "AES256" };
  await s3.must("PUT", "/kept/sealed", { body, headers: encryption });
  await vault.stop();

  const path = join(vault.dataDir, "access", "master.key");
  const backup = `${path}.backup`;
  cpSync(path, backup);
  truncateSync(path);
  await assert.rejects(vault.start(), /master\.key is missing or empty.*restore it from a backup/);
  rmSync(path);
  await assert.rejects(vault.start(), /master\.key is missing or empty/);
  assert.ok(!existsSync(path));
  cpSync(backup, path);
  await vault.start();
  assert.ok((await s3.must("GET", "/kept/sealed")).body.equals(body));
});
