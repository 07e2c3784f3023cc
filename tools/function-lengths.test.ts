// The search for long functions.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findLongFunctions } from "./function-lengths.ts";

test("functions of more than 60 lines are found with their kind; blank lines and comments do not count", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "platform-lint-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const write = (name: string, head: string, lines: number): void => {
    const body = Array.from({ length: lines - 2 }, () => "  call();\n\n  // A comment.");
    writeFileSync(join(folder, name), [head, ...body, "}"].join("\n"));
  };
  mkdirSync(join(folder, "test"));
  write("just.ts", "function call() {", 60);
  write("long.ts", "function call() {", 61);
  write("routes.ts", "export function createUserRoutes() {", 61);
  write("page.tsx", "export function Page() {", 70);
  write("test/case.ts", "function call() {", 80);
  assert.deepEqual(
    findLongFunctions([folder]).map(({ path, kind, lines }) => [
      path.slice(path.indexOf("lint-")).split("/").slice(1).join("/"),
      kind,
      lines,
    ]),
    [
      ["long.ts", "code", 61],
      ["page.tsx", "components", 70],
      ["routes.ts", "routes", 61],
      ["test/case.ts", "tests", 80],
    ],
  );
});
