// Backups and restores as jobs, and whole contents of buckets, for tests.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type Job, listVersions, waitForJob } from "../job/rig.ts";
import { callJson } from "../serving/json-api.ts";
import type { S3TestClient } from "../serving/s3-client.ts";
import type { Serving } from "../serving/serving.ts";

/** A job of a backup. */
export interface BackupJob extends Job {
  snapshot: string | null;
}

/** The customer's key of objects whose key begins with `customer/`. */
export const CUSTOMER_KEY = Buffer.alloc(32, 9);

/** Headers of requests for such objects. */
export const CUSTOMER_HEADERS: Readonly<Record<string, string>> = {
  "x-amz-server-side-encryption-customer-algorithm": "AES256",
  "x-amz-server-side-encryption-customer-key": CUSTOMER_KEY.toString("base64"),
  "x-amz-server-side-encryption-customer-key-md5": createHash("md5")
    .update(CUSTOMER_KEY)
    .digest("base64"),
};

/** Starts a backup or, with `restore` in the path, a restore. Returns its id. */
export async function start(serving: Serving, path: string, body: object): Promise<string> {
  const answer = await callJson(serving, "POST", path, body);
  assert.equal(answer.status, 202, answer.text);
  return (JSON.parse(answer.text) as { job_id: string }).job_id;
}

/** Backs up into a repository. */
export async function back(serving: Serving, path = "r", more: object = {}): Promise<BackupJob> {
  const id = await start(serving, "/admin/backup", { repository: { path }, ...more });
  const job = (await waitForJob(serving, id)) as BackupJob;
  assert.equal(job.state, "completed", job.reason ?? "");
  return job;
}

/** Restores buckets from a repository. */
export async function restore(serving: Serving, body: object): Promise<Job> {
  const repository = { path: "r" };
  const id = await start(serving, "/admin/backup/restore", { repository, ...body });
  return waitForJob(serving, id);
}

const HEADERS = [
  "content-type",
  "content-length",
  "etag",
  "last-modified",
  "x-amz-version-id",
  "x-amz-meta-color",
  "x-amz-tagging-count",
  "x-amz-object-lock-mode",
  "x-amz-object-lock-retain-until-date",
  "x-amz-object-lock-legal-hold",
  "x-amz-checksum-crc32c",
  "x-amz-checksum-type",
  "x-amz-server-side-encryption",
  "x-amz-mp-parts-count",
  "x-amz-storage-class",
];

/** Everything that clients see of a bucket: all versions with their headers and bodies, and its settings. */
export async function readBucket(s3: S3TestClient, bucket: string): Promise<unknown[]> {
  const seen: unknown[] = [];
  for (const { key, version, isMarker, isLatest } of await listVersions(s3, bucket)) {
    if (isMarker) {
      seen.push({ key, version, isMarker, isLatest });
      continue;
    }
    const headers = {
      "x-amz-checksum-mode": "ENABLED",
      ...(key.startsWith("customer/") ? CUSTOMER_HEADERS : {}),
    };
    const target = `/${bucket}/${key}?versionId=${version}`;
    const { body, headers: got } = await s3.must("GET", target, { headers });
    const parts = await s3.must("HEAD", `${target}&partNumber=1`, { headers });
    const tags = await s3.must("GET", `/${bucket}/${key}?tagging&versionId=${version}`);
    seen.push({
      key,
      version,
      isLatest,
      body: createHash("sha256").update(body).digest("hex"),
      tags: tags.text,
      headers: HEADERS.map((name) => [name, got[name] ?? parts.headers[name]]),
    });
  }
  for (const setting of ["versioning", "tagging", "object-lock", "lifecycle", "triggers"]) {
    const { status, text } = await s3.send("GET", `/${bucket}?${setting}`);
    seen.push([setting, status, status === 200 ? text : ""]);
  }
  return seen;
}
