// Repositories of another storage: with other drives, another master key, encrypted. And who may use them.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { mountSmallDisk } from "@platform/testing/disks";
import { readJob, VERSIONED, waitForJob } from "../job/rig.ts";
import { callJson } from "../serving/json-api.ts";
import { serve } from "../serving/serving.ts";
import { makeBytes } from "../store/fixture.ts";
import { back, readBucket, restore, start } from "./rig.ts";

const SECRET = "a secret of at least thirty-two bytes";
const ISSUER = "https://identity.example";

let root: string;
let env: Readonly<Record<string, string>>;
before(() => {
  root = mkdtempSync(join(tmpdir(), "vault-elsewhere-"));
  const passphrase = join(root, "passphrase");
  writeFileSync(passphrase, "a passphrase of a test\n");
  mkdirSync(join(root, "backups"));
  env = {
    PLATFORM_VAULT_BACKUP_DIR: join(root, "backups"),
    PLATFORM_VAULT_BACKUP_PASSPHRASE_FILE: passphrase,
  };
});
after(() => rmSync(root, { recursive: true, force: true }));

test("an encrypted snapshot of four drives is restored into a store in one folder, with another master key", async () => {
  const drives = [0, 1, 2, 3].map((slot) => join(root, `drive-${slot}`));
  for (const drive of drives) mkdirSync(drive);
  const several = {
    PLATFORM_VAULT_DRIVES: drives.join(","),
    PLATFORM_VAULT_DRIVE_PARITY: "2",
  };
  let seen: unknown[];
  {
    await using from = await serve({ env: { ...env, ...several } });
    const { s3 } = from;
    await s3.must("PUT", "/photos");
    await s3.must("PUT", "/photos?versioning", { body: VERSIONED });
    const sealed = { "x-amz-server-side-encryption": "AES256" };
    for (const [index, size] of [5, 50_000, 1_200_000, 5_000_000].entries()) {
      await s3.must("PUT", `/photos/plain-${index}`, { body: makeBytes(size, index) });
      const body = makeBytes(size, index + 50);
      await s3.must("PUT", `/photos/sealed-${index}`, { body, headers: sealed });
    }
    await s3.must("DELETE", "/photos/plain-0");
    seen = await readBucket(s3, "photos");
    await back(from);
  }
  await using to = await serve({ env });
  const job = await restore(to, {});
  assert.equal(job.state, "completed", job.reason ?? "");
  assert.deepEqual(await readBucket(to.s3, "photos"), seen);

  // It is not its own repository.
  const answer = await callJson(to, "POST", "/admin/backup", { repository: { path: "r" } });
  const { job_id } = JSON.parse(answer.text) as { job_id: string };
  const refused = await waitForJob(to, job_id);
  assert.match(refused.reason ?? "", /has the backups of another vault/);
  await to.vault.stop();
  await to.vault.start({ PLATFORM_VAULT_BACKUP_PASSPHRASE_FILE: "" });
  const locked = await restore(to, { as: { photos: "locked" } });
  assert.match(locked.reason ?? "", /is encrypted: a passphrase is required/);
});

