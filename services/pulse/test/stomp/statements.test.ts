// Each statement of the protocol has a test that exists, or a reason why not.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { STATEMENTS } from "./statements.ts";

test("the tests of the ledger exist", () => {
  for (const { statement, test: covered } of STATEMENTS) {
    if ("deviation" in covered) continue;
    const [file, name] = covered;
    const text = readFileSync(new URL(file, import.meta.url), "utf8");
    const isFound = [`test("${name}`, `describe("${name}`].some((start) => text.includes(start));
    assert.ok(isFound, `${statement}: ${file} has no test ${name}`);
  }
});
