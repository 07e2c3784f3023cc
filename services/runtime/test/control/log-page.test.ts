// Pages of the log: complete at every limit, over rotated files, bounded.
import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { LinePosition } from "@platform/kernel/files";
import { readLogPage } from "../../src/control/log-page.ts";

function createLine(number: number, padding = 0): string {
  const msg = `line ${number}`;
  return `${JSON.stringify({ level: "info", msg, service: "a", pad: "ä".repeat(padding) })}\n`;
}

function createFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "platform-log-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, "platform.jsonl");
}

async function readAll(path: string, limit: number, searchedBytesMax?: number): Promise<string[]> {
  const found: string[] = [];
  let before: LinePosition | undefined;
  for (let pages = 0; pages < 10_000; pages += 1) {
    const page = await readLogPage({
      path,
      before,
      limit,
      accepts: () => true,
      ...(searchedBytesMax === undefined ? {} : { searchedBytesMax }),
    });
    assert.ok(page.lines.length <= limit);
    found.push(...page.lines.map(({ msg }) => msg));
    if (page.next === undefined) return found;
    before = page.next;
  }
  return assert.fail("the pages never end");
}

test("every line is on one page, newest first, for all limits and over rotated files", async (t) => {
  const path = createFolder(t);
  const count = 40;
  // Lines of the rotated file are longer than what is read in one step.
  const lines = Array.from({ length: count }, (_, at) => createLine(at, at < 10 ? 40_000 : 3));
  writeFileSync(`${path}.2`, lines.slice(0, 20).join(""));
  writeFileSync(`${path}.1`, lines.slice(20, 30).join(""));
  writeFileSync(path, `${lines.slice(30).join("")}{"level":"info","msg":"being wri`);
  const expected = Array.from({ length: count }, (_, at) => `line ${count - 1 - at}`);
  for (const limit of [1, 2, 7, 10, 11, 40, 100]) {
    assert.deepEqual(await readAll(path, limit), expected, `limit ${limit}`);
  }
});

test("one page searches a bounded part of the file, and the next one continues there", async (t) => {
  const path = createFolder(t);
  const count = 60;
  const lines = Array.from({ length: count }, (_, at) => createLine(at, 20_000));
  writeFileSync(path, lines.join(""));
  const page = await readLogPage({
    path,
    before: undefined,
    limit: 100,
    accepts: ({ msg }) => msg === "line 0",
    searchedBytesMax: 1,
  });
  assert.deepEqual(page.lines, []);
  assert.notEqual(page.next, undefined);
  const all = await readAll(path, 100, 1);
  assert.equal(all.length, count);
});

test("a line that is longer than what one page searches is skipped", async (t) => {
  const path = createFolder(t);
  writeFileSync(path, createLine(0) + createLine(1, 2_000_000) + createLine(2));
  assert.deepEqual(await readAll(path, 10, 1), ["line 2", "line 0"]);
});

test("a position stays valid while lines are added and the file is rotated", async (t) => {
  const path = createFolder(t);
  writeFileSync(path, [0, 1, 2, 3].map((number) => createLine(number)).join(""));
  const read = (before: LinePosition | undefined) =>
    readLogPage({ path, before, limit: 2, accepts: () => true });
  const first = await read(undefined);
  appendFileSync(path, createLine(4));
  renameSync(path, `${path}.1`);
  writeFileSync(path, createLine(5));
  const second = await read(first.next);
  assert.deepEqual(
    second.lines.map(({ msg }) => msg),
    ["line 1", "line 0"],
  );
  // Its file was deleted since.
  assert.deepEqual(await read({ file: 1, offset: 100 }), { lines: [], next: undefined });
});
