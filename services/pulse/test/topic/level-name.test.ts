// Topic names of MQTT and STOMP, mapped to the broker's and back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromLevelName, toLevelName } from "../../src/topic/level-name.ts";
import { explainTopicName } from "../../src/topic/name.ts";

const pairs: [text: string, name: string][] = [
  ["home/kitchen/temperature", "home.kitchen.temperature"],
  ["/leading//empty/", ".leading..empty."],
  ["firmware/v1.2", "firmware.v1_x2E2"],
  ["aa:bb/living room", "aa_x3Abb.living_x20room"],
  ["café/日本", "café.日本"],
  ["__own", "_x5F_own"],
  ["a_x2Eb", "a_x5Fx2Eb"],
  ["a_x5Fx2Eb", "a_x5Fx5Fx2Eb"],
  ["a_xFFb_x", "a_xFFb_x"],
  ["price/$", "price._x24"],
  ["/", "_x2F"],
  ["//", "_x2F."],
  ["///", "..."],
];

for (const [text, name] of pairs) {
  test(`${JSON.stringify(text)} is ${name}`, () => {
    assert.equal(fromLevelName(text), name);
    assert.equal(toLevelName(name), text);
    assert.equal(explainTopicName(name), undefined);
  });
}

test("every text has a name of its own, and comes back", () => {
  const alphabet = ["_", "x", "2", "E", "5", "F", ".", "/", " ", "é"];
  const names = new Set<string>();
  let count = 0;
  const visit = (text: string) => {
    if (text !== "") {
      count++;
      const name = fromLevelName(text);
      names.add(name);
      assert.equal(toLevelName(name), text);
    }
    if (text.length < 5) for (const next of alphabet) visit(text + next);
  };
  visit("");
  assert.equal(names.size, count);
});
