// CSV with all options of S3, byte by byte as well as at once.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SelectError } from "../../src/select/language/fault.ts";
import { ask, askInPieces, askRows, askWithStats, CSV, LINES, TO_CSV } from "./rig.ts";

const ALL = "SELECT * FROM S3Object";
const NONE = { ...CSV, header: "NONE" } as const;

test("header NONE, USE and IGNORE", async () => {
  const data = "x,y\n1,2\n";
  assert.equal(
    await askInPieces(ALL, { data, input: NONE }),
    '{"_1":"x","_2":"y"}\n{"_1":"1","_2":"2"}\n',
  );
  assert.equal(await askInPieces(ALL, { data }), '{"x":"1","y":"2"}\n');
  assert.equal(
    await askInPieces(ALL, { data, input: { ...CSV, header: "IGNORE" } }),
    '{"_1":"1","_2":"2"}\n',
  );
  assert.equal(await askInPieces("SELECT _2, y FROM S3Object", { data }), '{"_2":"2","y":"2"}\n');
});

test("_1 is the first column, with and without an alias", async () => {
  const asked = { data: "x,y\n1,2\n", input: NONE };
  for (const expression of [
    "SELECT _1, _2 FROM S3Object WHERE _1 = 'x'",
    "SELECT s._1, s._2 FROM S3Object s WHERE s._1 = 'x'",
  ])
    assert.equal(await ask(expression, asked), '{"_1":"x","_2":"y"}\n');
});

test("delimiters of several bytes", async () => {
  const input = { ...NONE, fieldDelimiter: "::", recordDelimiter: "€;" };
  const data = '1:2::"a::€;"€;3::4€;';
  const allowed = { ...input, allowsQuotedRecordDelimiter: true };
  assert.equal(
    await askInPieces(ALL, { data, input: allowed, output: TO_CSV }),
    "1:2,a::€;\n3,4\n",
  );
  await assert.rejects(ask(ALL, { data, input }), { code: "CSVEscapingRecordDelimiter" });
});

test("quotes, escapes and line ends of either kind", async () => {
  const data = 'a,"b ""c"" , d",\r\n"","\n",e"f\r\n';
  const input = { ...NONE, allowsQuotedRecordDelimiter: true };
  assert.equal(
    await askInPieces(ALL, { data, input }),
    '{"_1":"a","_2":"b \\"c\\" , d","_3":""}\n{"_1":"","_2":"\\n","_3":"e\\"f"}\n',
  );
  const escaped = { ...NONE, quoteCharacter: "'", quoteEscapeCharacter: "\\" };
  assert.equal(
    await askInPieces(ALL, { data: "'it\\'s \\\\',\"x\"\n", input: escaped }),
    '{"_1":"it\'s \\\\","_2":"\\"x\\""}\n',
  );
  assert.equal(
    await askInPieces(ALL, { data: '"a,b\n', input: { ...NONE, quoteCharacter: "" } }),
    '{"_1":"\\"a","_2":"b"}\n',
  );
});

test("faults of quotes", async () => {
  await assert.rejects(ask(ALL, { data: '"a"b,c\n', input: NONE }), {
    code: "CSVUnescapedQuote",
  });
  await assert.rejects(ask(ALL, { data: '"a\nb"\n', input: NONE }), {
    code: "CSVEscapingRecordDelimiter",
  });
  const input = { ...NONE, allowsQuotedRecordDelimiter: true };
  await assert.rejects(ask(ALL, { data: '"a\nb', input }), { code: "CSVUnescapedQuote" });
});

test("comments, empty lines, ragged rows and NUL", async () => {
  const data = "#c\na,b\n\n#x\n1\n1,2,3\n\0,\n";
  assert.equal(
    await askInPieces(ALL, { data }),
    '{"a":"1"}\n{"a":"1","b":"2","_3":"3"}\n{"a":"\\u0000","b":""}\n',
  );
  assert.deepEqual(await askRows("SELECT a FROM S3Object WHERE b IS MISSING", { data }), [
    { a: "1" },
  ]);
  assert.equal(await ask(ALL, { data: "#c\n", input: { ...NONE, comments: "" } }), '{"_1":"#c"}\n');
});

