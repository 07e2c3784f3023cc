// Batch jobs: their operations, selections, bounds and reports.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { waitFor } from "@platform/testing/wait";
import { callJson, readJson } from "../serving/json-api.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { failsLate, identity, lowerCase, putModule } from "../guest/guests.ts";
import {
  fill,
  listFailures,
  listKeys,
  listVersions,
  readJob,
  runJob,
  startJob,
  VERSIONED,
  waitForJob,
} from "./rig.ts";

let serving: Serving;
before(async () => {
  serving = await serve();
  await putModule(serving, "copy", identity);
  await putModule(serving, "lower", lowerCase);
  await putModule(serving, "late", failsLate);
});
after(() => serving[Symbol.asyncDispose]());

const names = (count: number, prefix = "k"): string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}${String(n).padStart(4, "0")}`);

async function makeBucket(bucket: string, isVersioned = false): Promise<void> {
  await serving.s3.must("PUT", `/${bucket}`);
  if (isVersioned) await serving.s3.must("PUT", `/${bucket}?versioning`, { body: VERSIONED });
}

test("a copy has the whole key behind the prefix, with metadata and tags, and a report on demand", async () => {
  const { s3 } = serving;
  await makeBucket("source");
  await makeBucket("target");
  await fill(s3, "source", names(620, "in/"));
  await fill(s3, "source", ["other"]);
  const headers = { "x-amz-meta-a": "1", "x-amz-tagging": "t=1", "content-type": "text/x" };
  await s3.must("PUT", "/source/in/0000", { body: "first", headers });
  const report = { bucket: "target", prefix: "reports/", successes: true };
  const copy = { operation: "copy", bucket: "source", prefix: "in/", target_bucket: "target" };
  const job = await runJob(serving, { ...copy, target_prefix: "out/", report });
  assert.equal(job.state, "completed", job.reason ?? "");
  assert.deepEqual(job.totals, { matched: 620, done: 620, failed: 0, bytes: 5 + 619 * 7 });
  assert.deepEqual(await listKeys(s3, "target", "out/"), names(620, "out/in/"));
  const first = await s3.must("GET", "/target/out/in/0000");
  assert.deepEqual([first.text, first.headers["x-amz-meta-a"]], ["first", "1"]);
  assert.equal(first.headers["x-amz-tagging-count"], "1");
  const { text } = await s3.must("GET", `/${job.report!.bucket}/${job.report!.key}`);
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { key: string });
  assert.deepEqual(new Set(lines.map(({ key }) => key)), new Set(names(620, "in/")));
  assert.equal(job.report!.key, `reports/${job.job_id}.ndjson`);
});

test("tags are set and removed, and objects deleted, by filter", async () => {
  const { s3 } = serving;
  await makeBucket("tagged");
  await fill(s3, "tagged", names(30), (key) => "x".repeat(Number(key.slice(1)) + 1));
  const tag = { operation: "tag", bucket: "tagged", prefix: "", tags: { color: "red" } };
  const some = await runJob(serving, { ...tag, filter: { size_max: 10 } });
  assert.equal(some.totals.done, 10);
  const red = { tags: { color: "red" } };
  const untag = { operation: "untag", bucket: "tagged", prefix: "k0003" };
  assert.equal((await runJob(serving, untag)).totals.done, 1);
  const remove = { operation: "delete", bucket: "tagged", prefix: "", filter: red };
  const dry = await runJob(serving, { ...remove, dry_run: true });
  assert.deepEqual([dry.totals.matched, dry.samples.length, dry.samples[0]], [9, 9, "k0000"]);
  assert.equal((await listKeys(s3, "tagged")).length, 30);
  assert.equal((await runJob(serving, remove)).totals.done, 9);
  assert.deepEqual((await listKeys(s3, "tagged")).slice(0, 2), ["k0003", "k0010"]);
  for (const [filter, matched] of [
    [{ created_after: "2020-01-01T00:00:00Z", size_min: 25 }, 6],
    [{ created_before: "2020-01-01T00:00:00Z" }, 0],
    [{ storage_class: "STANDARD", size_min: 12, size_max: 13 }, 2],
    [{ storage_class: "GLACIER_IR" }, 0],
  ] as const) {
    const counted = await runJob(serving, { ...remove, filter, dry_run: true });
    assert.equal(counted.totals.matched, matched, JSON.stringify(filter));
  }
  const suffix = { operation: "delete", bucket: "tagged", prefix: "", filter: { suffix: "9" } };
  assert.equal((await runJob(serving, suffix)).totals.done, 2);
});

test("named keys and manifests: what is missing or no line is a failure, the rest goes on", async () => {
  const { s3 } = serving;
  await makeBucket("named");
  await makeBucket("named-out");
  await fill(s3, "named", names(20));
  const copy = { operation: "copy", bucket: "named", target_bucket: "named-out" };
  const job = await runJob(serving, { ...copy, keys: ["k0001", "missing", "k0001", "k0002"] });
  assert.deepEqual([job.state, job.totals.done, job.totals.failed], ["completed", 2, 1]);
  assert.deepEqual(
    (await listFailures(serving, job.job_id)).map(({ key, code }) => [key, code]),
    [["missing", "NoSuchKey"]],
  );
  assert.equal(job.report?.bucket, "system-jobs");
  await s3.must("PUT", "/named/a%20b%2Cc", { body: "x" });
  const bad = Array.from({ length: 300 }, (_, n) => `bad line ${n}`);
  const manifest = [
    "named,k0003",
    '"named","a%20b%2Cc"',
    "other,k0004",
    "named,k0005,no-such-version-id",
    "x".repeat(3_000_000),
    ...bad,
    "named,k0006",
  ].join("\n");
  await s3.must("PUT", "/named/list.csv", { body: manifest });
  const csv = await runJob(serving, {
    ...copy,
    manifest: { bucket: "named", key: "list.csv", format: "csv" },
    failure_threshold_percent: 100,
  });
  assert.deepEqual([csv.state, csv.totals.done, csv.totals.failed], ["completed", 3, 303]);
  const codes = (await listFailures(serving, csv.job_id)).map(({ code }) => code);
  assert.equal(codes.length, 200);
  assert.deepEqual(await listKeys(s3, "named-out"), ["a b,c", "k0001", "k0002", "k0003", "k0006"]);
  const lines = ['{"bucket":"named","key":"k0007"}', "{", "[]", "null"].join("\n");
  await s3.must("PUT", "/named/list.ndjson", { body: lines });
  const json = await runJob(serving, {
    ...copy,
    manifest: { bucket: "named", key: "list.ndjson", format: "ndjson" },
  });
  assert.deepEqual([json.totals.done, json.totals.failed], [1, 3]);
});

test("a job stops at too many failures", async () => {
  await makeBucket("failing");
  const keys = Array.from({ length: 3_000 }, (_, n) => `missing-${n}`);
  const job = await runJob(serving, {
    operation: "delete",
    bucket: "failing",
    keys: keys.slice(0, 900),
  });
  assert.equal(job.state, "completed");
  const copy = { operation: "copy", bucket: "failing", target_prefix: "x/", keys };
  const stopped = await runJob(serving, copy);
  assert.deepEqual([stopped.state, stopped.totals.failed], ["failed", 1_000]);
  assert.match(stopped.reason ?? "", /50 %/);
});

test("in a versioned bucket a job sees what was there when it began", async () => {
  const { s3 } = serving;
  await makeBucket("seen", true);
  await makeBucket("seen-out", true);
  await fill(s3, "seen", names(40), () => "before");
  await fill(s3, "seen", names(40), () => "second");
  const copy = { operation: "copy", bucket: "seen", prefix: "", target_bucket: "seen-out" };
  const id = await startJob(serving, { ...copy, rate: 20 });
  await fill(s3, "seen", [...names(40), ...names(20, "new")], () => "later");
  await callJson(serving, "PATCH", `/admin/batch/${id}`, { rate: 0 });
  const job = await waitForJob(serving, id);
  assert.deepEqual([job.state, job.totals.done], ["completed", 40]);
  for (const key of ["k0000", "k0039"])
    assert.equal((await s3.must("GET", `/seen-out/${key}`)).text, "second");
  const all = await runJob(serving, { ...copy, versions: "all", target_prefix: "all/" });
  assert.equal(all.totals.done, 140);
  assert.equal((await s3.must("GET", "/seen-out/all/k0000")).text, "later");
  const marked = await runJob(serving, { operation: "delete", bucket: "seen", prefix: "k" });
  assert.equal(marked.totals.done, 40);
  assert.equal((await listKeys(s3, "seen")).length, 20);
  const gone = { operation: "delete", bucket: "seen", prefix: "", versions: "all" };
  assert.equal((await runJob(serving, gone)).totals.done, 180);
  assert.deepEqual(await listVersions(s3, "seen"), []);
});

test("rewind makes a bucket look as it did, by new versions and delete markers", async () => {
  const { s3 } = serving;
  await makeBucket("past", true);
  await fill(s3, "past", names(30), () => "one");
  await s3.must("DELETE", "/past/k0005");
  await fill(s3, "past", ["k0006"], () => "two");
  const before = new Map<string, string>();
  for (const key of await listKeys(s3, "past"))
    before.set(key, (await s3.must("GET", `/past/${key}`)).text);
  const versions = (await listVersions(s3, "past")).length;
  await wait(30);
  const point = new Date().toISOString();
  await wait(30);
  await fill(s3, "past", names(10), () => "three");
  await s3.must("DELETE", "/past/k0020");
  await fill(s3, "past", ["added"]);
  const job = await runJob(serving, { operation: "rewind", bucket: "past", prefix: "", point });
  assert.deepEqual([job.state, job.totals.done, job.totals.failed], ["completed", 12, 0]);
  const after = new Map<string, string>();
  for (const key of await listKeys(s3, "past"))
    after.set(key, (await s3.must("GET", `/past/${key}`)).text);
  assert.deepEqual(after, before);
  // Nothing was removed: twelve changes, and as many to go back.
  assert.equal((await listVersions(s3, "past")).length, versions + 24);
  const again = await runJob(serving, { operation: "rewind", bucket: "past", prefix: "", point });
  assert.equal(again.totals.matched, 0);
});

test("locked versions are refused one by one", async () => {
  const { s3 } = serving;
  await s3.must("PUT", "/locked", { headers: { "x-amz-bucket-object-lock-enabled": "true" } });
  const until = new Date(Date.now() + 3_600_000).toISOString();
  const headers = {
    "x-amz-object-lock-mode": "GOVERNANCE",
    "x-amz-object-lock-retain-until-date": until,
  };
  await s3.must("PUT", "/locked/kept", { body: "x", headers });
  await s3.must("PUT", "/locked/free", { body: "x" });
  const job = await runJob(serving, {
    operation: "delete",
    bucket: "locked",
    prefix: "",
    versions: "all",
  });
  assert.deepEqual([job.totals.done, job.totals.failed], [1, 1]);
  const [failure] = await listFailures(serving, job.job_id);
  assert.deepEqual([failure?.key, failure?.code], ["kept", "AccessDenied"]);
  assert.deepEqual(await listKeys(s3, "locked"), ["kept"]);
});

test("a pipeline runs modules on each object, by both APIs", async () => {
  const { s3 } = serving;
  await makeBucket("texts");
  await makeBucket("texts-out", true);
  await fill(s3, "texts", names(25, "in/"), () => "ABC");
  const document = { modules: ["copy", "lower"], prefix: "in/", target_bucket: "texts-out" };
  const started = await s3.send("POST", "/texts?pipeline", { body: JSON.stringify(document) });
  assert.equal(started.status, 202, started.text);
  const { job_id } = JSON.parse(started.text) as { job_id: string };
  const job = await waitForJob(serving, job_id);
  assert.deepEqual([job.state, job.totals.done], ["completed", 25]);
  assert.equal((await s3.must("GET", "/texts-out/in/0003")).text, "abc");
  assert.equal((await listVersions(s3, "texts-out")).length, 25);
  const failing = await runJob(serving, {
    operation: "pipeline",
    bucket: "texts",
    prefix: "in/000",
    target_prefix: "bad/",
    modules: ["late"],
  });
  assert.deepEqual([failing.totals.done, failing.totals.failed], [0, 10]);
  assert.deepEqual(await listKeys(s3, "texts", "bad/"), []);
  const [failure] = await listFailures(serving, failing.job_id);
  assert.match(failure!.message, /exited/);
});

test("jobs are paused, continued, cancelled and removed", async () => {
  const { s3 } = serving;
  await makeBucket("slow");
  await fill(s3, "slow", names(200));
  const copy = { operation: "copy", bucket: "slow", prefix: "k", target_prefix: "copy/", rate: 40 };
  const id = await startJob(serving, copy);
  const change = (body: object) =>
    readJson<{ state: string; totals: { done: number } }>(
      callJson(serving, "PATCH", `/admin/batch/${id}`, body),
    );
  const paused = await change({ state: "paused" });
  assert.equal(paused.state, "paused");
  await wait(400);
  assert.equal((await readJob(serving, id)).totals.done, paused.totals.done);
  assert.ok(paused.totals.done < 200);
  await change({ state: "running", rate: 0 });
  const job = await waitForJob(serving, id);
  assert.deepEqual([job.state, job.totals.done], ["completed", 200]);
  const answer = await callJson(serving, "PATCH", `/admin/batch/${id}`, { state: "paused" });
  assert.match(answer.text, /has ended/);
  const second = await startJob(serving, { ...copy, prefix: "k", target_prefix: "second/" });
  await callJson(serving, "PATCH", `/admin/batch/${second}`, { state: "cancelled" });
  const cancelled = await readJob(serving, second);
  assert.equal(cancelled.state, "cancelled");
  assert.equal((await listKeys(s3, "slow", "second/")).length, cancelled.totals.done);
  assert.equal((await callJson(serving, "DELETE", `/admin/batch/${second}`)).status, 204);
  assert.equal((await callJson(serving, "GET", `/admin/batch/${second}`)).status, 404);
  const { items } = await readJson<{ items: { job_id: string }[] }>(
    callJson(serving, "GET", "/admin/batch/?limit=2"),
  );
  assert.equal(items.length, 2);
  assert.ok(!items.some(({ job_id }) => job_id === second));
});

test("two jobs run at a time, and others wait in the queue", async () => {
  await makeBucket("queue");
  await fill(serving.s3, "queue", names(20));
  const body = { operation: "tag", bucket: "queue", prefix: "", tags: { a: "1" }, rate: 4 };
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1) ids.push(await startJob(serving, body));
  await waitFor(async () => {
    const states = await Promise.all(ids.map(async (id) => (await readJob(serving, id)).state));
    return states.join() === "running,running,queued";
  }, "two running jobs");
  for (const id of ids) await callJson(serving, "PATCH", `/admin/batch/${id}`, { rate: 0 });
  const ends = await Promise.all(ids.map((id) => waitForJob(serving, id)));
  assert.ok(ends.every(({ totals }) => totals.done === 20));
});

test("requests that make no sense are refused with the reason", async () => {
  await makeBucket("senseless");
  await makeBucket("senseless-versioned", true);
  const base = { bucket: "senseless", prefix: "" };
  const future = new Date(Date.now() + 60_000).toISOString();
  for (const [body, status, reason] of [
    [{ ...base, operation: "move" }, 400, /operation/],
    [{ ...base, operation: "copy" }, 400, /target_prefix/],
    [{ ...base, operation: "copy", target_bucket: "senseless" }, 400, /target_prefix/],
    [{ ...base, operation: "copy", target_bucket: "nowhere" }, 404, /NoSuchBucket/],
    [{ ...base, operation: "copy", target_bucket: "system-modules" }, 403, /AccessDenied/],
    [{ ...base, operation: "tag" }, 400, /tags/],
    [{ ...base, operation: "pipeline", target_prefix: "x/" }, 400, /modules/],
    [{ ...base, operation: "pipeline", target_prefix: "x/", modules: ["none"] }, 400, /Registered/],
    [{ ...base, operation: "rewind" }, 400, /point/],
    [{ ...base, operation: "rewind", point: "2020-01-01T00:00:00Z" }, 400, /no versions/],
    [
      { operation: "rewind", bucket: "senseless-versioned", prefix: "", point: future },
      400,
      /past/,
    ],
    [{ operation: "delete", bucket: "senseless" }, 400, /exactly one/],
    [{ ...base, operation: "delete", keys: ["a"] }, 400, /exactly one/],
    [{ ...base, operation: "delete", rate: -1 }, 400, /rate/],
    [{ ...base, operation: "delete", more: 1 }, 400, /more/],
    [{ bucket: "senseless", operation: "delete", keys: [] }, 400, /keys/],
    [{ bucket: "senseless", operation: "delete", keys: Array(10_001).fill("a") }, 400, /keys/],
    [
      {
        bucket: "senseless",
        operation: "delete",
        manifest: { bucket: "senseless", key: "none", format: "csv" },
      },
      404,
      /NoSuchKey|Not/,
    ],
  ] as const) {
    const answer = await callJson(serving, "POST", "/admin/batch", body);
    assert.equal(answer.status, status, `${JSON.stringify(body).slice(0, 100)}: ${answer.text}`);
    assert.match(answer.text, reason);
  }
});

test("ten thousand named keys are accepted, and a bucket that is deleted ends its job", async () => {
  await makeBucket("large");
  const large = Array.from({ length: 10_000 }, (_, n) => `${n}-${"k".repeat(300)}`);
  const job = await runJob(serving, {
    bucket: "large",
    operation: "delete",
    keys: large,
    failure_threshold_percent: 100,
  });
  assert.equal(job.totals.failed, 10_000);
  await fill(serving.s3, "large", ["a"]);
  const id = await startJob(serving, {
    bucket: "large",
    prefix: "",
    operation: "tag",
    tags: { a: "1" },
    rate: 1,
  });
  await waitForJob(serving, id);
  await makeBucket("vanishing");
  await fill(serving.s3, "vanishing", names(4));
  const copy = { operation: "copy", bucket: "vanishing", prefix: "", target_bucket: "large" };
  const slow = await startJob(serving, { ...copy, rate: 1 });
  await callJson(serving, "PATCH", `/admin/batch/${slow}`, { state: "paused" });
  for (const key of names(4)) await serving.s3.must("DELETE", `/vanishing/${key}`);
  await serving.s3.must("DELETE", "/vanishing");
  await callJson(serving, "PATCH", `/admin/batch/${slow}`, { state: "running" });
  const ended = await waitForJob(serving, slow);
  assert.equal(ended.state, "failed");
  assert.match(ended.reason ?? "", /NoSuchBucket/);
});
