// Jobs on many objects, with many failures, and on a full disk.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { waitFor } from "@platform/testing/wait";
import { identity, putModule } from "../guest/guests.ts";
import { callJson, readJson } from "../serving/json-api.ts";
import { serve, type Serving } from "../serving/serving.ts";
import {
  fill,
  type Job,
  listFailures,
  listKeys,
  listVersions,
  readJob,
  startJob,
  waitForJob,
} from "./rig.ts";

/** `VAULT_JOB_KEYS=10000` is the long form: so many keys, and a hundred times as many lines of a manifest. */
const KEYS = Number(process.env["VAULT_JOB_KEYS"] ?? 60);
const LINES = KEYS * 100;
const LINE_BYTES = 10_000_000;
const TIMEOUT_MS = 60_000 + KEYS * 120;

let serving: Serving;
before(async () => {
  serving = await serve();
});
after(() => serving[Symbol.asyncDispose]());

const names = Array.from({ length: KEYS }, (_, n) => `k${String(n).padStart(5, "0")}`);

async function run(body: object): Promise<Job> {
  return waitForJob(serving, await startJob(serving, body), TIMEOUT_MS);
}

/** The keys that clients see, with their contents. */
async function look(bucket: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const keys = await listKeys(serving.s3, bucket);
  for (let at = 0; at < keys.length; at += 50) {
    const read = keys
      .slice(at, at + 50)
      .map(async (key): Promise<[string, string]> => [
        key,
        (await serving.s3.must("GET", `/${bucket}/${key}`)).text,
      ]);
    for (const [key, text] of await Promise.all(read)) found.set(key, text);
  }
  return found;
}

test("rewind of keys with five versions each shows what was seen then, and removes nothing that is locked", async () => {
  const { s3 } = serving;
  await s3.must("PUT", "/past", { headers: { "x-amz-bucket-object-lock-enabled": "true" } });
  await s3.must("PUT", "/past?object-lock", {
    body: "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>COMPLIANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>",
  });
  const write = (round: number, keys: readonly string[]) =>
    fill(s3, "past", keys, (key) => `${key} ${round}`);
  await write(1, names);
  await write(2, names);
  // Some are gone in the middle, and come back.
  const gone = names.filter((_, n) => n % 7 === 0);
  await Promise.all(gone.map((key) => s3.must("DELETE", `/past/${key}`)));
  await wait(50);
  const point = new Date().toISOString();
  const then = await look("past");
  await wait(50);
  for (const round of [3, 4, 5]) await write(round, names);
  await fill(s3, "past", ["added"]);
  const before = await listVersions(s3, "past");
  const job = await run({ operation: "rewind", bucket: "past", prefix: "", point });
  assert.deepEqual([job.state, job.totals.failed], ["completed", 0], job.reason ?? "");
  assert.equal(job.totals.done, KEYS + 1);
  assert.deepEqual(await look("past"), then);
  const after = new Set((await listVersions(s3, "past")).map(({ version }) => version));
  assert.ok(before.every(({ version }) => after.has(version)));
});

test("a manifest of bad lines, one of ten megabytes: each is a failure, and the good ones are done", async () => {
  const { s3 } = serving;
  for (const bucket of ["listed", "listed-out"]) await s3.must("PUT", `/${bucket}`);
  await fill(s3, "listed", ["first", "last"]);
  const bad = Array.from({ length: LINES }, (_, n) => (n % 2 === 0 ? `bad ${n}` : `other,k${n}`));
  const manifest = ["listed,first", "x".repeat(LINE_BYTES), ...bad, "listed,last"].join("\n");
  await s3.must("PUT", "/listed/list.csv", { body: manifest });
  const job = await run({
    operation: "copy",
    bucket: "listed",
    target_bucket: "listed-out",
    manifest: { bucket: "listed", key: "list.csv", format: "csv" },
    failure_threshold_percent: 100,
  });
  assert.equal(job.state, "completed", job.reason ?? "");
  assert.deepEqual([job.totals.done, job.totals.failed], [2, LINES + 1]);
  assert.deepEqual(await listKeys(s3, "listed-out"), ["first", "last"]);
  const { bucket, key } = job.report!;
  const report = await s3.must("GET", `/${bucket}/${key}`);
  assert.equal(report.text.trimEnd().split("\n").length, LINES + 1);
});

test("on a full disk jobs, triggers and modules say so, and go on when there is room", async () => {
  const { s3, vault } = serving;
  await putModule(serving, "copy", identity);
  for (const bucket of ["full", "full-out"]) await s3.must("PUT", `/${bucket}`);
  const trigger = {
    id: "copy",
    events: ["objstore:ObjectCreated:*"],
    module: "copy",
    target: { bucket: "full-out", key: "triggered/{name}" },
    enabled: true,
  };
  await s3.must("PUT", "/full?triggers", { body: JSON.stringify({ triggers: [trigger] }) });
  const restart = async (env: Record<string, string>): Promise<void> => {
    await vault.stop();
    await vault.start({ PLATFORM_VAULT_ENABLE_AUDIT: "false", ...env });
  };
  await restart({ PLATFORM_VAULT_GUEST_THREADS: "0" });
  await fill(s3, "full", ["a", "b"]);
  await restart({ PLATFORM_VAULT_DISK_RESERVE: String(2 ** 50) });
  const transformed = await s3.send("POST", "/full/a?transform&module=copy&target-key=c");
  assert.deepEqual([transformed.status, transformed.code], [507, "InsufficientStorage"]);
  assert.equal((await s3.must("POST", "/full/a?transform&module=copy")).text, "a");
  // A copy would share the bytes.
  const pipeline = {
    operation: "pipeline",
    bucket: "full",
    prefix: "",
    modules: ["copy"],
    target_bucket: "full-out",
    target_prefix: "piped/",
  };
  const failed = await run(pipeline);
  assert.deepEqual([failed.state, failed.totals.done, failed.totals.failed], ["completed", 0, 2]);
  const codes = (await listFailures(serving, failed.job_id)).map(({ code }) => code);
  assert.deepEqual(codes, ["InsufficientStorage", "InsufficientStorage"]);
  // The task is tried again, and is not dead.
  const countTriggers = async (): Promise<{ waiting: number; failed: number; dead: number }> => {
    const { kinds } = await readJson<{
      kinds: { kind: string; waiting: number; failed: number; dead: number }[];
    }>(callJson(serving, "GET", "/admin/tasks"));
    return kinds.find(({ kind }) => kind === "trigger")!;
  };
  await waitFor(async () => (await countTriggers()).failed >= 2, "attempts of both");
  const { waiting, dead } = await countTriggers();
  assert.deepEqual([waiting, dead], [2, 0]);
  assert.deepEqual(await listKeys(s3, "full-out"), []);

  await restart({});
  await waitFor(async () => (await listKeys(s3, "full-out")).length === 2, "both outputs");
  assert.equal((await run(pipeline)).totals.done, 2);
  assert.equal((await readJob(serving, failed.job_id)).totals.failed, 2);
});
