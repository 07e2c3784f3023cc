// Backups of a running store into a repository, and buckets that are restored into it while it serves.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { listVersions, VERSIONED, waitForJob } from "../job/rig.ts";
import { callJson, readJson } from "../serving/json-api.ts";
import type { S3TestClient } from "../serving/s3-client.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { makeBytes } from "../store/fixture.ts";
import { back, CUSTOMER_HEADERS, readBucket, restore } from "./rig.ts";

let root: string;
let backups: string;
let serving: Serving;
before(async () => {
  root = mkdtempSync(join(tmpdir(), "vault-backups-"));
  backups = join(root, "backups");
  mkdirSync(backups);
  serving = await serve({ env: { PLATFORM_VAULT_BACKUP_DIR: backups } });
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  rmSync(root, { recursive: true, force: true });
});

/** Puts an object of two parts. */
async function putParts(s3: S3TestClient, target: string, headers = {}): Promise<void> {
  const created = await s3.must("POST", `${target}?uploads`, { headers });
  const id = /<UploadId>([^<]*)</.exec(created.text)![1]!;
  const parts: string[] = [];
  for (const [number, size] of [
    [1, 5 * 1024 * 1024],
    [2, 70_000],
  ] as const) {
    const body = makeBytes(size, number);
    const put = await s3.must("PUT", `${target}?partNumber=${number}&uploadId=${id}`, { body });
    const etag = String(put.headers["etag"]);
    parts.push(`<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag></Part>`);
  }
  const body = `<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`;
  await s3.must("POST", `${target}?uploadId=${id}`, { body });
}

/** A bucket with all kinds of versions. */
async function fillRich(s3: S3TestClient, bucket: string): Promise<void> {
  await s3.must("PUT", `/${bucket}`, {
    headers: { "x-amz-bucket-object-lock-enabled": "true" },
  });
  const encrypted = { "x-amz-server-side-encryption": "AES256" };
  for (const [index, size] of [10, 20_000, 300_000, 1_500_000].entries()) {
    for (let edition = 0; edition < 3; edition += 1) {
      const body = makeBytes(size, index * 10 + edition);
      const headers = {
        "x-amz-meta-color": `color-${edition}`,
        "x-amz-tagging": `edition=${edition}`,
        "content-type": "text/x-test",
        "x-amz-checksum-algorithm": "CRC32C",
      };
      await s3.must("PUT", `/${bucket}/plain-${index}`, { body, headers });
      await s3.must("PUT", `/${bucket}/sealed-${index}`, { body, headers: encrypted });
      await s3.must("PUT", `/${bucket}/customer/${index}`, { body, headers: CUSTOMER_HEADERS });
    }
  }
  await s3.must("DELETE", `/${bucket}/plain-0`);
  await s3.must("PUT", `/${bucket}/plain-0`, { body: "again" });
  await s3.must("DELETE", `/${bucket}/plain-1`);
  const held = {
    "x-amz-object-lock-mode": "GOVERNANCE",
    "x-amz-object-lock-retain-until-date": "2099-01-01T00:00:00Z",
    "x-amz-object-lock-legal-hold": "ON",
  };
  const md5 = { "x-amz-checksum-algorithm": "CRC32C" };
  await s3.must("PUT", `/${bucket}/held`, { body: "held", headers: { ...held, ...md5 } });
  await putParts(s3, `/${bucket}/parts`);
  await putParts(s3, `/${bucket}/sealed-parts`, encrypted);
  for (const copy of ["one", "two"]) {
    const headers = { "x-amz-copy-source": `/${bucket}/parts` };
    await s3.must("PUT", `/${bucket}/copy-${copy}`, { headers });
    const source = { "x-amz-copy-source": `/${bucket}/plain-3` };
    await s3.must("PUT", `/${bucket}/large-copy-${copy}`, { headers: source });
  }
  const tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
  await s3.must("PUT", `/${bucket}?tagging`, { body: tags });
}

test("all versions of a bucket are restored under another name while the store serves", async () => {
  const { s3 } = serving;
  await fillRich(s3, "rich");
  await s3.must("PUT", "/other");
  await s3.must("PUT", "/other/a", { body: "other" });
  const seen = await readBucket(s3, "rich");
  const first = await back(serving);
  assert.ok(first.totals.matched > 3);
  assert.ok(first.totals.bytes > 10_000_000);
  await s3.must("PUT", "/rich/plain-3", { body: "changed since" });
  const second = await back(serving, "r", { keep: { last: 1, daily: 1 } });
  const query = `/admin/backup/snapshots?path=${encodeURIComponent(join(backups, "r"))}`;
  const { items } = await readJson<{ items: { id: string; added_bytes: number }[] }>(
    callJson(serving, "GET", query),
  );
  assert.deepEqual(
    items.map(({ id }) => id),
    [second.snapshot],
  );
  assert.ok(items[0]!.added_bytes < 400_000, `${items[0]!.added_bytes} bytes`);

  const body = { buckets: ["rich"], as: { rich: "rich-again" } };
  const job = await restore(serving, body);
  assert.equal(job.state, "completed", job.reason ?? "");
  const again = await readBucket(s3, "rich-again");
  const [live] = (await listVersions(s3, "rich")).filter(({ key }) => key === "plain-3");
  const isOld = (one: unknown): boolean =>
    !JSON.stringify(one).includes('"plain-3"') && !Array.isArray(one);
  assert.deepEqual(again.filter(isOld), seen.filter(isOld));
  assert.equal(
    (await listVersions(s3, "rich-again")).find(
      ({ isLatest, key }) => isLatest && key === "plain-3",
    )?.version,
    live!.version,
  );
  assert.deepEqual(again, await readBucket(s3, "rich"));

  // It is a bucket like others.
  const locked = await s3.send("DELETE", `/rich-again/held?versionId=${await findVersion(s3)}`);
  assert.equal(locked.code, "AccessDenied");
  await s3.must("PUT", "/rich-again/new", { body: "new" });
  const renamed = await restore(serving, { as: { rich: "rich-third", other: "other-again" } });
  assert.equal(renamed.state, "completed", renamed.reason ?? "");
  assert.equal((await s3.must("GET", "/other-again/a")).text, "other");
  const { text } = await s3.must("GET", "/");
  assert.deepEqual(
    Array.from(text.matchAll(/<Name>([^<]*)</g), ([, name]) => name).filter(
      (name) => !name!.startsWith("system-"),
    ),
    ["other", "other-again", "rich", "rich-again", "rich-third"],
  );
  assert.deepEqual(readdirSync(join(serving.vault.dataDir, "restoring")), []);
});

