// Words on screen: each English text has a German one, and none is left over.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { DE } from "../src/words/de.ts";

const ROOT = join(import.meta.dirname, "../src");
const ENTRY = /^  ("(?:[^"\\]|\\.)*"|\w+):\s*("(?:[^"\\]|\\.)*")/gm;
const CALL = /\bt\(\s*("(?:[^"\\]|\\.)*")/g;

const used = new Set(
  globSync("**/*.{ts,tsx}", { cwd: ROOT }).flatMap((file) =>
    [...readFileSync(join(ROOT, file), "utf8").matchAll(CALL)].map(
      (match) => JSON.parse(match[1]!) as string,
    ),
  ),
);

test("each text has a German translation", () => {
  assert.deepEqual(
    [...used].filter((text) => DE[text] === undefined),
    [],
  );
});

test("no text has two translations", () => {
  const first = new Map<string, string>();
  const lines = globSync("words/german/*.ts", { cwd: ROOT }).flatMap((file) => [
    ...readFileSync(join(ROOT, file), "utf8").matchAll(ENTRY),
  ]);
  for (const [, key, value] of lines) {
    assert.equal(value, first.get(key!) ?? value, `${key} in two files`);
    first.set(key!, value!);
  }
});

test("each German text is used", () => {
  assert.deepEqual(
    Object.keys(DE).filter((text) => !used.has(text)),
    [],
  );
});

test("translations contain the same values", () => {
  const values = (text: string): string[] => (text.match(/\{\w+\}/g) ?? []).sort();
  for (const [english, german] of Object.entries(DE)) {
    assert.deepEqual(values(german), values(english), english);
  }
});
