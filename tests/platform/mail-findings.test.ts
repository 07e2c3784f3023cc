// Findings of mail's checks in the console: each code has words, which say what the service says.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FINDINGS } from "../../services/notify/src/check/findings.ts";

const CONSOLE = join(import.meta.dirname, "../../apps/console/src/mail/findings.ts");
const ENTRY = /^ {4}(\w+): \(\) =>\s*t\(\s*("(?:[^"\\]|\\.)*"),\s*params,?\s*\)/gm;

test("the console has the sentence of every finding", () => {
  const words = [...readFileSync(CONSOLE, "utf8").matchAll(ENTRY)].map(
    ([, code, text]) => [code, JSON.parse(text!)] as const,
  );
  const sentences = Object.entries(FINDINGS).map(([code, [, text]]) => [code, text] as const);
  assert.deepEqual(Object.fromEntries(words), Object.fromEntries(sentences));
});
