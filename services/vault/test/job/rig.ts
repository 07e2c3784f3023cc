// Jobs over the admin API, and listings of their buckets, for tests.
import assert from "node:assert/strict";
import { waitFor } from "@platform/testing/wait";
import { callJson, readJson } from "../serving/json-api.ts";
import type { S3TestClient } from "../serving/s3-client.ts";
import type { Serving } from "../serving/serving.ts";

/** A job as the admin API shows it. */
export interface Job {
  job_id: string;
  operation: string;
  state: string;
  totals: { matched: number; done: number; failed: number; bytes: number };
  samples: string[];
  reason: string | null;
  report: { bucket: string; key: string } | null;
}

/** A line of the failures of a job. */
export interface Failure {
  key: string;
  version_id?: string;
  code: string;
  message: string;
}

export const VERSIONED =
  "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";

/** Starts a job without a limit of its rate, unless `body` has one. Returns its id. */
export async function startJob(serving: Serving, body: object): Promise<string> {
  const answer = await callJson(serving, "POST", "/admin/batch", { rate: 0, ...body });
  assert.equal(answer.status, 202, answer.text);
  return (JSON.parse(answer.text) as { job_id: string }).job_id;
}

export const readJob = (serving: Serving, id: string): Promise<Job> =>
  readJson<Job>(callJson(serving, "GET", `/admin/batch/${id}`));

/** Waits for the end of a job. */
export function waitForJob(serving: Serving, id: string, timeoutMs = 60_000): Promise<Job> {
  return waitFor(
    async () => {
      const job = await readJob(serving, id).catch(() => undefined);
      const isEnded = ["completed", "failed", "cancelled"].includes(job?.state ?? "");
      return isEnded ? job : undefined;
    },
    `the end of job ${id}`,
    timeoutMs,
  );
}

/** Runs a job to its end. */
export async function runJob(serving: Serving, body: object): Promise<Job> {
  return waitForJob(serving, await startJob(serving, body));
}

/** The first page of the failures of a job. */
export async function listFailures(serving: Serving, id: string): Promise<Failure[]> {
  const answer = callJson(serving, "GET", `/admin/batch/${id}/failures?limit=200`);
  return (await readJson<{ items: Failure[] }>(answer)).items;
}

/** All keys of a bucket. */
export async function listKeys(s3: S3TestClient, bucket: string, prefix = ""): Promise<string[]> {
  const keys: string[] = [];
  for (let after = ""; ;) {
    const query = `list-type=2&prefix=${prefix}&start-after=${encodeURIComponent(after)}`;
    const { text } = await s3.must("GET", `/${bucket}?${query}`);
    keys.push(...Array.from(text.matchAll(/<Key>([^<]*)<\/Key>/g), ([, key]) => key!));
    if (!text.includes("<IsTruncated>true")) return keys;
    after = keys.at(-1)!;
  }
}

/** All versions and delete markers of a bucket, the newest of each key first. */
export async function listVersions(
  s3: S3TestClient,
  bucket: string,
): Promise<{ key: string; version: string; isMarker: boolean; isLatest: boolean }[]> {
  const found: { key: string; version: string; isMarker: boolean; isLatest: boolean }[] = [];
  for (let query = ""; ;) {
    const { text } = await s3.must("GET", `/${bucket}?versions${query}`);
    const rows = text.matchAll(
      /<(Version|DeleteMarker)><Key>([^<]*)<\/Key><VersionId>([^<]*)<\/VersionId><IsLatest>([^<]*)</g,
    );
    for (const [, kind, key, version, latest] of rows)
      found.push({
        key: key!,
        version: version!,
        isMarker: kind === "DeleteMarker",
        isLatest: latest === "true",
      });
    const next = /<NextKeyMarker>([^<]*)<.*<NextVersionIdMarker>([^<]*)</.exec(text);
    if (next === null) return found;
    query = `&key-marker=${next[1]}&version-id-marker=${next[2]}`;
  }
}

/** Puts many small objects. */
export async function fill(
  s3: S3TestClient,
  bucket: string,
  keys: readonly string[],
  body = (key: string): string => key,
): Promise<void> {
  for (let at = 0; at < keys.length; at += 100) {
    const some = keys.slice(at, at + 100);
    await Promise.all(some.map((key) => s3.must("PUT", `/${bucket}/${key}`, { body: body(key) })));
  }
}
