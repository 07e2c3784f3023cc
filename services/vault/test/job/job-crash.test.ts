// Jobs of a service that is killed, and of users with few rights.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { identity, putModule } from "../guest/guests.ts";
import { addReader, callJson, readJson } from "../serving/json-api.ts";
import { S3TestClient } from "../serving/s3-client.ts";
import { serve, type Serving } from "../serving/serving.ts";
import {
  fill,
  type Job,
  listFailures,
  listKeys,
  listVersions,
  readJob,
  startJob,
  VERSIONED,
  waitForJob,
} from "./rig.ts";

/** Kills of the service under each job. */
const KILLS = Number(process.env["VAULT_JOB_KILLS"] ?? 5);

let serving: Serving;
before(async () => {
  serving = await serve();
  await putModule(serving, "copy", identity);
});
after(() => serving[Symbol.asyncDispose]());

async function makeVersioned(...buckets: string[]): Promise<void> {
  for (const bucket of buckets) {
    await serving.s3.must("PUT", `/${bucket}`);
    await serving.s3.must("PUT", `/${bucket}?versioning`, { body: VERSIONED });
  }
}

for (const operation of ["copy", "pipeline"] as const) {
  test(`after kills during a ${operation} job, nothing is skipped and nothing done twice`, async () => {
    const { s3, vault } = serving;
    await makeVersioned(`${operation}-in`, `${operation}-out`);
    const count = KILLS * 60;
    const keys = Array.from({ length: count }, (_, n) => `k${String(n).padStart(4, "0")}`);
    await fill(s3, `${operation}-in`, keys);
    const body = {
      operation,
      bucket: `${operation}-in`,
      prefix: "",
      target_bucket: `${operation}-out`,
      ...(operation === "pipeline" ? { modules: ["copy"] } : {}),
      rate: 160,
    };
    const id = await startJob(serving, body);
    for (let kill = 0; kill < KILLS; kill += 1) {
      await wait(120 + ((kill * 67) % 250));
      await vault.kill();
      await vault.start();
    }
    await callJson(serving, "PATCH", `/admin/batch/${id}`, { rate: 0 });
    // Most of the objects are left: a service that has just started does little before the next kill.
    const job = await waitForJob(serving, id, 60_000 + KILLS * 10_000);
    assert.deepEqual(
      [job.state, job.totals.matched, job.totals.done, job.totals.failed],
      ["completed", count, count, 0],
    );
    const versions = await listVersions(s3, `${operation}-out`);
    assert.deepEqual(versions.map(({ key }) => key).toSorted(), keys);
    assert.equal((await s3.must("GET", `/${operation}-out/${keys[7]}`)).text, keys[7]);
  });
}

test("a user with rights on one prefix is refused for each other object, and when disabled for all", async () => {
  const { s3 } = serving;
  await s3.must("PUT", "/shared");
  await fill(s3, "shared", ["mine/a", "mine/b", "theirs/a", "theirs/b"]);
  const key = await addReader(serving, "shared", ["s3:ListBucket"]);
  const statements = [
    { Effect: "Allow", Action: "s3:*", Resource: "arn:aws:s3:::shared/mine/*" },
    { Effect: "Allow", Action: "s3:ListBucket", Resource: "arn:aws:s3:::shared" },
  ];
  const setPolicies = (enabled: boolean, ...own: object[]) =>
    callJson(serving, "PUT", "/api/v1/users/reader", {
      enabled,
      policies: { main: { Version: "2012-10-17", Statement: own } },
      namespaces: [],
    });
  await setPolicies(true, ...statements);
  const client = new S3TestClient(serving.vault.adminPort, key);
  const start = async (body: object): Promise<string> => {
    const headers = { "content-type": "application/json" };
    const answer = await client.send("POST", "/admin/batch", {
      body: JSON.stringify(body),
      headers,
    });
    assert.equal(answer.status, 202, answer.text);
    return (JSON.parse(answer.text) as { job_id: string }).job_id;
  };
  const copy = { operation: "copy", bucket: "shared", prefix: "", target_prefix: "mine/copy/" };
  const first = await waitForJob(serving, await start(copy));
  assert.deepEqual([first.totals.done, first.totals.failed], [2, 2]);
  const refused = (await listFailures(serving, first.job_id)).map(({ key: name, code }) => [
    name,
    code,
  ]);
  assert.deepEqual(refused, [
    ["theirs/a", "AccessDenied"],
    ["theirs/b", "AccessDenied"],
  ]);
  const elsewhere = { ...copy, prefix: "mine/", target_prefix: "theirs/" };
  assert.equal((await waitForJob(serving, await start(elsewhere))).totals.done, 0);
  const remove = { operation: "delete", bucket: "shared", prefix: "theirs/" };
  assert.equal((await waitForJob(serving, await start(remove))).totals.done, 0);
  const pipeline = { ...elsewhere, operation: "pipeline", modules: ["copy"] };
  assert.equal((await waitForJob(serving, await start(pipeline))).totals.done, 0);
  assert.deepEqual(await listKeys(s3, "shared", "theirs/"), ["theirs/a", "theirs/b"]);

  // Only its maker and root see a job.
  const own = await client.send("GET", "/admin/batch/");
  assert.equal((JSON.parse(own.text) as { items: Job[] }).items.length, 4);
  const foreign = await startJob(serving, { ...remove, prefix: "none/" });
  assert.equal((await client.send("GET", `/admin/batch/${foreign}`)).status, 404);
  assert.equal((await client.send("DELETE", `/admin/batch/${foreign}`)).status, 404);
  assert.equal((await client.send("GET", "/admin/batch/", { key: null })).status, 401);

  const slow = await start({ ...copy, prefix: "mine/", target_prefix: "mine/late/", rate: 1 });
  await setPolicies(false, ...statements);
  await callJson(serving, "PATCH", `/admin/batch/${slow}`, { rate: 0 });
  const ended = await waitForJob(serving, slow);
  assert.equal(ended.state, "failed");
  assert.match(ended.reason ?? "", /disabled/);
  assert.ok((await readJob(serving, slow)).totals.done < 4);
  client.close();
});

test("a prefix cannot be explored by callers that may not list the bucket", async () => {
  const { s3 } = serving;
  await s3.must("PUT", "/secretive");
  await fill(s3, "secretive", ["hidden"]);
  const key = await addReader(serving, "secretive", ["s3:GetObject", "s3:PutObject"]);
  const client = new S3TestClient(serving.vault.adminPort, key);
  const body = { operation: "copy", bucket: "secretive", target_prefix: "x/" };
  const send = (more: object) =>
    client.send("POST", "/admin/batch", {
      body: JSON.stringify({ ...body, ...more }),
      headers: { "content-type": "application/json" },
    });
  assert.equal((await send({ prefix: "" })).status, 403);
  assert.equal((await send({ prefix: "", dry_run: true })).status, 403);
  const answer = await send({ keys: ["hidden"] });
  const { job_id } = await readJson<{ job_id: string }>(Promise.resolve(answer), 202);
  assert.equal((await waitForJob(serving, job_id)).totals.done, 1);
  client.close();
});
