// Pages of the guide with shell blocks: each is typed by a test of this folder.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { readBlocks, UNTYPED } from "./page.ts";

/** Its commands require root and systemd: `platform/units.test.ts` runs those of the units. */
const OF_A_SERVER = "production.md";

const isShell = ({ language }: { language: string }): boolean => language === "sh";

test("each page with shell blocks is typed by a test, as it stands", () => {
  const tests = readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith(".test.ts") && name !== "blocks.test.ts")
    .map((name) => readFileSync(new URL(name, import.meta.url), "utf8"));
  const untyped = readdirSync(new URL("../../docs/guide", import.meta.url))
    .filter((name) => name.endsWith(".md") && readBlocks(name).some(isShell))
    .filter((name) => !tests.some((text) => text.includes(`"${name}"`)));
  assert.deepEqual(untyped, [OF_A_SERVER]);
});

test("the list of blocks that are not typed is that of the pages", () => {
  for (const [page, parts] of Object.entries(UNTYPED)) {
    const shell = readBlocks(page).filter(isShell);
    for (const part of Object.keys(parts)) {
      assert.equal(shell.filter(({ text }) => text.includes(part)).length, 1, `${page}: ${part}`);
    }
  }
});