test("only root and vault:admin back up and restore", async () => {
  const tokens = { PLATFORM_JWT_SECRET: SECRET, PLATFORM_JWT_ISSUER: ISSUER };
  await using serving = await serve({ env: { ...env, ...tokens } });
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const asToken = (claims: object) => {
    const exp = Math.floor(Date.now() / 1_000) + 900;
    const own = { iss: ISSUER, sub: "ada", exp, ...claims };
    const text = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(own)}`;
    const token = `${text}.${createHmac("sha256", SECRET).update(text).digest("base64url")}`;
    return { key: null, headers: { authorization: `Bearer ${token}` } };
  };
  const repository = { path: "other" };
  const identityAdmin = { roles: ["admin"], scope: "auth:admin vault:read vault:write" };
  for (const [claims, allowed] of [
    [identityAdmin, false],
    [{ scope: "vault:admin" }, true],
  ] as const) {
    const ask = asToken(claims);
    for (const [method, path, body] of [
      ["POST", "/admin/backup", { repository }],
      ["POST", "/admin/backup/restore", { repository }],
      ["GET", "/admin/backup/snapshots?path=other", undefined],
    ] as const) {
      const { status } = await callJson(serving, method, path, body, ask);
      assert.equal(status !== 403, allowed, `${method} ${path}`);
    }
  }
  const unsigned = { key: null };
  const { status } = await callJson(serving, "POST", "/admin/backup", { repository }, unsigned);
  assert.equal(status, 401);
});

test("two backups at once are refused, and without backup_dir all", async () => {
  await using serving = await serve({ env });
  await serving.s3.must("PUT", "/bucket");
  // So much that the first one lasts until the second is asked for.
  for (let part = 0; part < 8; part += 1) {
    await serving.s3.must("PUT", `/bucket/${part}`, { body: makeBytes(4 * 1024 * 1024, part) });
  }
  const both = await Promise.all(
    ["one", "two"].map((path) =>
      callJson(serving, "POST", "/admin/backup", { repository: { path } }),
    ),
  );
  assert.deepEqual(
    both.map(({ status }) => status).toSorted((a, b) => a - b),
    [202, 409],
  );
  await serving.vault.stop();
  await serving.vault.start({ PLATFORM_VAULT_BACKUP_DIR: "" });
  const answer = await callJson(serving, "POST", "/admin/backup", { repository: { path: "one" } });
  assert.equal(answer.status, 400);
  assert.match(answer.text, /backup_dir is not set/);
});

test("a full disk ends a backup with its reason, and the next one needs no repair", async (t) => {
  const disk = mountSmallDisk(t, { mib: 24 });
  // Anywhere else it would fill the disk of the machine.
  if (disk === undefined) return t.skip("a file system cannot be mounted here");
  await using serving = await serve({ env: { PLATFORM_VAULT_BACKUP_DIR: disk } });
  const { s3 } = serving;
  await s3.must("PUT", "/small");
  await s3.must("PUT", "/small/a", { body: makeBytes(100_000) });
  await back(serving);
  await s3.must("PUT", "/small/large", { body: makeBytes(40_000_000) });
  const failed = await waitForJob(
    serving,
    await start(serving, "/admin/backup", { repository: { path: "r" } }),
  );
  assert.equal(failed.state, "failed");
  assert.match(failed.reason ?? "", /cannot be written: ENOSPC/);
  assert.equal((await s3.must("GET", "/small/large")).body.length, 40_000_000);
  await s3.must("DELETE", "/small/large");
  const job = await back(serving);
  const restored = await restore(serving, { as: { small: "restored" } });
  assert.equal(restored.state, "completed", restored.reason ?? "");
  assert.equal(job.totals.failed, 0);
  assert.deepEqual((await s3.must("GET", "/restored/a")).body, makeBytes(100_000));
});

test("on a full disk nothing of a bucket that is restored shows, and the restore ends when there is room", async (t) => {
  const disk = mountSmallDisk(t, { mib: 112 });
  if (disk === undefined) return t.skip("a file system cannot be mounted here");
  const backups = join(root, "backups-of-small");
  mkdirSync(backups);
  await using serving = await serve({
    folder: disk,
    // Deletions use the reserve.
    env: { PLATFORM_VAULT_BACKUP_DIR: backups, PLATFORM_VAULT_DISK_RESERVE: "16777216" },
  });
  const { s3 } = serving;
  const body = makeBytes(6_000_000);
  for (const bucket of ["source", "rest"]) await s3.must("PUT", `/${bucket}`);
  for (const name of ["a", "b", "c"]) await s3.must("PUT", `/source/${name}`, { body });
  await back(serving);
  // There is room for the index of the snapshot, and for no object.
  await s3.must("PUT", "/rest/spare", { body: makeBytes(3_000_000) });
  const fillers: string[] = [];
  for (let bytes = 6_000_000; bytes > 1_200_000;) {
    const path = `/rest/${fillers.length}`;
    const { status } = await s3.send("PUT", path, { body: makeBytes(bytes) });
    if (status === 200) fillers.push(path);
    else bytes /= 2;
  }
  await s3.must("DELETE", "/rest/spare");
  const id = await start(serving, "/admin/backup/restore", {
    repository: { path: "r" },
    buckets: ["source"],
    as: { source: "again" },
  });
  await wait(3_000);
  assert.equal((await readJob(serving, id)).state, "running");
  assert.equal((await s3.send("GET", "/again/a")).code, "NoSuchBucket");
  assert.doesNotMatch((await s3.must("GET", "/")).text, /again/);
  assert.deepEqual((await s3.must("GET", "/source/a")).body, body);
  for (const path of fillers) await s3.must("DELETE", path);
  const restored = await waitForJob(serving, id);
  assert.equal(restored.state, "completed", restored.reason ?? "");
  assert.deepEqual([restored.totals.done, restored.totals.failed], [3, 0]);
  for (const name of ["a", "b", "c"])
    assert.deepEqual((await s3.must("GET", `/again/${name}`)).body, body);
});
