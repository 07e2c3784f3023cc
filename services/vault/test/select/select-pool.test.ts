// The threads of questions: fairness, limits, and questions that end their thread.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import type { S3Error } from "../../src/model/s3-error.ts";
import type { SelectStats } from "../../src/select/messages.ts";
import type { SelectRequest } from "../../src/select/request.ts";
import {
  type Answer,
  type QuestionSource,
  SelectPool,
  type SelectPoolOptions,
} from "../../src/select/select-pool.ts";
import { CSV, TO_CSV } from "./rig.ts";

interface Rig {
  pool: SelectPool;
  outcomes: string[];
  ask: (expression: string, asked?: Partial<Asked>) => Promise<Answer>;
}

interface Asked {
  tenant: string;
  source: QuestionSource;
  signal: AbortSignal;
}

function createRig(t: TestContext, options: Partial<SelectPoolOptions> = {}): Rig {
  const outcomes: string[] = [];
  const pool = new SelectPool({
    threads: 2,
    timeoutMs: 60_000,
    onFinished: (outcome) => outcomes.push(outcome),
    ...options,
  });
  t.after(() => pool.close());
  const ask: Rig["ask"] = (expression, asked = {}) => {
    const request: SelectRequest = {
      expression,
      input: CSV,
      output: TO_CSV,
      compression: "NONE",
      scanRange: undefined,
      reportsProgress: false,
    };
    const { tenant = "a", source = createSource(["n\n1\n"]), signal } = asked;
    const question = { tenant, request, source, nowMs: 0 };
    return pool.ask(question, signal ?? new AbortController().signal);
  };
  return { pool, outcomes, ask };
}

/** An object of these pieces; with `gate`, the second one waits for it. */
function createSource(pieces: readonly string[], gate?: Promise<void>): QuestionSource {
  return {
    sizeBytes: pieces.reduce((sum, piece) => sum + piece.length, 0),
    async *open() {
      for (const [index, piece] of pieces.entries()) {
        if (index > 0) await gate;
        yield Buffer.from(piece);
      }
    },
  };
}

async function readAll(answer: Answer): Promise<string> {
  let text = "";
  for (let records = await answer.next(); records !== undefined; records = await answer.next()) {
    text += records.toString();
  }
  return text;
}

/** A question that holds its thread until it is released. */
function hold(): { source: QuestionSource; release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { source: createSource(["n\n1\n", "2\n"], promise), release: resolve };
}

test("questions are answered on threads that are used again", async (t) => {
  const { pool, ask, outcomes } = createRig(t);
  for (let count = 0; count < 5; count += 1) {
    assert.equal(await readAll(await ask("SELECT n FROM S3Object")), "1\n");
  }
  await assert.rejects(async () => readAll(await ask("SELECT")), { code: "ParseEmptySelect" });
  assert.equal(pool.threads, 1);
  assert.deepEqual(outcomes, [...Array.from({ length: 5 }, () => "answered"), "refused"]);
});

test("a tenant has one thread while another waits", async (t) => {
  const { ask, pool } = createRig(t);
  const held = [hold(), hold(), hold(), hold()];
  const order: string[] = [];
  const start = async (tenant: string, index: number): Promise<void> => {
    const answer = await ask("SELECT n FROM S3Object", { tenant, source: held[index]!.source });
    order.push(`${tenant}${index}`);
    assert.equal(await readAll(answer), "1\n2\n");
  };
  const questions = [start("a", 0), start("a", 1), start("a", 2), start("b", 3)];
  await waitFor(() => pool.waiting === 2);
  held[0]!.release();
  await waitFor(() => order.length === 3);
  // `b` has waited for less time, but `a` has a thread.
  assert.deepEqual(order, ["a0", "a1", "b3"]);
  for (const { release } of held) release();
  await Promise.all(questions);
  assert.equal(order.at(-1), "a2");
});

test("further questions are refused as Busy, and those that have waited too long", async (t) => {
  const { ask, pool } = createRig(t, { threads: 1, waitingMax: 1, waitMs: 200 });
  const { source, release } = hold();
  const running = await ask("SELECT n FROM S3Object", { source });
  const waiting = ask("SELECT n FROM S3Object", { tenant: "b" });
  waiting.catch(() => undefined);
  await assert.rejects(ask("SELECT n FROM S3Object", { tenant: "c" }), (error: S3Error) => {
    assert.deepEqual([error.code, error.status], ["Busy", 503]);
    assert.deepEqual(error.headers, [["Retry-After", "5"]]);
    return true;
  });
  await assert.rejects(waiting, { code: "Busy" });
  assert.equal(pool.waiting, 0);
  release();
  assert.equal(await readAll(running), "1\n2\n");
});

