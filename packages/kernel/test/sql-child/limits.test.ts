// Limits of questions, and what is left of a question that has reached one.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { waitFor } from "@platform/testing/wait";
import type { SqlDatabase } from "../../src/sql-child/index.ts";
import { createRig } from "./rig.ts";

const NONE: SqlDatabase = { kind: "tables", tables: [] };
const NUMBERS: SqlDatabase = {
  kind: "tables",
  tables: [
    {
      name: "n",
      columns: ["x"],
      rows: () => [Array.from({ length: 2_000 }, (_, index) => [index])],
    },
  ],
};
const LOWEST = "19";
/** Work for years. */
const ENDLESS =
  "select count(*) from n a, n b, n c, n d, n e where a.x + b.x + c.x + d.x + e.x = -1";

/** Process ids of the children of a process. */
function listChildren(pid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => readStatus(name)?.includes(`\nPPid:\t${pid}\n`))
    .map(Number);
}

function readChildPriority(pid: number): string {
  return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")[16]!;
}

function readStatus(pid: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return undefined;
  }
}

test("an answer is cut at its limits of rows and bytes", async (t) => {
  const { ask } = createRig(t, { limits: { rows: 10, bytes: 40_000 } });
  const rows = await ask(NUMBERS, "select x from n order by x");
  assert.deepEqual([rows.rows.length, rows.isTruncated, rows.rows.at(-1)], [10, true, [9]]);
  const exact = await ask(NUMBERS, "select x from n limit 10");
  assert.deepEqual([exact.rows.length, exact.isTruncated], [10, false]);
  const bytes = await ask(NUMBERS, "select printf('%.*c', 15000, 'x') from n limit 5");
  assert.deepEqual([bytes.rows.length, bytes.isTruncated], [2, true]);
});

test("long values are cut if only their beginning is shown", async (t) => {
  const { ask } = createRig(t, { limits: { shownBytes: 8 } });
  const { rows } = await ask(NONE, "select 'aaaaaaaéx', 'aaaaaaa', zeroblob(100), 12");
  assert.deepEqual(rows, [
    [{ head: "aaaaaaa", bytes: 10 }, "aaaaaaa", { head: new Uint8Array(8), bytes: 100 }, 12],
  ]);
});

test("a statement that runs for too long is killed, and the next one is answered", async (t) => {
  const { ask, pool, outcomes } = createRig(t, { limits: { timeMs: 2_500 } });
  await ask(NONE, "select 1");
  const [before] = listChildren(process.pid);
  await assert.rejects(ask(NUMBERS, ENDLESS), { kind: "limit", limit: "time" });
  assert.deepEqual((await ask(NONE, "select 2")).rows, [[2]]);
  assert.ok(!listChildren(process.pid).includes(before!), "the first child has ended");
  assert.equal(pool.children, 1);
  assert.deepEqual(outcomes, ["answered", "killed", "answered"]);
});

test("a statement with too much memory, too long values or too many parts ends with its limit", async (t) => {
  const { ask } = createRig(t);
  const refused = async (sql: string, limit: string, database = NUMBERS): Promise<void> => {
    await assert.rejects(ask(database, sql), { kind: "limit", limit }, sql.slice(0, 100));
  };
  await refused(
    "select a.x || printf('%.*c', 1000, 'x') as y from n a, n b order by y limit 1 offset 200000",
    "memory",
  );
  await refused("select printf('%.*c', 500000000, 'x')", "value");
  await refused("select zeroblob(1e9)", "value");
  await refused("select hex(randomblob(1000000))", "value");
  await refused(`select ${"x".repeat(70_000)}`, "statement");
  await refused(`select ${Array.from({ length: 3_000 }, () => "1").join("+")}`, "complexity");
  await refused(Array.from({ length: 600 }, () => "select 1").join(" union all "), "complexity");
  assert.deepEqual((await ask(NONE, "select 1")).rows, [[1]]);
});

test("tenants share the children, and further questions are refused as busy", async (t) => {
  const { ask, pool } = createRig(t, { waitingMax: 1, limits: { timeMs: 3_000 } });
  const running = ask(NUMBERS, ENDLESS);
  running.catch(() => undefined);
  await waitFor(() => pool.children === 1);
  const waiting = ask(NONE, "select 1", { tenant: "b" });
  await waitFor(() => pool.waiting === 1);
  await assert.rejects(ask(NONE, "select 1", { tenant: "c" }), { kind: "busy" });
  await assert.rejects(running, { limit: "time" });
  assert.deepEqual((await waiting).rows, [[1]]);
});

test("a question whose author leaves ends its child", async (t) => {
  const { ask, outcomes } = createRig(t);
  const controller = new AbortController();
  const running = ask(NUMBERS, ENDLESS, { signal: controller.signal });
  running.catch(() => undefined);
  await waitFor(() => listChildren(process.pid).length === 1);
  controller.abort(new Error("gone"));
  await assert.rejects(running, { message: "gone" });
  assert.deepEqual(listChildren(process.pid), []);
  assert.deepEqual(outcomes, ["aborted"]);
});

test("a statement that takes long gives way to all other work, and the next one does not", async (t) => {
  const { ask } = createRig(t, { limits: { timeMs: 60_000 } });
  await ask(NONE, "select 1");
  const readPriority = (): string => readChildPriority(listChildren(process.pid)[0]!);
  const usual = readPriority();
  assert.notEqual(usual, LOWEST);
  const controller = new AbortController();
  const running = ask(NUMBERS, ENDLESS, { signal: controller.signal });
  running.catch(() => undefined);
  await waitFor(() => readPriority() === LOWEST);
  controller.abort(new Error("gone"));
  await assert.rejects(running, { message: "gone" });
  const long = `with recursive r(x) as (select 1 union all select x + 1 from r where x < 5000000) select count(*) from n, r where n.x = 0`;
  await ask(NUMBERS, long).catch(() => undefined);
  await ask(NONE, "select 1");
  assert.equal(readPriority(), usual);
});

test("children have no secrets, and end when they are idle", async (t) => {
  process.env["SQL_CHILD_SECRET"] = "hunter2";
  t.after(() => delete process.env["SQL_CHILD_SECRET"]);
  const { ask, pool } = createRig(t, { idleMs: 300 });
  await ask(NONE, "select 1");
  const [child] = listChildren(process.pid);
  assert.doesNotMatch(readFileSync(`/proc/${child}/environ`, "utf8"), /hunter2/);
  await waitFor(() => listChildren(process.pid).length === 0);
  assert.equal(pool.children, 0);
});

test("a child ends with its service, also in the middle of a statement", async () => {
  const service = spawn(
    process.execPath,
    [fileURLToPath(new URL("./endless-service.ts", import.meta.url))],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  await Promise.race([
    once(service.stdout, "data"),
    once(service, "exit").then(() => assert.fail("the service has ended")),
  ]);
  await waitFor(() => listChildren(service.pid!).length === 1);
  const [child] = listChildren(service.pid!);
  service.kill("SIGKILL");
  await waitFor(() => readStatus(String(child)) === undefined);
});
