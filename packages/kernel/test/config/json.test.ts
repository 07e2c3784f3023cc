// The JSON parser with positions: same values as JSON.parse, positions, errors, limits.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { JsonSyntaxError, parseJson, type JsonPath } from "@platform/kernel/config";

function hasProto(value: unknown): boolean {
  return JSON.stringify(value).includes("__proto__");
}

test("JSON documents parse to the same values as with JSON.parse, with any indentation", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(0, 2, "\t"), (value, indent) => {
      fc.pre(!hasProto(value));
      const text = JSON.stringify(value, null, indent);
      assert.deepEqual(parseJson(text).value, JSON.parse(text));
    }),
    { numRuns: 500 },
  );
});

test("a text is rejected exactly if JSON.parse rejects it", () => {
  const alphabet = fc.constantFrom(
    ...'{ } [ ] " , : \\ n t u 0 1 - . e E +'.split(" "),
    " ",
    "\n",
    "true",
    "null",
    '"a"',
    "\\u00e9",
    "\u0001",
  );
  fc.assert(
    fc.property(fc.array(alphabet, { maxLength: 12 }), (parts) => {
      const text = parts.join("");
      let expected: { value: unknown } | undefined;
      try {
        expected = { value: JSON.parse(text) };
      } catch {
        expected = undefined;
      }
      try {
        const actual = parseJson(text).value;
        assert.ok(expected !== undefined, `accepted ${JSON.stringify(text)}`);
        assert.deepEqual(actual, expected.value);
      } catch (error) {
        assert.ok(error instanceof JsonSyntaxError, String(error));
        // Only duplicate keys and overflowing numbers are additional errors.
        if (!/duplicate|too large/.test(error.message)) assert.equal(expected, undefined, text);
      }
    }),
    { numRuns: 3000 },
  );
});

test("positions of values and keys are their lines and columns", () => {
  const document = parseJson('\ufeff{\n  "a": [1,\n    {"b": "x"}]\n}');
  const place = (path: JsonPath) => document.locateValue(path);
  assert.deepEqual(place([]), { line: 1, column: 2 });
  assert.deepEqual(place(["a"]), { line: 2, column: 8 });
  assert.deepEqual(place(["a", 1]), { line: 3, column: 5 });
  assert.deepEqual(place(["a", 1, "b"]), { line: 3, column: 11 });
  assert.deepEqual(document.locateKey(["a", 1, "b"]), { line: 3, column: 6 });
  assert.equal(document.locateKey(["a", 1]), undefined);
  assert.equal(place(["a", 2]), undefined);
  assert.equal(place(["toString"]), undefined);
});

const refused: [text: string, message: RegExp, line: number, column: number][] = [
  ['{"a": 1,\n "a": 2}', /duplicate key "a"/, 2, 2],
  ['{"__proto__": {"x": 1}}', /"__proto__" is not allowed/, 1, 2],
  [String.raw`{"__pr\u006fto__": 1}`, /"__proto__" is not allowed/, 1, 2],
  ["[1,]", /no "," is allowed before "]"/, 1, 3],
  ['{"a":1,}', /no "," is allowed before "}"/, 1, 7],
  ["{a: 1}", /expected a key in double quotes/, 1, 2],
  ["[1e999]", /number is too large/, 1, 2],
  ["// note\n1", /expected a value/, 1, 1],
  ['"abc', /unterminated string/, 1, 1],
  ["01", /expected the end/, 1, 2],
  ["", /unexpected end/, 1, 1],
];
for (const [text, message, line, column] of refused) {
  test(`${JSON.stringify(text)} is rejected at ${line}:${column}`, () => {
    assert.throws(
      () => parseJson(text),
      (error: unknown) => {
        assert.ok(error instanceof JsonSyntaxError);
        assert.match(error.message, message);
        assert.deepEqual(error.position, { line, column });
        return true;
      },
    );
  });
}

test("depth and length are limited, inclusively", () => {
  const nest = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
  parseJson(nest(64));
  assert.throws(() => parseJson(nest(65)), /nested deeper than 64/);
  parseJson(nest(3), { depthMax: 3 });
  assert.throws(() => parseJson(nest(4), { depthMax: 3 }), JsonSyntaxError);
  parseJson("12345", { textMax: 5 });
  assert.throws(() => parseJson("123456", { textMax: 5 }), /more than the 5 allowed/);
});
