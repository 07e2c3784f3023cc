// The weights of the prompt guard's model are those of its corpus, and training finds what tells attacks apart.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  hashLessons,
  listLessons,
  readModuleHash,
  toLesson,
  train,
} from "./write-wording-weights.ts";

test("the model was trained with the corpus as it is", () => {
  assert.equal(readModuleHash(), hashLessons(listLessons()), "node tools/write-wording-weights.ts");
});

test("training raises the weights of words of attacks, and lowers those of others", () => {
  const attacks = ["zorp the gate", "zorp it now", "please zorp"];
  const others = ["open the gate", "do it now", "please wait"];
  const { features } = train([
    ...attacks.map((text) => toLesson(text, true, 1)),
    ...others.map((text) => toLesson(text, false, 1)),
  ]);
  const weigh = (text: string): number[] =>
    toLesson(text, true, 1).parts[0]!.map((feature) => features[feature]!);
  assert.ok(Math.max(...weigh("zorp")) > 0);
  assert.ok(Math.min(...weigh("open")) < 0);
});