async function findVersion(s3: S3TestClient): Promise<string> {
  const versions = await listVersions(s3, "rich-again");
  return versions.find(({ key }) => key === "held")!.version;
}

test("no events and no triggers of a restored bucket fire, and counts of the bucket are right", async () => {
  const { s3 } = serving;
  await s3.must("PUT", "/counted");
  await s3.must("PUT", "/counted?versioning", { body: VERSIONED });
  for (let number = 0; number < 300; number += 1) {
    await s3.must("PUT", `/counted/k${number % 100}`, { body: `body ${number}` });
  }
  await back(serving, "counts");
  const body = {
    repository: { path: "counts" },
    buckets: ["counted"],
    as: { counted: "recounted" },
  };
  const job = await restore(serving, body);
  assert.deepEqual([job.state, job.totals.matched, job.totals.done], ["completed", 300, 300]);
  const usage = async (name: string) =>
    readJson(callJson(serving, "GET", `/api/v1/buckets/${name}/usage`));
  assert.deepEqual(await usage("recounted"), { ...(await usage("counted")), bucket: "recounted" });
  await serving.vault.stop();
  await serving.vault.start();
  assert.equal((await listVersions(s3, "recounted")).length, 300);
});

test("bad places, names and repositories are refused with a clear reason", async () => {
  const { s3 } = serving;
  const post = (path: string, body: object) => callJson(serving, "POST", path, body);
  symlinkSync(tmpdir(), join(backups, "link"));
  for (const path of ["..", "../x", "/etc", "link", "link/x", ".", ""]) {
    const answer = await post("/admin/backup", { repository: { path } });
    assert.equal(answer.status, 400, `${path}: ${answer.text}`);
  }
  const remote = { remote: "far", bucket: "b", prefix: "" };
  assert.equal((await post("/admin/backup", { repository: remote })).status, 400);
  assert.equal((await post("/admin/backup", { repository: { path: "r" }, keep: {} })).status, 400);

  const ask = (body: object) =>
    post("/admin/backup/restore", { repository: { path: "r" }, ...body });
  const missing = await ask({ repository: { path: "none" } });
  assert.equal(missing.status, 404);
  assert.match(missing.text, /not a repository/);
  assert.equal((await ask({ snapshot: "20260101T000000000Z-00000000" })).status, 404);
  assert.equal((await ask({ snapshot: "../../etc/passwd" })).status, 404);
  const exists = await ask({});
  assert.equal(exists.status, 409);
  assert.match(exists.text, /The bucket (rich|other) exists/);
  assert.equal((await ask({ buckets: ["other"] })).status, 409);
  for (const as of [
    { other: "No" },
    { other: "system-jobs" },
    { other: "same", rich: "same" },
    { other: ".hidden" },
  ]) {
    assert.equal((await ask({ as })).status, 400, JSON.stringify(as));
  }
  assert.equal((await ask({ buckets: ["other"], as: { rich: "x-y-z" } })).status, 400);
  const unknown = await restore(serving, { buckets: ["nobody"] });
  assert.equal(unknown.state, "failed");
  assert.match(unknown.reason ?? "", /the snapshot has no bucket nobody/);

  mkdirSync(join(backups, "broken"));
  writeFileSync(join(backups, "broken", "repository.json"), "{}");
  const broken = await callJson(serving, "POST", "/admin/backup", {
    repository: { path: "broken" },
  });
  const { job_id } = JSON.parse(broken.text) as { job_id: string };
  const failed = await waitForJob(serving, job_id);
  assert.equal(failed.state, "failed");
  assert.match(failed.reason ?? "", /not the manifest of a backup/);
  assert.equal((await s3.send("PUT", "/.hidden")).code, "InvalidBucketName");
});

test("a damaged snapshot is not restored, and the bucket does not appear", async () => {
  const { s3 } = serving;
  const objects = join(backups, "r", "data");
  const [file] = readdirSync(objects, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  rmSync(join(file!.parentPath, file!.name));
  const job = await restore(serving, { as: { rich: "damaged", other: "also-damaged" } });
  assert.equal(job.state, "failed");
  assert.match(job.reason ?? "", /is damaged: data\/.*: missing/);
  assert.equal((await s3.send("HEAD", "/damaged")).status, 404);
});
