// Places of faults in JSON texts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { placeFaults } from "../src/view/json-place.ts";

const TEXT = `{
  "Rules": [
    { "ID": "a,]}\\"", "Status": "Enabled" },
    { "ID": "b", "Filter": { "And": { "Tags": [{}, { "Key": "x" }] } } }
  ],
  "a.b": 1
}`;

const cases: readonly [path: string, line: number, column: number][] = [
  ["Rules.0.Status", 3, 23],
  ["Rules.1", 4, 5],
  ["Rules.1.Filter.And.Tags.1.Key", 4, 54],
  ["Rules.1.Filter.And.Tags.7.Key", 4, 39],
  ["Rules.1.Missing", 4, 5],
  ["a.b", 6, 3],
  ["", 1, 1],
  ["Other", 1, 1],
];
for (const [path, line, column] of cases) {
  test(`${path === "" ? "the whole document" : path} is at ${line}:${column}`, () => {
    const [problem] = placeFaults(TEXT, [{ path, message: "m" }]);
    assert.deepEqual(problem, { line, column, message: "m" });
  });
}

test("texts that are not complete, or deeply nested, have places as well", () => {
  for (const text of ["", "[", '{"a":', '"', "[".repeat(100_000)]) {
    const [problem] = placeFaults(text, [{ path: "a.b", message: "m" }]);
    assert.ok(problem!.line >= 1 && problem!.column! >= 1);
  }
});
