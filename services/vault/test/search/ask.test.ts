// Plain questions: the corpus that was written before the grammar, with held-out wordings, and questions without sense.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { interpretQuestion } from "../../src/search/ask/grammar.ts";
import type { Interpretation } from "../../src/search/ask/interpretation.ts";

interface Corpus {
  now: string;
  intents: { intent: string; expected: Interpretation; wordings: string[]; held_out: string[] }[];
}

const corpus = JSON.parse(
  readFileSync(new URL("fixtures/ask-corpus.json", import.meta.url), "utf8"),
) as Corpus;
const nowMs = Date.parse(corpus.now);

/** Conditions and words of a text have no order. */
function normalize(value: Interpretation): unknown {
  const { filters, text, ...rest } = value;
  const all = (filters["$and"] as object[] | undefined) ?? [filters];
  const conditions = all.map((one) => JSON.stringify(one)).toSorted();
  return { ...rest, conditions, words: text?.split(" ").toSorted() };
}

test("of a hundred questions, at least ninety have the expected filters, and forty of fifty that were held out", (t) => {
  const right = { wordings: 0, held_out: 0 };
  const misses: string[] = [];
  for (const { intent, expected, ...asked } of corpus.intents) {
    for (const set of ["wordings", "held_out"] as const) {
      for (const question of asked[set]) {
        const found = interpretQuestion(question, nowMs);
        if (isDeepStrictEqual(normalize(found), normalize(expected))) right[set] += 1;
        else misses.push(`${intent}, ${set}: ${question} → ${JSON.stringify(found)}`);
      }
    }
  }
  for (const miss of misses) t.diagnostic(miss);
  t.diagnostic(`${right.wordings} of 50, held out ${right.held_out} of 50`);
  assert.ok(right.wordings + right.held_out >= 90, misses.join("\n"));
  assert.ok(right.held_out >= 40);
});

test("questions without sense are texts or nothing, in little time", () => {
  const senseless: [question: string, expected: Interpretation][] = [
    ["?!", { filters: {} }],
    ["all files", { filters: {} }],
    ["'; drop table objects; --", { filters: {}, text: "drop table" }],
    ["所有图片", { filters: {}, text: "所有图片" }],
    ["larger than", { filters: {}, text: "larger than" }],
    ["files before 2026-02-31", { filters: {}, text: "before 2026-02-31" }],
    ['files named "a\'b"', { filters: { key: { $contains: "a'b" } } }],
  ];
  for (const [question, expected] of senseless) {
    assert.deepEqual(interpretQuestion(question, nowMs), expected, question);
  }
  // Processor time: others may keep the processor busy.
  const begun = process.cpuUsage();
  for (const word of ["over 1 mb ", "without tag ", "between 1 and ", '" ', "not "]) {
    interpretQuestion(word.repeat(2_000).slice(0, 2_000), nowMs);
  }
  assert.ok(process.cpuUsage(begun).user < 2_000_000);
});
