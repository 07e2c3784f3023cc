// JSON lines and documents, byte by byte as well as at once.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SelectError } from "../../src/select/language/fault.ts";
import { ask, askInPieces, askRows, DOCUMENT, LINES, TO_CSV } from "./rig.ts";

const ALL = "SELECT * FROM S3Object";
const LAST_LINES = [
  "",
  "x",
  '{"a":"x1"',
  '{"a":"x1",}',
  '{"a":01}',
  '{"a":"x1"}}',
  '{"a":"x1"} 1',
  '{"a" "b"}',
  '{"a":"x\t"}',
  '{"a":"x1","A":"x2"}',
  '{"a":"x1" "b":1}',
  '{"a":"x',
  '{"a":tru}',
  "{a:1}",
  '{"a":1 2}',
  '{"a":"\\q"}',
];

test("lines and documents", async () => {
  const data = '{"a":1}\n\n  {"a":2}  \r\n[3]\n"x"';
  assert.equal(
    await askInPieces(ALL, { data, input: LINES }),
    '{"a":1}\n{"a":2}\n{"_1":[3]}\n{"_1":"x"}\n',
  );
  assert.equal(
    await askInPieces(ALL, { data: '{"a":\n1}{"a":2} 5 6', input: DOCUMENT }),
    '{"a":1}\n{"a":2}\n{"_1":5}\n{"_1":6}\n',
  );
  assert.equal(
    await ask(ALL, { data: '{"a":[1,{"b":"x\\ny"}],"c":null}', input: LINES, output: TO_CSV }),
    '"[1,{""b"":""x\\ny""}]",\n',
  );
});

test("numbers of 400 digits, duplicate names and escapes", async () => {
  const digits = "9".repeat(400);
  const data = `{"n":${digits},"n":${digits},"s":"\\u00e9\\ud83d\\ude00"}`;
  assert.equal(
    await ask("SELECT n, s FROM S3Object WHERE n > 1 AND s = 'é😀'", { data, input: LINES }),
    `{"n":${digits},"s":"\\u00e9\\ud83d\\ude00"}\n`,
  );
  assert.deepEqual(
    await askRows("SELECT a FROM S3Object", { data: '{"a":1,"\\u0061":2}', input: LINES }),
    [{ a: 2 }],
  );
});

test("values of different types differ and have no order", async () => {
  const data = '{"a":"5"}\n{"a":5}\n{"a":5.0}\n{"a":true}\n{"a":null}\n{}\n{"a":[5]}';
  const select = (where: string): Promise<string> =>
    ask(`SELECT a FROM S3Object WHERE ${where}`, { data, input: LINES });
  assert.equal(await select("a = 5"), '{"a":5}\n{"a":5.0}\n');
  assert.equal(await select("a < 6"), '{"a":5}\n{"a":5.0}\n');
  assert.equal(await select("a = '5'"), '{"a":"5"}\n');
  assert.equal(await select("a IS NULL AND a IS NOT MISSING"), '{"a":null}\n');
});

const BROKEN = [
  "{",
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  "[1,]",
  "[1 2]",
  "01",
  "1.",
  "-",
  "nul",
  "truex",
  '"\u0001"',
  '{"a":1}}',
  "{'a':1}",
  '{"a":1 "b":2}',
  "\u0000",
  '"\\q"',
  '"\\u12g4"',
  '{"\\x":1}',
];
for (const text of BROKEN) {
  test(`${JSON.stringify(text)} is JSONParsingError`, async () => {
    for (const input of [LINES, DOCUMENT]) {
      for (const pieceBytes of [1, 100]) {
        await assert.rejects(ask("SELECT a FROM S3Object", { data: text, input, pieceBytes }), {
          code: "JSONParsingError",
        });
      }
    }
  });
}

test("10 000 levels are refused", async () => {
  const data = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;
  for (const input of [LINES, DOCUMENT]) {
    await assert.rejects(ask(ALL, { data, input }), { code: "JSONParsingError" });
  }
});

test("a document is larger than a record if FROM reaches into it", async () => {
  const row = (id: number): string => `{"id":${id},"pad":"${"p".repeat(500)}"}`;
  const data = `{"skipped":[${row(1)}],"rows":[${Array.from({ length: 4_000 }, (_, id) => row(id)).join(",")}]}`;
  assert.ok(data.length > 2_000_000);
  await assert.rejects(ask(ALL, { data, input: DOCUMENT }), { code: "OverMaxRecordSize" });
  assert.deepEqual(
    await askRows("SELECT COUNT(*) AS c, MAX(r.id) AS m FROM S3Object[*].rows[*] r", {
      data,
      input: DOCUMENT,
    }),
    [{ c: 4_000, m: 3_999 }],
  );
});

test("any value is found by any path, in pieces of any size", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 4 }),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 0, max: 2 }),
      async (drawn, pieceBytes, space) => {
        // JSON has no -0.
        const values = JSON.parse(JSON.stringify(drawn)) as typeof drawn;
        const data = values.map((value) => JSON.stringify(value, undefined, space)).join("\n");
        const found = await askRows("SELECT r FROM S3Object AS r", {
          data,
          input: DOCUMENT,
          pieceBytes,
        });
        assert.deepEqual(
          found,
          values.map((r) => ({ r })),
        );
        // Lists and their elements, as a program would take them apart.
        const expected = values.flatMap((value) =>
          Array.isArray(value) && value.length > 0 ? value.map((r) => ({ r })) : [{}],
        );
        const elements = await askRows("SELECT r FROM S3Object[*][*] AS r", {
          data,
          input: DOCUMENT,
          pieceBytes,
        });
        assert.deepEqual(elements, expected);
      },
    ),
    { numRuns: 300 },
  );
});

