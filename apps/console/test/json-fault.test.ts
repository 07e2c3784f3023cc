// Faults of JSON texts: found where they are, and none in texts that the browser accepts.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";

// Types of the modules are those of a browser.
const { readJson, findJsonFault } = (await import(
  new URL("../src/view/json-fault.ts", import.meta.url).href
)) as {
  readJson: (text: string) => { problem?: { line: number; column: number; message: string } };
  findJsonFault: (text: string) => object | undefined;
};

const cases: readonly [text: string, line: number, column: number, message: RegExp][] = [
  ["", 1, 1, /ends too early/],
  ['{\n  "a": 1,\n}', 2, 9, /No comma is allowed before }/],
  ["[1, 2", 1, 6, /ends too early/],
  ["[1 2]", 1, 4, /A comma or \] is expected/],
  ['{"a" 1}', 1, 6, /A colon is expected/],
  ["{a: 1}", 1, 2, /name in double quotes/],
  ["{'a': 1}", 1, 2, /name in double quotes/],
  ['{"a": nul}', 1, 7, /A value is expected/],
  ["[01]", 1, 2, /A value is expected/],
  ['["a\n"]', 1, 4, /Line breaks/],
  ['["\\x"]', 1, 3, /Unknown escape/],
  ['\n["open', 2, 2, /closing quote/],
  ["{} {}", 1, 4, /Nothing may follow/],
];

for (const [text, line, column, message] of cases) {
  test(`the fault of ${JSON.stringify(text)}`, () => {
    const { problem } = readJson(text);
    assert.deepEqual([problem?.line, problem?.column], [line, column]);
    assert.match(problem?.message ?? "", message);
  });
}

test("a fault is found exactly in texts that are not JSON", () => {
  const text = fc.oneof(
    fc.json(),
    fc.string({
      unit: fc.constantFrom(
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"',
        "\\",
        "\n",
        "0",
        "1",
        ".",
        "-",
        "e",
        "true",
        "nul",
        " ",
      ),
    }),
  );
  fc.assert(
    fc.property(text, (one) => {
      assert.equal(findJsonFault(one) !== undefined, isRefused(one));
    }),
  );
});

function isRefused(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch {
    return true;
  }
}
