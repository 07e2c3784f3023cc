// Objects that were moved to a remote, in a bucket that is restored into the running store.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { LyingS3 } from "@platform/testing/lying-s3";
import { callJson, readJson } from "../serving/json-api.ts";
import { serve } from "../serving/serving.ts";
import { makeBytes, makeFolder } from "../store/fixture.ts";
import { back, restore } from "./rig.ts";

test("moved bytes are read from their remote, and the restored versions do not depend on it", async (context) => {
  const root = makeFolder(context);
  mkdirSync(join(root, "backups"));
  await using remote = await LyingS3.start();
  await using serving = await serve({ env: { PLATFORM_VAULT_BACKUP_DIR: join(root, "backups") } });
  const { s3 } = serving;
  const body = { name: "far", endpoint: remote.endpoint, access_key: "a", secret_key: "s" };
  await readJson(callJson(serving, "POST", "/admin/remotes", body), 201);
  await s3.must("PUT", "/photos");
  const tier = { days: 0, remote: "far", bucket: "cold", minimum_size: 0 };
  await s3.must("PUT", "/photos?cold-tier", { body: JSON.stringify(tier) });
  const sealed = { "x-amz-server-side-encryption": "AES256" };
  await s3.must("PUT", "/photos/plain", { body: makeBytes(300_000, 1) });
  await s3.must("PUT", "/photos/sealed", { body: makeBytes(200_000, 2), headers: sealed });
  await s3.must("POST", "/photos?cold-tier&sweep");
  assert.notEqual(
    (await s3.must("HEAD", "/photos/plain")).headers["x-amz-storage-class"],
    undefined,
  );
  await s3.must("PUT", "/photos/here", { body: "local" });
  await back(serving);
  const job = await restore(serving, { as: { photos: "again" } });
  assert.equal(job.state, "completed", job.reason ?? "");

  for (const key of ["plain", "sealed"]) await s3.must("DELETE", `/photos/${key}`);
  await remote[Symbol.asyncDispose]();
  assert.ok((await s3.must("GET", "/again/plain")).body.equals(makeBytes(300_000, 1)));
  assert.ok((await s3.must("GET", "/again/sealed")).body.equals(makeBytes(200_000, 2)));
  assert.equal((await s3.must("GET", "/again/here")).text, "local");
  const { headers } = await s3.must("HEAD", "/again/plain");
  assert.equal(headers["x-amz-storage-class"] ?? "STANDARD", "STANDARD");
});
