// The corpus of the prompt guard is large enough, and its split is fixed.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { HELD_OUT_FAMILIES } from "./corpus/attacks.ts";
import { ATTACKS, HARMLESS_SAMPLES } from "./corpus/corpus.ts";

test("the corpus has enough attacks, harmless prompts and look-alikes, each once and in one part", () => {
  assert.ok(ATTACKS.length >= 300);
  assert.ok(HARMLESS_SAMPLES.length >= 1_500);
  const lookalikes = HARMLESS_SAMPLES.filter(({ family }) => family === "lookalikes");
  assert.ok(lookalikes.length * 2 >= HARMLESS_SAMPLES.length);
  assert.ok(new Set(ATTACKS.map(({ family }) => family)).size >= 10);
  assert.equal(HELD_OUT_FAMILIES.size, 2);
  const all = [...ATTACKS, ...HARMLESS_SAMPLES];
  assert.equal(new Set(all.map(({ text }) => text)).size, all.length);
  assert.ok(all.every(({ text }) => !/\{[a-z]\w*\}/.test(text)));
});

test("the corpus is that which was there before the rules", () => {
  const hash = createHash("sha256");
  for (const { text, family, part } of [...ATTACKS, ...HARMLESS_SAMPLES])
    hash.update(`${family}\n${part}\n${text}\n`);
  assert.equal(hash.digest("hex").slice(0, 32), "ff5dadba2941e53fcb66ca11366c1766");
});