test("a client that leaves while it waits leaves the queue", async (t) => {
  const { ask, pool } = createRig(t, { threads: 1 });
  const { source, release } = hold();
  const running = await ask("SELECT n FROM S3Object", { source });
  const controller = new AbortController();
  const waiting = ask("SELECT n FROM S3Object", { signal: controller.signal });
  controller.abort(new Error("gone"));
  await assert.rejects(waiting, { message: "gone" });
  assert.equal(pool.waiting, 0);
  release();
  await readAll(running);
});

// Each row has work for hours.
const ENDLESS = `SELECT COUNT(*) FROM S3Object WHERE ${Array.from({ length: 200 }, (_, n) => `n LIKE '%a%a%a%a%a%a%a%a%b${n}'`).join(" OR ")}`;
const LONG_ROWS = `n\n${`${"a".repeat(60_000)}\n`.repeat(30)}`;

test("a question that works for too long is ended, and others go on", async (t) => {
  const { ask, outcomes } = createRig(t, { timeoutMs: 1_500 });
  const endless = ask(ENDLESS, { source: createSource([LONG_ROWS]) });
  const startedMs = performance.now();
  const { source, release } = hold();
  const other = ask("SELECT n FROM S3Object", { tenant: "b", source });
  await assert.rejects(async () => readAll(await endless), { code: "QueryLimitExceeded" });
  assert.ok(performance.now() - startedMs < 10_000);
  // Time in which it waits for its object is not working time.
  release();
  assert.equal(await readAll(await other), "1\n2\n");
  assert.deepEqual(outcomes, ["killed", "answered"]);
});

test("what was read counts while a question goes on, and if it is refused", async (t) => {
  const finished: SelectStats[] = [];
  const { ask } = createRig(t, { onFinished: (_outcome, stats) => finished.push(stats) });
  const gate = Promise.withResolvers<void>();
  const pieces = ["n\n1\n2\n", "3\nx\n"];
  const answer = await ask("SELECT SUM(CAST(n AS INT)) FROM S3Object", {
    source: createSource(pieces, gate.promise),
  });
  await waitFor(() => answer.stats.processedBytes === 6);
  assert.deepEqual(answer.stats, { scannedBytes: 6, processedBytes: 6, returnedBytes: 0 });
  gate.resolve();
  await assert.rejects(readAll(answer), { code: "CastFailed" });
  assert.deepEqual(finished, [{ scannedBytes: 10, processedBytes: 10, returnedBytes: 0 }]);
});

test("a question that is closed ends its thread", async (t) => {
  const { ask, pool, outcomes } = createRig(t);
  const answer = await ask(ENDLESS, { source: createSource([LONG_ROWS]) });
  answer.close();
  await assert.rejects(answer.next());
  assert.equal(pool.threads, 0);
  assert.deepEqual(outcomes, ["aborted"]);
  assert.equal(await readAll(await ask("SELECT n FROM S3Object")), "1\n");
});

test("a thread stops while its results are not read", async (t) => {
  const { ask } = createRig(t);
  let opened = 0;
  const piece = `${"x".repeat(99)}\n`.repeat(1_000);
  const source: QuestionSource = {
    sizeBytes: 1e9,
    async *open() {
      yield Buffer.from("n\n");
      for (; opened < 5_000; opened += 1) yield Buffer.from(piece);
    },
  };
  const answer = await ask("SELECT n FROM S3Object", { source });
  await answer.next();
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.ok(opened < 30, `${opened} pieces of 100 KB were read`);
  answer.close();
});

test("a failure of the object ends the question with its error", async (t) => {
  const { ask } = createRig(t);
  const source: QuestionSource = {
    sizeBytes: 100,
    // oxlint-disable-next-line require-yield -- it fails before its first piece
    async *open() {
      throw new Error("damaged");
    },
  };
  const answer = await ask("SELECT n FROM S3Object", { source });
  await assert.rejects(readAll(answer), { message: "damaged" });
});

test("closing the pool ends all questions", async (t) => {
  const { ask, pool } = createRig(t, { threads: 1 });
  const { source } = hold();
  const running = await ask("SELECT n FROM S3Object", { source });
  const waiting = ask("SELECT n FROM S3Object");
  waiting.catch(() => undefined);
  await pool.close();
  await assert.rejects(waiting, { code: "Busy" });
  await assert.rejects(running.next());
  await assert.rejects(ask("SELECT n FROM S3Object"), { code: "Busy" });
});
