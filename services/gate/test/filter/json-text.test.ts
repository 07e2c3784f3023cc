// JSON texts: what JSON.parse refuses, and names that occur twice.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readJson } from "../../src/filter/openapi/json-text.ts";

test("values are those of JSON.parse, names in different objects may be equal", () => {
  for (const text of [
    '{"a":{"a":{"a":[{"a":1},{"a":2},["a","a"]]}},"b":"a","c":"{\\"a\\":1,\\"a\\":2}"}',
    '[{"x":"\\\\"},{"x":"\\\\\\""},"x","x"]',
    '{"":{},"a\\"b":1,"a\\\\b":2,"__proto__":1}',
    ' "a" ',
    "null",
    '{ "a" : "," , "b" : "{" }',
  ]) {
    assert.deepEqual(readJson(text), { value: JSON.parse(text) }, text);
  }
});

test("a name that an object has twice is refused, however it is written", () => {
  for (const [text, name] of [
    ['{"a":1,"a":2}', "a"],
    ['{"a":1,"\\u0061":2}', "a"],
    ['{"x":[{"b":{},"a":[],"b":1}]}', "b"],
    ['{"a\\"":1,"a\\u0022":2}', 'a"'],
    ['{"":1,"":2}', ""],
    ['{"a":{"b":1},"c":"a","a":1}', "a"],
    ['{"\\\\":1,"\\\\":2}', "\\"],
  ] as const) {
    assert.deepEqual(readJson(text), { fault: `has the name ${JSON.stringify(name)} twice` }, text);
  }
  for (const text of ["", "{", '{"a":1,}', "[1 2]", '"\\x"'])
    assert.deepEqual(readJson(text), { fault: "is not JSON" }, text);
});

test("long texts take linear time", () => {
  const quotes = `"${'\\\\\\"'.repeat(200_000)}"`;
  const names = Array.from({ length: 100_000 }, (_, index) => `"n${index}":[{}]`).join();
  const startedMs = performance.now();
  for (const text of [quotes, `{${names}}`, `${"[".repeat(1_000)}${"]".repeat(1_000)}`])
    assert.ok("value" in readJson(text));
  assert.ok(performance.now() - startedMs < 10_000);
});
