// The thread of vector searches: each search has one outcome, whatever happens to the thread.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { VectorQuestion } from "../../src/search/vector-messages.ts";
import { VectorQuestions } from "../../src/search/vector-questions.ts";
import { VectorRig } from "./vector-rig.ts";

const DIMENSION = 64;

interface Rig {
  questions: VectorQuestions;
  outcomes: string[];
  ask: (more?: Partial<VectorQuestion>, signal?: AbortSignal) => Promise<string[]>;
}

function createRig(t: TestContext, vectors: number, timeoutMs: number): Rig {
  const folder = mkdtempSync(join(tmpdir(), "vault-vector-questions-"));
  const path = join(folder, "index.sqlite");
  const index = new VectorRig(t, path);
  index.connection.database.exec("begin");
  for (let n = 0; n < vectors; n += 1)
    index.add(Array.from({ length: DIMENSION }, (_, at) => Math.sin(n * at + 1)));
  index.reopen();
  const outcomes: string[] = [];
  const questions = new VectorQuestions({
    memoryBytes: 64 * 1024 * 1024,
    timeoutMs,
    onFinished: (outcome) => outcomes.push(outcome),
  });
  t.after(async () => {
    await questions.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const ask: Rig["ask"] = async (more = {}, signal = new AbortController().signal) => {
    const question: VectorQuestion = {
      path,
      bucket: 1,
      index: { dimension: DIMENSION, metric: "euclidean" },
      vector: Float32Array.from({ length: DIMENSION }, () => 1),
      k: 3,
      condition: undefined,
      exceptKey: undefined,
      includesVectors: false,
      isExact: false,
      ...more,
    };
    const { matches } = await questions.ask("tenant", question, signal);
    return matches.map(({ key }) => key);
  };
  return { questions, outcomes, ask };
}

test("the end of an idle thread is no outcome of the search before it", async (t) => {
  const { questions, outcomes, ask } = createRig(t, 20, 60_000);
  assert.equal((await ask()).length, 3);
  await questions.close();
  await wait(100);
  assert.deepEqual(outcomes, ["answered"]);
});

test("a search that takes too long is killed, and counted once", async (t) => {
  // Less than a thread takes to start.
  const { outcomes, ask } = createRig(t, 20, 5);
  await assert.rejects(ask(), { code: "QueryLimitExceeded" });
  await wait(200);
  assert.deepEqual(outcomes, ["killed"]);
});

test("an index that cannot be opened fails its search once", async (t) => {
  const { outcomes, ask } = createRig(t, 20, 60_000);
  await assert.rejects(ask({ path: "/nowhere/index.sqlite" }), { code: "InternalError" });
  assert.deepEqual(outcomes, ["failed"]);
  assert.equal((await ask()).length, 3);
});

test("a search whose client leaves is stopped, and the next one is answered", async (t) => {
  const { outcomes, ask } = createRig(t, 40_000, 60_000);
  const expected = await ask({ k: 1 });
  for (const isExact of [false, true]) {
    // Another metric: all vectors are read again.
    const index = { dimension: DIMENSION, metric: isExact ? "dot" : "cosine" } as const;
    const left = new AbortController();
    const search = ask({ index, isExact }, left.signal);
    await wait(5);
    left.abort(new Error("the client has left"));
    await assert.rejects(search, { message: "the client has left" });
    assert.deepEqual(await ask({ k: 1 }), expected);
  }
  assert.deepEqual(outcomes, ["answered", "aborted", "answered", "aborted", "answered"]);
});