test("a byte order mark is dropped; other encodings are refused", async () => {
  assert.equal(await askInPieces(ALL, { data: "\ufeffa\n1\n" }), '{"a":"1"}\n');
  await assert.rejects(
    ask(ALL, { data: Buffer.from("a,b\n", "utf16le").swap16(), input: NONE }).then(async () =>
      ask(ALL, { data: Buffer.from("\ufeffa,b\n", "utf16le"), input: NONE }),
    ),
    {
      code: "InvalidTextEncoding",
    },
  );
  await assert.rejects(ask(ALL, { data: Buffer.from([0x61, 0xc3, 0x0a]) }), {
    code: "InvalidTextEncoding",
  });
  await assert.rejects(ask(ALL, { data: Buffer.from([0x61, 0x0a, 0xc3]) }), {
    code: "InvalidTextEncoding",
  });
});

test("records of more than 1 MiB are refused, with and without an end", async () => {
  for (const end of ["", "\n", '"\n'])
    await assert.rejects(
      ask(ALL, {
        data: `${end === '"\n' ? '"' : ""}${"x".repeat(2_000_000)}${end}`,
        input: NONE,
      }),
      { code: "OverMaxRecordSize" },
    );
  const data = `${"x".repeat(1_000_000)}\n`;
  assert.equal((await ask(ALL, { data, input: NONE, output: TO_CSV })).length, data.length);
  const fields = `${",".repeat(1_000_000)}\n`;
  assert.deepEqual(
    await askRows("SELECT _1000001, _1000002 FROM S3Object", { data: fields, input: NONE }),
    [{ _1000001: "" }],
  );
});

test("an empty object has no records, whatever is asked", async () => {
  assert.equal(await ask("SELECT a, b FROM S3Object", { data: "" }), "");
  assert.equal(await ask("SELECT COUNT(*) FROM S3Object", { data: "" }), '{"_1":0}\n');
  assert.equal(await ask(ALL, { data: "", input: LINES }), "");
});

test("the header can be ambiguous", async () => {
  await assert.rejects(ask("SELECT a FROM S3Object", { data: "a,A\n1,2\n" }), {
    code: "AmbiguousFieldName",
  });
  assert.equal(await ask('SELECT "A" FROM S3Object', { data: "a,A\n1,2\n" }), '{"A":"2"}\n');
});

const field = fc.string({
  unit: fc.constantFrom("a", "é", '"', ",", "\n", "\r", "#", " ", "😀"),
  maxLength: 5,
});
const table = fc.array(fc.array(field, { minLength: 2, maxLength: 4 }), { maxLength: 6 });

test("any fields that are written are read again, in pieces of any size", async () => {
  const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`;
  const input = { ...NONE, allowsQuotedRecordDelimiter: true };
  await fc.assert(
    fc.asyncProperty(table, fc.integer({ min: 1, max: 9 }), async (rows, pieceBytes) => {
      const data = rows.map((row) => `${row.map(quote).join(",")}\n`).join("");
      const found = await askRows(ALL, { data, input, pieceBytes });
      assert.deepEqual(
        found.map((row) => Object.values(row as object)),
        rows,
      );
      // The writer is read by the reader.
      const csv = await ask(ALL, { data, input, output: TO_CSV });
      const again = await askRows(ALL, { data: csv, input: { ...input, comments: "" } });
      assert.deepEqual(again, found);
    }),
    { numRuns: 200 },
  );
});

test("any bytes are read or refused, alike in pieces of any size", async () => {
  const bytes = fc.uint8Array({ maxLength: 40 }).map((one) => Buffer.from(one));
  const noise = fc.string({
    unit: fc.constantFrom('"', ",", "\n", "\r", "a", "#"),
    maxLength: 20,
  });
  await fc.assert(
    fc.asyncProperty(fc.oneof(bytes, noise), fc.boolean(), async (data, allows) => {
      const input = { ...NONE, allowsQuotedRecordDelimiter: allows };
      const outcome = (pieceBytes: number): Promise<string> =>
        ask(ALL, { data, input, pieceBytes }).catch((error: unknown) => {
          if (error instanceof SelectError) return error.code;
          throw error;
        });
      assert.equal(await outcome(1), await outcome(1_000));
    }),
    { numRuns: 1_000 },
  );
});

test("quotes in comments open no field", async () => {
  const usual = "a,b,8\n".repeat(1_000);
  const data = `${usual}#,"a,b\n${'",x",b,"q"\n'.repeat(10)}${usual}`;
  const input = { ...NONE, allowsQuotedRecordDelimiter: true };
  assert.deepEqual(await askRows("SELECT COUNT(*) AS n FROM S3Object", { data, input }), [
    { n: 2_010 },
  ]);
});

