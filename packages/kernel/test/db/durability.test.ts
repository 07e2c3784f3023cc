// Durability after a power failure: strace delays syncs of the log, or makes them fail, in a real process.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { findStraceSkip } from "@platform/testing/strace";
import type { Notes } from "./fixtures/slow-disk.ts";

const FIXTURE = fileURLToPath(new URL("fixtures/slow-disk.ts", import.meta.url));
const SYNC_MS = 200;

describe("SQLite on a slow or failing disk", { skip: findStraceSkip() }, () => {
  const folder = mkdtempSync(join(tmpdir(), "kernel-durability-"));
  after(() => rmSync(folder, { recursive: true, force: true }));

  const run = async (
    name: string,
    injection: string,
    synchronous: "full" | "normal",
  ): Promise<{ notes: Notes; syncs: number }> => {
    const trace = join(folder, `${name}.trace`);
    const calls = ["-e", "trace=fdatasync", "-e", `inject=fdatasync:${injection}`];
    const program = [process.execPath, FIXTURE, join(folder, `${name}.db`), synchronous];
    const args = ["-f", "--seccomp-bpf", "-qq", "-y", "-o", trace, ...calls, ...program];
    const { stdout } = await promisify(execFile)("strace", args, { timeout: 60_000 });
    const syncs = readFileSync(trace, "utf8").match(/fdatasync\(\d+<[^>]*-wal>/g) ?? [];
    return { notes: JSON.parse(stdout) as Notes, syncs: syncs.length };
  };

  test("a commit is acknowledged only when it is on disk, and does not block the thread", async () => {
    const { notes, syncs } = await run("slow", `delay_enter=${SYNC_MS * 1_000}`, "full");
    assert.deepEqual(notes.refused, []);
    assert.ok(notes.writeMs >= SYNC_MS, `the write took ${notes.writeMs} ms`);
    assert.ok(notes.turns >= 3, `${notes.turns} turns`);
    assert.ok(notes.transactionMs >= SYNC_MS, `the transaction took ${notes.transactionMs} ms`);
    assert.equal(notes.rowsSeen, 3);
    assert.ok(notes.readMs >= SYNC_MS, `the row was shown after ${notes.readMs} ms`);
    // Three for the sequential writes, a few for the migration; the thirty concurrent ones share.
    assert.ok(syncs >= 4 && syncs < 20, `${syncs} syncs`);
  });

  test("with synchronous = normal, writes do not wait for the disk", async () => {
    const { notes, syncs } = await run("lax", `delay_enter=${SYNC_MS * 1_000}`, "normal");
    assert.deepEqual(notes.refused, []);
    assert.equal(notes.rowsSeen, 3);
    assert.equal(syncs, 0);
  });

  test("after a failed sync no write is acknowledged and no read returns", async () => {
    const { notes } = await run("broken", "error=EIO", "full");
    assert.deepEqual(notes.refused, Array(5).fill("unavailable"));
    assert.equal(notes.rowsSeen, 0);
    assert.equal(notes.check, "the database does not respond: unavailable");
  });
});
