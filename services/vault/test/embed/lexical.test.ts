// Likeness of words: of 200 short documents, the ones that queries with a known answer are about.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { compareLexically, embedLexically } from "../../src/embed/lexical.ts";

interface Corpus {
  documents: string[];
  queries: { text: string; document: number }[];
}

const corpus = JSON.parse(
  readFileSync(new URL("../search/fixtures/likeness-corpus.json", import.meta.url), "utf8"),
) as Corpus;
const FIRST = 5;

test("of forty queries, at least thirty have their document among the first five", (t) => {
  const documents = corpus.documents.map(embedLexically);
  const misses: string[] = [];
  for (const { text, document } of corpus.queries) {
    const query = embedLexically(text);
    const scores = documents.map((own) => compareLexically(query, own));
    const better = scores.filter((score) => score > scores[document]!).length;
    if (better >= FIRST) misses.push(`${text}: place ${better + 1}`);
  }
  for (const miss of misses) t.diagnostic(miss);
  assert.ok(misses.length <= 10, misses.join("\n"));
});

test("texts with the same words are alike, also in other forms and orders; others are not", () => {
  const like = (a: string, b: string): number => {
    return compareLexically(embedLexically(a), embedLexically(b));
  };
  assert.ok(like("red apples", "apples red") > 0.999);
  assert.ok(like("ＲＥＤ　apples", "red apples") > 0.999, "widths and cases");
  assert.ok(like("contract", "contracts") > 0.3);
  assert.ok(like("Straßenbahn", "straßenbahnen") > 0.3);
  assert.ok(like("contract", "weather") < 0.2);
  assert.equal(like("", "contract"), 0);
  assert.equal(like("?! —", "contract"), 0);
});