const line = fc.constantFrom(
  "a,b,12",
  "a,b,-7\r",
  "",
  "\r",
  ",",
  "#a,b",
  "\u00fc\u{1f600},b,3",
  'a"b,"b",5',
  '"a""b",b,6',
  '"a",b,6\r',
  '#"a,b',
  '##"a,b',
  '#,"a,b',
  '##,"a,b',
  '"a,b,"""",b,7',
  '"",b,""',
  '"a""",b,"7"\r',
  "a,b,1,2,3,4,5,6,7",
  "x".repeat(300),
);
const quotedLine = fc
  .string({ unit: fc.constantFrom('""', ",", "a", "#"), maxLength: 40 })
  .map((text) => `"${text}",b,"${text}"`);
const rareLine = fc.constantFrom('"a\nb",b,3', '"a\n#"",b",b,4', '"a"x,b,9', '"a"\rb', "'\",b,1");
const usualLines = fc.integer({ min: 0, max: 400 }).map((count) => Array(count).fill("a,b,8"));
const someLine = fc.oneof(
  { weight: 60, arbitrary: line },
  { weight: 60, arbitrary: quotedLine },
  { weight: 1, arbitrary: rareLine },
);
const files = fc.array(fc.oneof(usualLines, fc.array(someLine, { maxLength: 30 })), {
  minLength: 20,
  maxLength: 60,
});
const inputs = fc.record({
  allowsQuotedRecordDelimiter: fc.boolean(),
  comments: fc.constantFrom("", "#", "##"),
  quoteEscapeCharacter: fc.constantFrom('"', '"', "\\"),
});

test("records are the same, whether thousands of bytes or a few are there", async () => {
  const questions = [
    "SELECT s._1, s._3 FROM S3Object s WHERE s._2 = 'b'",
    "SELECT COUNT(*), SUM(CAST(s._3 AS INT)) FROM S3Object s WHERE s._3 <> ''",
    ALL,
  ];
  await fc.assert(
    fc.asyncProperty(
      files,
      inputs,
      fc.constantFrom("", '"', ',"a'),
      async (parts, options, end) => {
        const data = `${parts.flat().join("\n")}${end}`;
        const input = { ...NONE, ...options };
        const outcome = (expression: string, pieceBytes: number): Promise<string> =>
          ask(expression, { data, input, pieceBytes }).catch((error: unknown) => {
            if (error instanceof SelectError) return error.code;
            throw error;
          });
        for (const expression of questions) {
          const bytewise = await outcome(expression, 500);
          assert.equal(await outcome(expression, 1_000_000), bytewise);
          assert.equal(await outcome(expression, 6_001), bytewise);
        }
      },
    ),
    { numRuns: 40 },
  );
});

test("LIMIT ends the reading of the object", async () => {
  const data = `n\n${"1\n".repeat(2_000_000)}`;
  const { stats, text } = await askWithStats("SELECT n FROM S3Object LIMIT 10", { data });
  assert.equal(text, '{"n":"1"}\n'.repeat(10));
  assert.ok(stats.scannedBytes <= 65_536);
});
