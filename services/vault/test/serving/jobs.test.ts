// Background work over the admin API: listed, started, followed and cancelled.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeBytes } from "../store/fixture.ts";
import { serve, type Serving } from "./serving.ts";

interface Job {
  kind: string;
  state: string;
  started_at: string | null;
  progress: { unit: string; done: number; total: number; bytes: number } | null;
  next_at: string | null;
  actions: string[];
  last: { outcome: string; ended_at: string; counts: Record<string, number> } | null;
}

let serving: Serving;

before(async () => {
  serving = await serve();
});
after(() => serving[Symbol.asyncDispose]());

async function find(kind: string): Promise<Job> {
  const { text } = await serving.admin.must("GET", "/api/v1/jobs");
  const found = (JSON.parse(text) as { items: Job[] }).items.find((job) => job.kind === kind);
  assert.ok(found !== undefined, text);
  return found;
}

async function act(kind: string, action: string): Promise<Job> {
  const answer = await serving.admin.send("POST", `/api/v1/jobs/${kind}/${action}`);
  assert.equal(answer.status, 202, answer.text);
  return JSON.parse(answer.text) as Job;
}

function waitForEnd(kind: string): Promise<Job> {
  return waitFor(async () => {
    const job = await find(kind);
    return job.state === "idle" ? job : undefined;
  }, `the end of ${kind}`);
}

test("each kind of work is planned, runs on request, and says what it did", async () => {
  await serving.s3.must("PUT", "/bucket");
  for (const kind of ["lifecycle", "compaction", "index_copy", "scrub"]) {
    const before = await find(kind);
    assert.deepEqual([before.state, before.progress, before.actions], ["idle", null, ["start"]]);
    assert.ok(Date.parse(before.next_at!) > Date.now(), kind);
    const started = await act(kind, "start");
    assert.deepEqual([started.state, started.actions], ["running", ["cancel"]]);
    const { last } = await waitForEnd(kind);
    assert.equal(last?.outcome, "completed", kind);
    assert.ok(Math.abs(Date.parse(last.ended_at) - Date.now()) < 60_000);
  }
  assert.deepEqual((await find("lifecycle")).last?.counts, { expired: 0, aborted: 0 });
  assert.deepEqual((await find("index_copy")).last?.counts, { damaged: 0 });
});

test("a scrub shows its progress and is cancelled", async () => {
  const { s3 } = serving;
  await s3.must("PUT", "/large");
  // At 16 MiB/s each takes about two seconds.
  for (const key of ["a", "b", "c", "d"])
    await s3.must("PUT", `/large/${key}`, { body: makeBytes(32 * 1024 * 1024) });
  await act("scrub", "start");
  const running = await waitFor(async () => {
    const job = await find("scrub");
    return (job.progress?.bytes ?? 0) > 0 ? job : undefined;
  }, "a file that is done");
  assert.equal(running.progress!.unit, "files");
  assert.ok(running.progress!.done <= running.progress!.total);
  assert.ok(Math.abs(Date.parse(running.started_at!) - Date.now()) < 60_000);
  const { state, actions } = await act("scrub", "cancel");
  assert.deepEqual([state, actions], ["cancelling", []]);
  const { last } = await waitForEnd("scrub");
  assert.equal(last?.outcome, "cancelled");
  assert.ok(last.counts["files"]! < 4, JSON.stringify(last));
});

test("what cannot be done is refused: unknown work, work of other stores, cancelling what does not run", async () => {
  const send = async (path: string) => (await serving.admin.send("POST", path)).status;
  assert.equal(await send("/api/v1/jobs/lifecycle/cancel"), 409);
  assert.equal(await send("/api/v1/jobs/healing/start"), 404);
  assert.equal(await send("/api/v1/jobs/mining/start"), 400);
  assert.equal(await send("/api/v1/jobs/scrub/delete"), 404);
});
