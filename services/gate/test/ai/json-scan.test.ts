// The strict JSON scanner: what it refuses, where it says that values are, and that slices do not matter.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { JsonKind, JsonScanner, type JsonFaultKind } from "../../src/ai/shape/json-scan.ts";

/** The value at a node, composed of what the scanner says of it. */
function read(scanner: JsonScanner, node: number): unknown {
  switch (scanner.kind(node)) {
    case JsonKind.Object:
      return Object.fromEntries(
        [...scanner.children(node)].map((child) => [scanner.name(child), read(scanner, child)]),
      );
    case JsonKind.Array:
      return [...scanner.children(node)].map((child) => read(scanner, child));
    case JsonKind.String:
      return scanner.text(node);
    case JsonKind.Number:
      return scanner.number(node);
    case JsonKind.Null:
      return null;
    default:
      return scanner.kind(node) === JsonKind.True;
  }
}

function scanBySlices(bytes: Buffer, size: number): JsonScanner {
  const scanner = new JsonScanner();
  scanner.begin(bytes);
  while (!scanner.advance(size));
  return scanner;
}

test("each valid text has the values that JSON.parse reads, in slices of any size", () => {
  const scanner = new JsonScanner();
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), fc.integer({ min: 1, max: 9 }), (text, size) => {
      const bytes = Buffer.from(text);
      const value = JSON.parse(text) as unknown;
      assert.equal(scanner.scan(bytes), true, text);
      assert.deepEqual(read(scanner, 0), value);
      assert.deepEqual(read(scanBySlices(bytes, size), 0), value);
    }),
  );
});

test("a changed byte is refused wherever JSON.parse refuses it", () => {
  const scanner = new JsonScanner();
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 4 }),
      fc.nat(),
      fc.constantFrom(...Array.from('{}[],:"\\0e-.tfn x\n')),
      (text, place, character) => {
        const at = place % text.length;
        const changed = text.slice(0, at) + character + text.slice(at + 1);
        let value: unknown;
        let isValid = true;
        try {
          value = JSON.parse(changed);
        } catch {
          isValid = false;
        }
        const bytes = Buffer.from(changed);
        // Changed surrogates and repeated names are valid for JSON.parse.
        const isRefused = !scanner.scan(bytes);
        const isStricter = ["surrogate", "repeated-name"].includes(scanner.fault?.kind ?? "");
        if (!isStricter) assert.equal(isRefused, !isValid, changed);
        if (!isRefused) assert.deepEqual(read(scanner, 0), value);
        assert.deepEqual(scanBySlices(bytes, 3).fault, scanner.fault);
      },
    ),
  );
});

test("what two parsers could read differently is refused", () => {
  const cases: [text: string | Buffer, kind: JsonFaultKind | undefined][] = [
    ['{"a":1,"a":2}', "repeated-name"],
    ['{"a":1,"\\u0061":2}', "repeated-name"],
    ['{"\\u0061b":1,"ab":2}', "repeated-name"],
    ['{"a":{"b":1},"c":{"b":1}}', undefined],
    [
      `{${Array.from({ length: 20 }, (_, index) => `"n${index}":0`).join()},"n3":1}`,
      "repeated-name",
    ],
    [
      `{${Array.from({ length: 20 }, (_, index) => `"n${index}":0`).join()},"\\u006e3":1}`,
      "repeated-name",
    ],
    ['"\\ud800"', "surrogate"],
    ['"\\udc00\\ud800"', "surrogate"],
    ['"\\ud800x"', "surrogate"],
    ['"\\ud83d\\ude00"', undefined],
    [Buffer.from([0x22, 0xc3, 0x28, 0x22]), "encoding"],
    [Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), "encoding"],
    ["[".repeat(101) + "]".repeat(101), "depth"],
    ["[".repeat(100) + "]".repeat(100), undefined],
    [`[${"0,".repeat(100_000)}0]`, "values"],
    [`[${"0,".repeat(99_998)}0]`, undefined],
    ["1".repeat(401), "number"],
    ["", "syntax"],
    ["\uFEFF{}", "syntax"],
    ["01", "syntax"],
    ["NaN", "syntax"],
    ["[1,]", "syntax"],
    ["{'a':1}", "syntax"],
    ["{} {}", "syntax"],
    ['"\t"', "syntax"],
    ["/**/1", "syntax"],
  ];
  for (const [text, kind] of cases) {
    const bytes = Buffer.from(text as string);
    const scanner = new JsonScanner();
    scanner.scan(bytes);
    assert.equal(scanner.fault?.kind, kind, bytes.toString().slice(0, 60));
  }
});

test("members are found by their name, also a name with escapes", () => {
  const scanner = new JsonScanner();
  assert.ok(scanner.scan(Buffer.from('{"x":[1,{"model":"no"}],"\\u006dodel":"yes","n":null}')));
  assert.equal(scanner.text(scanner.find(0, "model")), "yes");
  assert.equal(scanner.find(0, "missing"), -1);
  assert.equal(scanner.find(scanner.find(0, "x"), "model"), -1);
});