test("texts and names are compared by what they mean, not by how they are written", async () => {
  const MATCHES: [line: string, count: number][] = [
    ['{"city":"café"}', 1],
    ['{"city":"caf\\u00e9"}', 1],
    ['{"ci\\u0074y":"café"}', 1],
    ['{"CITY":"café"}', 1],
    ['{"city":"caf\\u0065"}', 0],
    ['{"city":"cafe"}', 0],
    ['{"citys":"café"}', 0],
    ['{"cit":"café"}', 0],
    ['{"city":["café"]}', 0],
    ['{"city":null}', 0],
  ];
  for (const [line, count] of MATCHES) {
    const rows = await askRows("SELECT COUNT(*) AS n FROM S3Object s WHERE s.city = 'café'", {
      data: `${line}\n`,
      input: LINES,
    });
    assert.deepEqual(rows, [{ n: count }], line);
  }
  const path = await askRows("SELECT COUNT(*) AS n FROM S3Object s WHERE s.p = 'a\\b'", {
    data: '{"p":"a\\\\b"}\n{"p":"a\\b"}\n{"p":"a\\u005cb"}\n',
    input: LINES,
  });
  assert.deepEqual(path, [{ n: 2 }]);
  const kelvin = await askRows("SELECT COUNT(*) AS n FROM S3Object s WHERE s.k = 1", {
    data: '{"k":1}\n{"K":1}\n{"\u212a":1}\n{"\\u212a":1}\n',
    input: LINES,
  });
  assert.deepEqual(kelvin, [{ n: 4 }]);
});

test("numbers are those of the grammar of JSON", async () => {
  for (const number of ["0", "-0", "10", "1.5", "-0.25", "1e5", "1E+5", "2.5e-3", "0e0"]) {
    assert.equal(
      (await askRows("SELECT * FROM S3Object", { data: number, input: LINES })).length,
      1,
    );
  }
  for (const number of [
    "01",
    "-",
    "+1",
    ".5",
    "1.",
    "1e",
    "1e+",
    "1.e5",
    "--1",
    "1-1",
    "-01",
    "1.5.2",
  ]) {
    await assert.rejects(
      ask("SELECT * FROM S3Object", { data: number, input: LINES }),
      { code: "JSONParsingError" },
      number,
    );
  }
});

test("lines are the same, whether thousands of bytes or a few are there", async () => {
  const usual = fc.integer({ min: 0, max: 300 }).map((count) => {
    return Array.from({ length: count }, (_, n) => `{"a":"x${n % 3}","b":${n},"c":{"d":[${n}]}}`);
  });
  const unusual = fc.constantFrom(
    '{"a": "x1", "b": -1.5e3, "c": null}',
    ' { "a" :"x1" , "b":2 } \r',
    '{"a":"x1","b":3}\r',
    '{"b":4,"a":"x1"}',
    '{"a":"x\\u0031","b":5}',
    '{"\\u0061":"x1","b":5}',
    '{"a":"x1","a":"x2","b":6}',
    '{"A":"x1","b":7}',
    '{"a":"x1{\u00fc}[\u{1f600}],:","b":8,"\u00fc":{"a":"x1"}}',
    "{}",
    '{"c":1}',
    '{"a":"\\"x1\\"","b":9}',
    "",
    "[1,2]",
    '"x1"',
    "17",
    `{"c":"${"y".repeat(500)}","a":"x1","b":[]}`,
    `{"${"n".repeat(300)}":1,"a":"x1","b":{}}`,
    '{"a":"x1","b":[{"a":"x1"},[[]],"]"]}',
  );
  const lines = fc.array(fc.oneof(usual, fc.array(unusual, { maxLength: 20 })), {
    minLength: 20,
    maxLength: 60,
  });
  const end = fc.constantFrom(...LAST_LINES);
  const questions = [
    "SELECT s.a, s.c.d[0] FROM S3Object s WHERE s.a = 'x1' AND s.b > 2",
    "SELECT COUNT(*), SUM(s.b) FROM S3Object s WHERE s.b IS NOT MISSING AND s.b < 1000",
    "SELECT * FROM S3Object s",
  ];
  await fc.assert(
    fc.asyncProperty(lines, end, usual, async (parts, last, rest) => {
      const data = [...parts.flat(), last, ...rest].join("\n");
      const outcome = (expression: string, pieceBytes: number): Promise<string> =>
        ask(expression, { data, input: LINES, pieceBytes }).catch((error: unknown) => {
          if (error instanceof SelectError) return error.message;
          throw error;
        });
      for (const expression of questions) {
        const bytewise = await outcome(expression, 700);
        assert.equal(await outcome(expression, 1_000_000), bytewise);
        assert.equal(await outcome(expression, 6_001), bytewise);
      }
    }),
    { numRuns: 40 },
  );
});
