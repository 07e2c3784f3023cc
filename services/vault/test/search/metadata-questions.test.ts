// The processes of questions about metadata: a damaged index is a fault of the store, and they give way to everyone else.
import assert from "node:assert/strict";
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { MetadataQuestions } from "../../src/search/metadata-questions.ts";
import { VectorRig } from "./vector-rig.ts";

const OBJECTS = 2_000;
const PAGE_BYTES = 4_096;

function createRig(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "vault-metadata-questions-"));
  const path = join(folder, "index.sqlite");
  const index = new VectorRig(t, path);
  index.connection.database.exec("begin");
  for (let n = 0; n < OBJECTS; n += 1) index.add([n]);
  index.reopen();
  const outcomes: string[] = [];
  const store = {
    buckets: { requireState: () => ({ id: 1 }) },
    snapshotIndex: () =>
      Promise.resolve({ path, logBytesMax: 1, measureLog: () => 0, release: () => undefined }),
  };
  const questions = new MetadataQuestions({
    store: store as never,
    timeoutMs: 20_000,
    onFinished: (outcome) => outcomes.push(outcome),
  });
  t.after(async () => {
    await questions.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const ask = (sql: string, signal = new AbortController().signal) =>
    questions.ask({ tenant: "a", bucket: "bucket", prefix: "", sql }, signal);
  return { path, outcomes, ask };
}

test("a damaged index is an error of the store, not of the question", async (t) => {
  const { path, outcomes, ask } = createRig(t);
  const sql = "select count(*), sum(length(tags)) from objects";
  assert.equal(Number((await ask(sql)).rows[0]?.[0]), OBJECTS);
  const file = openSync(path, "r+");
  const noise = Buffer.alloc(PAGE_BYTES, 0xee);
  for (let at = 20 * PAGE_BYTES; at < statSync(path).size; at += PAGE_BYTES)
    writeSync(file, noise, 0, PAGE_BYTES, at);
  closeSync(file);
  await assert.rejects(ask(sql), { code: "InternalError" });
  assert.deepEqual(outcomes, ["answered", "failed"]);
});

test(
  "a process that works has the lowest priority, and ends when its client leaves",
  { skip: process.platform === "linux" ? false : "priorities are read from /proc" },
  async (t) => {
    const { ask } = createRig(t);
    const digits = "(values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9))";
    const product = Array.from({ length: 16 }, (_, n) => `${digits} as t${n}`).join(", ");
    const leaving = new AbortController();
    const endless = ask(`select count(*) from ${product}`, leaving.signal);
    endless.catch(() => undefined);
    await waitFor(() => listPriorities().includes(constants.priority.PRIORITY_LOW), "the priority");
    leaving.abort(new Error("gone"));
    await assert.rejects(endless, /gone/);
    await waitFor(() => listPriorities().length === 0, "the end of the process");
  },
);

/** Nice values of the children of this process. */
function listPriorities(): number[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const text = readFileSync(`/proc/${name}/stat`, "utf8");
      const [, parent, ...rest] = text.slice(text.lastIndexOf(")") + 2).split(" ");
      return Number(parent) === process.pid ? [Number(rest[14])] : [];
    } catch {
      return [];
    }
  });
}
