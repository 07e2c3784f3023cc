// Bounds of jobs: how many wait, and how many are remembered.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createLogger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import { waitFor } from "@platform/testing/wait";
import type { Directory } from "../../src/access/directory.ts";
import { JobEngine } from "../../src/job/job-engine.ts";
import type { Run } from "../../src/job/run-steps.ts";
import type { JobProgress, JobSpec } from "../../src/model/job.ts";
import { S3Error } from "../../src/model/s3-error.ts";
import type { Store } from "../../src/object-store.ts";
import { openStore } from "../../src/open-store.ts";
import type { InnerOperations } from "../../src/s3/inner-operations.ts";

const QUEUED_MAX = 1_000;
const DAY_MS = 86_400_000;

async function openFolder(t: TestContext, clock?: Clock): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), "vault-bounds-"));
  const store = await openStore({
    dataDir: join(folder, "data"),
    ...(clock === undefined ? {} : { clock }),
  });
  t.after(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return store;
}

/** A job that works until it is stopped. */
class EndlessRun implements Run {
  readonly #begin: () => Promise<unknown>;
  readonly #signal: AbortSignal;

  constructor(begin: () => Promise<unknown>, signal: AbortSignal) {
    this.#begin = begin;
    this.#signal = signal;
  }

  set rate(_rate: number) {}

  async run(): Promise<void> {
    await this.#begin();
    if (!this.#signal.aborted) await once(this.#signal, "abort");
  }
}

test("two jobs run, a thousand wait, more are refused, and a place that gets free is taken", async (t) => {
  const store = await openFolder(t);
  const owner = { id: "owner", displayName: "owner" };
  const log = createLogger({ service: "vault", format: "json", write: () => undefined });
  const engine = new JobEngine({
    store,
    directory: {} as Directory,
    owner,
    region: "us-east-1",
    log,
    rate: 0,
    beginOther: ({ id }, _spec, signal) => new EndlessRun(() => store.jobs.begin(id), signal),
    onEnd: () => undefined,
  });
  t.after(() => engine.stop());
  engine.start({} as InnerOperations);
  const requester = { principals: [{ kind: "root" as const }], address: "", secure: false };
  const spec = { operation: "backup", repository: { path: "r" }, requester } as const;
  const ids: string[] = [];
  for (let n = 0; n < QUEUED_MAX + 2; n += 1) ids.push(await engine.submit(spec));
  await waitFor(() => engine.counts.queued === QUEUED_MAX, "two that have begun");
  assert.deepEqual(engine.counts, { running: 2, queued: QUEUED_MAX });
  await assert.rejects(engine.submit(spec), (error) => {
    assert.ok(error instanceof S3Error);
    assert.equal(error.code, "SlowDown");
    assert.match(error.message, /1000 jobs are queued already/);
    return true;
  });
  await engine.remove(ids[0]!);
  await waitFor(() => engine.counts.queued < QUEUED_MAX, "the next one has begun");
  await engine.submit(spec);
  await assert.rejects(engine.submit(spec), /queued already/);
});

test("the last thousand jobs of ninety days are remembered, and those that run", async (t) => {
  let nowMs = Date.parse("2026-01-01T00:00:00Z");
  const clock: Clock = { now: () => nowMs, monotonicMs: () => performance.now() };
  const store = await openFolder(t, clock);
  const zero = { matched: 0, done: 0, failed: 0, bytes: 0, lineBytes: 0, rate: 0 };
  const progress: JobProgress = { ...zero, position: {}, samples: [] };
  const make = (): Promise<string> => store.jobs.create("untag", "root", {}, progress);
  const end = (id: string) => store.jobs.change(id, { state: "cancelled" });
  const open = await make();
  const old = await make();
  await end(old);
  nowMs += 91 * DAY_MS;
  const many = await Promise.all(Array.from({ length: 1_050 }, make));
  await Promise.all(many.map(end));
  await store.jobs.forgetOld();
  assert.equal(store.jobs.find(old), undefined);
  assert.equal(store.jobs.find(open)?.state, "queued");
  assert.equal(many.filter((id) => store.jobs.find(id) !== undefined).length, 1_000);
  assert.notEqual(store.jobs.find(many.at(-1)!), undefined);
});

test("a job keeps its rate, and half of it while the writer has much to do", async (t) => {
  const store = await openFolder(t);
  const owner = { id: "owner", displayName: "owner" };
  await store.buckets.create({ bucket: "bucket", owner, region: "us-east-1" });
  const keys = Array.from({ length: 12 }, (_, n) => `k${n}`);
  for (const key of keys)
    await store.objects.beginPut({ bucket: "bucket", key, contentLength: 0 }).commit();
  const log = createLogger({ service: "vault", format: "json", write: () => undefined });
  const calls: number[] = [];
  const operations = {
    run: () => {
      calls.push(performance.now());
      return Promise.resolve({});
    },
  } as unknown as InnerOperations;
  const engine = new JobEngine({
    store,
    directory: {} as Directory,
    owner,
    region: "us-east-1",
    log,
    rate: 40,
    beginOther: () => assert.fail("not a job of objects"),
    onEnd: () => undefined,
  });
  t.after(() => engine.stop());
  engine.start(operations);
  const spec: JobSpec = {
    operation: "untag",
    bucket: "bucket",
    prefix: "",
    keys,
    versions: "live",
    filter: {},
    targetPrefix: "",
    tags: {},
    pins: [],
    isDryRun: false,
    failurePercentMax: 50,
    reportsSuccesses: false,
    requester: { principals: [{ kind: "root" }], address: "", secure: false },
  };
  // The steps of a rate of 40 are ten objects, four times a second.
  for (const [isCrowded, pauseMs] of [
    [false, 250],
    [true, 500],
  ] as const) {
    Object.defineProperty(store.jobs, "isCrowded", { value: isCrowded, configurable: true });
    const id = await engine.submit(spec);
    await waitFor(() => store.jobs.find(id)?.state === "completed", "the end of the job");
    const [first, next] = [calls[0]!, calls[10]!];
    assert.equal(calls.length, 12);
    assert.ok(next - first >= pauseMs - 20, `${next - first} ms`);
    calls.length = 0;
  }
});
