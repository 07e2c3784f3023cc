// The language of S3 Select: the functions and examples of its SQL reference, operators, types and errors.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { SelectError } from "../../src/select/language/fault.ts";
import { parseQuery } from "../../src/select/language/parser.ts";
import { compileLike } from "../../src/select/language/like.ts";
import { ask, askRows, DOCUMENT, LINES, TO_CSV } from "./rig.ts";

/** The value of an expression, which no row changes. */
async function evaluate(expression: string): Promise<unknown> {
  const [row] = await askRows(`SELECT ${expression} AS v FROM S3Object`);
  return (row as { v?: unknown }).v;
}

const check = (title: string, examples: readonly (readonly [string, unknown])[]): void => {
  describe(title, () => {
    for (const [expression, expected] of examples) {
      test(expression, async () => assert.deepEqual(await evaluate(expression), expected));
    }
  });
};

check("conditional functions", [
  ["COALESCE(1)", 1],
  ["COALESCE(null)", null],
  ["COALESCE(null, null)", null],
  ["COALESCE(missing)", null],
  ["COALESCE(missing, missing)", null],
  ["COALESCE(1, null)", 1],
  ["COALESCE(null, null, 1)", 1],
  ["COALESCE(null, 'string')", "string"],
  ["COALESCE(missing, 1)", 1],
  ["NULLIF(1, 2)", 1],
  ["NULLIF(1, '1')", 1],
  ["NULLIF(1, NULL)", 1],
  ["NULLIF(1, 1)", null],
  ["NULLIF(1, 1.0)", null],
  ["NULLIF(missing, null)", null],
  ["NULLIF(missing, missing)", null],
  ["NULLIF(null, null)", null],
  ["CASE WHEN 1 > 2 THEN 'a' WHEN 2 > 1 THEN 'b' ELSE 'c' END", "b"],
  ["CASE 3 WHEN 1 THEN 'a' WHEN 3 THEN 'b' END", "b"],
  ["CASE 4 WHEN 1 THEN 'a' END", null],
  ["CASE NULL WHEN NULL THEN 'a' ELSE 'b' END", "b"],
]);

check("conversion", [
  ["CAST('2007-04-05T14:30Z' AS TIMESTAMP)", "2007-04-05T14:30Z"],
  ["CAST(0.456 AS FLOAT)", 0.456],
  ["CAST('12' AS INT)", 12],
  ["CAST(' 12 ' AS INTEGER)", 12],
  ["CAST('1.9' AS INT)", 1],
  ["CAST(-1.9 AS INT)", -1],
  ["CAST(1.005 AS DECIMAL(10, 1))", 1],
  ["CAST('2.55' AS NUMERIC)", 2.55],
  ["CAST(true AS INT)", 1],
  ["CAST('TRUE' AS BOOL)", true],
  ["CAST(0 AS BOOLEAN)", false],
  ["CAST(12.5 AS STRING)", "12.5"],
  ["CAST('héllo' AS STRING(2))", "hé"],
  ["CAST(NULL AS INT)", null],
  ["CAST('9223372036854775807' AS INT) = 9223372036854775807", true],
]);

check("date functions", [
  ["DATE_ADD(year, 5, `2010-01-01T`)", "2015-01-01"],
  ["DATE_ADD(month, 1, `2010T`)", "2010-02T"],
  ["DATE_ADD(month, 13, `2010T`)", "2011-02T"],
  ["DATE_ADD(month, 1, `2010-01-31T`)", "2010-02-28"],
  ["DATE_ADD(day, -1, `2017-01-10T`)", "2017-01-09"],
  ["DATE_ADD(hour, 1, `2017T`)", "2017-01-01T01:00-00:00"],
  ["DATE_ADD(hour, 1, `2017-01-02T03:04Z`)", "2017-01-02T04:04Z"],
  ["DATE_ADD(minute, 1, `2017-01-02T03:04:05.006Z`)", "2017-01-02T03:05:05.006Z"],
  ["DATE_ADD(second, 1, `2017-01-02T03:04:05.006Z`)", "2017-01-02T03:04:06.006Z"],
  ["DATE_DIFF(year, `2010-01-01T`, `2011-01-01T`)", 1],
  // The reference says `year` here and means months.
  ["DATE_DIFF(month, `2010T`, `2010-05T`)", 4],
  ["DATE_DIFF(month, `2010T`, `2011T`)", 12],
  ["DATE_DIFF(month, `2011T`, `2010T`)", -12],
  ["DATE_DIFF(day, `2010-01-01T23:00Z`, `2010-01-02T01:00Z`)", 0],
  ["EXTRACT(YEAR FROM `2010-01-01T`)", 2010],
  ["EXTRACT(MONTH FROM `2010T`)", 1],
  ["EXTRACT(MONTH FROM `2010-10T`)", 10],
  ["EXTRACT(HOUR FROM `2017-01-02T03:04:05+07:08`)", 3],
  ["EXTRACT(MINUTE FROM `2017-01-02T03:04:05+07:08`)", 4],
  ["EXTRACT(TIMEZONE_HOUR FROM `2017-01-02T03:04:05+07:08`)", 7],
  ["EXTRACT(TIMEZONE_MINUTE FROM `2017-01-02T03:04:05+07:08`)", 8],
  ["TO_STRING(`1969-07-20T20:18Z`, 'MMMM d, y')", "July 20, 1969"],
  ["TO_STRING(`1969-07-20T20:18Z`, 'MMM d, yyyy')", "Jul 20, 1969"],
  ["TO_STRING(`1969-07-20T20:18Z`, 'M-d-yy')", "7-20-69"],
  ["TO_STRING(`1969-07-20T20:18Z`, 'MM-d-y')", "07-20-1969"],
  ["TO_STRING(`1969-07-20T20:18Z`, 'MMMM d, y h:m a')", "July 20, 1969 8:18 PM"],
  ["TO_STRING(`1969-07-20T20:18Z`, 'y-MM-dd''T''H:m:ssX')", "1969-07-20T20:18:00Z"],
  ["TO_STRING(`1969-07-20T20:18+08:00`, 'y-MM-dd''T''H:m:ssXXXX')", "1969-07-20T20:18:00+0800"],
  ["TO_STRING(`1969-07-20T20:18+08:00`, 'y-MM-dd''T''H:m:ssXXXXX')", "1969-07-20T20:18:00+08:00"],
  ["TO_STRING(`2001-02-03T04:05:06.789Z`, 'hh H S SSS n x MMMMM')", "04 4 7 789 789000000 +00 F"],
  ["TO_TIMESTAMP('2007T')", "2007T"],
  ["TO_TIMESTAMP('2007-02-23T12:14:33.079-08:00')", "2007-02-23T12:14:33.079-08:00"],
  ["TO_TIMESTAMP('July 20, 1969 8:18 PM', 'MMMM d, y h:m a')", "1969-07-20T20:18-00:00"],
  [
    "TO_TIMESTAMP('1969-07-20T20:18:02+0800', 'yyyy-MM-dd''T''H:m:ssXXXX')",
    "1969-07-20T20:18:02+08:00",
  ],
  ["UTCNOW()", "1970-01-01T00:00:00.000Z"],
  ["`2017-01-02T03:00+01:00` = `2017-01-02T02:00Z`", true],
]);

check("string functions", [
  ["CHAR_LENGTH('')", 0],
  ["CHAR_LENGTH('abcdefg')", 7],
  ["CHARACTER_LENGTH('😀é')", 2],
  ["LOWER('AbCdEfG!@#$')", "abcdefg!@#$"],
  ["UPPER('AbCdEfG!@#$')", "ABCDEFG!@#$"],
  ["SUBSTRING('123456789', 0)", "123456789"],
  ["SUBSTRING('123456789', 1)", "123456789"],
  ["SUBSTRING('123456789', 2)", "23456789"],
  ["SUBSTRING('123456789', -4)", "123456789"],
  ["SUBSTRING('123456789', 0, 999)", "123456789"],
  ["SUBSTRING('123456789', 1, 5)", "12345"],
  ["SUBSTRING('abcdefghi' FROM 3 FOR 4)", "cdef"],
  ["SUBSTRING('abcdefghi', -1, 4)", "ab"],
  ["TRIM('       foobar         ')", "foobar"],
  ["TRIM(' \tfoobar\t ')", "\tfoobar\t"],
  ["TRIM(LEADING FROM '       foobar         ')", "foobar         "],
  ["TRIM(TRAILING FROM '       foobar         ')", "       foobar"],
  ["TRIM(BOTH FROM '       foobar         ')", "foobar"],
  ["TRIM(BOTH '1' FROM '11foobar11')", "foobar"],
  ["TRIM(BOTH '12' FROM '1112211foobar22211122')", "foobar"],
]);

check("operators", [
  ["1 + 2 * 3 - 4 / 2", 5],
  ["(1 + 2) * 3", 9],
  ["5 / 2", 2],
  ["-5 / 2", -2],
  ["5 / 2.0", 2.5],
  ["5 % 3", 2],
  ["-(3) + 1", -2],
  ["- - 3", 3],
  ["4611686018427387904 + 4611686018427387903 = 9223372036854775807", true],
  ["-9223372036854775808 < 0", true],
  ["9007199254740993 > 9007199254740992", true],
  ["'a' || 1 || 'b'", "a1b"],
  ["1 = 1 AND NOT 2 = 3", true],
  ["NULL AND false", false],
  ["NULL OR true", true],
  ["NULL OR false", null],
  ["NOT NULL", null],
  ["1 = '1'", true],
  ["'b' > 'a'", true],
  ["'\u{10000}' > '\uffff'", true],
  ["3 BETWEEN 1 AND 3", true],
  ["3 NOT BETWEEN 1 AND 2", true],
  ["'b' IN ('a', 'b')", true],
  ["1 IN (2, NULL)", null],
  ["7 IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)", true],
  ["'7' IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)", true],
  ["1 IS NULL", false],
  ["MISSING IS NULL", true],
  ["NULL IS MISSING", false],
  ["NULL IS NOT NULL", false],
  ["'abc' LIKE 'a%'", true],
  ["'abc' LIKE '_b_'", true],
  ["'abc' NOT LIKE '%d%'", true],
  ["'10%' LIKE '10!%' ESCAPE '!'", true],
  ["'100' LIKE '10!%' ESCAPE '!'", false],
  ["NULL LIKE 'a'", null],
  ["`1.5` + 1", 2.5],
  ["'it''s'", "it's"],
  // `=` groups from the right.
  ["(false = (false = false)) = (false = false = false)", true],
]);

describe("names of columns", () => {
  const data = '{"Name":"x","a":{"b":[1,{"c":null}]},"n":1.50,"big":9223372036854775807}\n';
  const rows = (expression: string, more = data): Promise<unknown[]> =>
    askRows(expression, { data: more, input: LINES });

  test("match in any case without quotes, exactly with quotes", async () => {
    assert.deepEqual(await rows("SELECT s.NAME FROM s3object s"), [{ NAME: "x" }]);
    assert.deepEqual(await rows('SELECT s."name" FROM s3object s'), [{}]);
    assert.deepEqual(await rows('SELECT "s"."Name" FROM S3OBJECT AS s'), [{ Name: "x" }]);
  });

  test("reach into objects and lists, from 0", async () => {
    const [row] = await rows(
      "SELECT s.a.b[0] AS x, s['a']['b'][1].c AS y, s.a.b[7] AS z FROM S3Object s",
    );
    assert.deepEqual(row, { x: 1, y: null });
  });

  test("are ambiguous if two fields differ in case only", async () => {
    const text = '{"name":1,"NAME":2}\n';
    await assert.rejects(rows("SELECT s.name FROM S3Object s", text), {
      code: "AmbiguousFieldName",
    });
    assert.deepEqual(await rows('SELECT s."NAME" FROM S3Object s', text), [{ NAME: 2 }]);
  });

  test("of a field that first appears in the last record are found", async () => {
    const text = `${'{"a":1}\n'.repeat(5_000)}{"late":"here"}\n`;
    assert.deepEqual(await rows("SELECT late FROM S3Object WHERE late IS NOT MISSING", text), [
      { late: "here" },
    ]);
  });

  test("values keep their text, missing ones are left out", async () => {
    const text = await ask("SELECT s.n, s.big, s.none FROM S3Object s", { data, input: LINES });
    assert.equal(text, '{"n":1.50,"big":9223372036854775807}\n');
  });

  test("__proto__ is a name like others", async () => {
    const text = '{"__proto__":{"x":1},"constructor":2}\n';
    assert.equal(
      await ask("SELECT s.__proto__.x, s.constructor, s.toString FROM S3Object s", {
        data: text,
        input: LINES,
      }),
      '{"x":1,"constructor":2}\n',
    );
  });
});

describe("paths in FROM, as in the reference", () => {
  const rules =
    '{"Rules": [ {"id": "1"}, {"expr": "y > x"}, {"id": "2", "expr": "z = DEBUG"} ]}\n{"created": "June 27", "modified": "July 6"}';
  const input = DOCUMENT;

  test("a wildcard yields one record at least", async () => {
    assert.equal(
      await ask("SELECT id FROM S3Object[*].Rules[*].id", { data: rules, input }),
      '{"id":"1"}\n{}\n{"id":"2"}\n{}\n',
    );
    assert.equal(
      await ask("SELECT id FROM S3Object[*].Rules[*].id WHERE id IS NOT MISSING", {
        data: rules,
        input,
      }),
      '{"id":"1"}\n{"id":"2"}\n',
    );
  });

  test("rows are named by the alias, by the last name of the path, or by _1", async () => {
    const data =
      '{"dir_name":"important_docs","files":[{"name":"."},{"name":".aws"}],"owner":"AWS S3"}';
    const expected = '{"dir_name":"important_docs","owner":"AWS S3"}\n';
    for (const expression of [
      "SELECT d.dir_name, d.owner FROM S3Object[*] d",
      "SELECT _1.dir_name, _1.owner FROM S3Object[*]",
      "SELECT dir_name, owner FROM S3Object",
    ])
      assert.equal(await ask(expression, { data, input }), expected);
    assert.equal(
      await ask("SELECT f.name FROM S3Object[*].files[*] AS f", { data, input }),
      '{"name":"."}\n{"name":".aws"}\n',
    );
    assert.equal(
      await ask("SELECT * FROM S3Object[*].*", { data, input }),
      [
        '{"_1":"important_docs"}',
        '{"_1":[{"name":"."},{"name":".aws"}]}',
        '{"_1":"AWS S3"}',
        "",
      ].join("\n"),
    );
  });
});

const GROUPED = "k,n\na,1\nb,5\na,3\nc,\nb,10\n";
const NUMBERS = GROUPED.replace("c,\n", "");

test("aggregates skip nulls, and read numbers in text", async () => {
  assert.deepEqual(
    await askRows(
      "SELECT COUNT(*) AS c, SUM(n) AS s, AVG(CAST(n AS INT)) AS a, MIN(n) AS lo, MAX(n) AS hi FROM S3Object",
      { data: NUMBERS },
    ),
    [{ c: 4, s: 19, a: 4.75, lo: 1, hi: 10 }],
  );
  assert.deepEqual(
    await askRows("SELECT COUNT(x) AS c, SUM(x) AS s FROM S3Object", {
      data: '{"x":null}\n{}\n{"x":2}',
      input: LINES,
    }),
    [{ c: 1, s: 2 }],
  );
  assert.deepEqual(
    await askRows("SELECT COUNT(*) AS c, SUM(a) AS s FROM S3Object", { data: "a\n" }),
    [{ c: 0, s: null }],
  );
});

test("groups, HAVING, ORDER BY and OFFSET", async () => {
  assert.equal(
    await ask(
      "SELECT k, SUM(n) AS total FROM S3Object WHERE n <> '' GROUP BY k HAVING COUNT(*) > 1 ORDER BY total DESC",
      { data: GROUPED, output: TO_CSV },
    ),
    "b,15\na,4\n",
  );
  assert.equal(
    await ask("SELECT n FROM S3Object ORDER BY CAST(n AS INT) DESC LIMIT 2 OFFSET 1", {
      data: NUMBERS,
      output: TO_CSV,
    }),
    "5\n3\n",
  );
  assert.equal(
    await ask("SELECT DISTINCT k FROM S3Object ORDER BY 1", { data: GROUPED, output: TO_CSV }),
    "a\nb\nc\n",
  );
  assert.equal(
    await ask("SELECT UPPER(k) AS u FROM S3Object GROUP BY UPPER(k) ORDER BY u", {
      data: GROUPED,
      output: TO_CSV,
    }),
    "A\nB\nC\n",
  );
});

test("nulls are last, or where they are wanted", async () => {
  const json = '{"a":2}\n{"b":1}\n{"a":1}\n';
  const order = async (by: string): Promise<string> =>
    ask(`SELECT a FROM S3Object ORDER BY ${by}`, { data: json, input: LINES, output: TO_CSV });
  assert.equal(await order("a"), "1\n2\n\n");
  assert.equal(await order("a DESC"), "\n2\n1\n");
  assert.equal(await order("a DESC NULLS LAST"), "2\n1\n\n");
});

test("groups, distinct and sorted records have a budget of memory", async () => {
  const long = `k\n${Array.from({ length: 600 }, (_, index) => `${index}${"x".repeat(60_000)}\n`).join("")}`;
  for (const expression of [
    "SELECT DISTINCT k FROM S3Object",
    "SELECT k FROM S3Object ORDER BY k",
    "SELECT k, COUNT(*) FROM S3Object GROUP BY k",
  ])
    await assert.rejects(ask(expression, { data: long }), { code: "QueryLimitExceeded" });
  // With LIMIT, the records that cannot be in the result are dropped.
  assert.equal(
    (await askRows("SELECT k FROM S3Object ORDER BY k LIMIT 1", { data: long.repeat(1) })).length,
    1,
  );
});

const FAULTS: [expression: string, code: string, column?: number][] = [
  ["SELECT", "ParseEmptySelect", 7],
  ["SELECT FROM S3Object", "ParseEmptySelect", 8],
  ["SELECT a", "ParseSelectMissingFrom", 9],
  ["SELECT * frm S3Object", "ParseSelectMissingFrom", 10],
  ["SELECT *, a FROM S3Object", "ParseAsteriskIsNotAloneInSelectList", 8],
  ["UPDATE x SET a = 1", "ParseUnexpectedToken", 1],
  ["SELECT a FROM Table1", "InvalidDataSource", 15],
  ["SELECT a FROM S3Object s, S3Object t", "ParseMalformedJoin", 25],
  ["SELECT a FROM S3Object s JOIN S3Object t", "ParseMalformedJoin", 26],
  ["SELECT a FROM (SELECT 1 FROM S3Object)", "UnsupportedSqlStructure", 15],
  ["SELECT (SELECT 1) FROM S3Object", "ParseUnsupportedSelect", 9],
  ["SELECT a FROM S3Object UNION SELECT a FROM S3Object", "UnsupportedSqlStructure", 24],
  ["SELECT a FROM S3Object WHERE", "ParseExpectedExpression", 29],
  ["SELECT a FROM S3Object WHERE a ==", "ParseUnexpectedOperator", 33],
  ["SELECT a FROM S3Object LIMIT -1", "EvaluatorNegativeLimit", 30],
  ["SELECT a FROM S3Object LIMIT x", "ParseExpectedNumber", 30],
  ["SELECT a AS FROM S3Object", "ParseExpectedIdentForAlias", 13],
  ["SELECT FOO(a) FROM S3Object", "UnsupportedFunction", 8],
  ["SELECT CAST(a) FROM S3Object", "ParseCastArity", 14],
  ["SELECT CAST(a AS BLOB) FROM S3Object", "ParseExpectedTypeName", 18],
  ["SELECT CAST a FROM S3Object", "ParseExpectedLeftParenAfterCast", 13],
  ["SELECT LOWER(a, a) FROM S3Object", "EvaluatorInvalidArguments", 8],
  ["SELECT SUM(*) FROM S3Object", "ParseUnsupportedCallWithStar", 12],
  ["SELECT SUM(a, a) FROM S3Object", "ParseNonUnaryAgregateFunctionCall", 13],
  ["SELECT SUM(COUNT(a)) FROM S3Object", "UnsupportedSqlOperation"],
  ["SELECT a FROM S3Object WHERE COUNT(*) > 1", "UnsupportedSqlOperation", 30],
  ["SELECT a, COUNT(*) FROM S3Object", "UnsupportedSqlStructure", 8],
  ["SELECT EXTRACT(century FROM a) FROM S3Object", "ParseExpectedDatePart", 16],
  ["SELECT CASE a END FROM S3Object", "ParseExpectedWhenClause", 15],
  ["SELECT a[-1] FROM S3Object", "ParseInvalidPathComponent", 10],
  ["SELECT 'a FROM S3Object", "LexerInvalidLiteral", 8],
  ["SELECT 1x FROM S3Object", "LexerInvalidLiteral", 8],
  ["SELECT a ! b FROM S3Object", "LexerInvalidOperator", 10],
  ["SELECT a \\ b FROM S3Object", "LexerInvalidChar", 10],
  ["SELECT `xyz` FROM S3Object", "LexerInvalidIONLiteral", 8],
  ["SELECT 9223372036854775808 FROM S3Object", "IntegerOverflow", 8],
  ["SELECT a FROM S3Object\nWHERE b = 1", "EvaluatorBindingDoesNotExist", 7],
  ["SELECT a._1 FROM S3Object s", "InvalidKeyPath", 8],
  ["SELECT _0 FROM S3Object s", "InvalidColumnIndex"],
  ["SELECT t.* FROM S3Object s", "InvalidTableAlias", 8],
  [
    "SELECT a FROM S3Object WHERE a LIKE 'x!' ESCAPE '!'",
    "EvaluatorLikePatternInvalidEscapeSequence",
  ],
  ["SELECT a LIKE 'x' ESCAPE 'ab' FROM S3Object", "LikeInvalidInputs"],
  ["SELECT TO_STRING(`2010T`, 'Q') FROM S3Object", "EvaluatorInvalidTimestampFormatPatternSymbol"],
  ["SELECT TO_STRING(`2010T`, 'yyy') FROM S3Object", "EvaluatorInvalidTimestampFormatPatternToken"],
  [
    "SELECT TO_STRING(`2010T`, 'y''x') FROM S3Object",
    "EvaluatorUnterminatedTimestampFormatPatternToken",
  ],
  [
    "SELECT TO_TIMESTAMP('1', 'h') FROM S3Object",
    "EvaluatorTimestampFormatPatternHourClockAmPmMismatch",
  ],
  ["SELECT TO_TIMESTAMP('x') FROM S3Object", "ValueParseFailure"],
  ["SELECT CAST('x' AS INT) FROM S3Object", "CastFailed"],
  ["SELECT a FROM S3Object WHERE 'x' > 1", "CastFailed"],
  ["SELECT CAST(`2010T` AS INT) FROM S3Object", "InvalidCast"],
  ["SELECT 9223372036854775807 + 1 FROM S3Object", "IntegerOverflow"],
  ["SELECT 1 / 0 FROM S3Object", "IllegalSqlFunctionArgument"],
  ["SELECT LOWER(1) FROM S3Object", "IncorrectSqlFunctionArgumentType"],
  ["SELECT 1 AND 2 FROM S3Object", "IncorrectSqlFunctionArgumentType"],
];
for (const [expression, code, column] of FAULTS) {
  test(`${expression} is ${code}`, async () => {
    await assert.rejects(ask(expression), (error: unknown) => {
      assert.ok(error instanceof SelectError, String(error));
      assert.equal(error.code, code);
      if (column !== undefined) assert.equal(error.place?.column, column);
      return true;
    });
  });
}

test("lines are counted", () => {
  assert.throws(() => parseQuery("SELECT a\n  FROM S3Object\n WHERE )"), {
    place: { line: 3, column: 8 },
  });
});

const HOSTILE: Record<string, [expression: string, code: string | undefined]> = {
  "256 KiB of parentheses": [`SELECT ${"(".repeat(250_000)}`, "MaxOperatorsExceeded"],
  "more than 256 KiB": [`SELECT '${"a".repeat(270_000)}' FROM S3Object`, "ExpressionTooLong"],
  "a chain of NOT": [`SELECT ${"NOT ".repeat(50_000)}a FROM S3Object`, "MaxOperatorsExceeded"],
  "a chain of signs": [`SELECT ${"- ".repeat(50_000)}1 FROM S3Object`, "MaxOperatorsExceeded"],
  "a chain of comparisons": [
    `SELECT a ${"< a ".repeat(50_000)} FROM S3Object`,
    "MaxOperatorsExceeded",
  ],
  "a chain of equalities": [
    `SELECT a ${"= a ".repeat(50_000)} FROM S3Object`,
    "MaxOperatorsExceeded",
  ],
  "a chain of predicates": [
    `SELECT a ${"IS NULL ".repeat(20_000)} FROM S3Object`,
    "MaxOperatorsExceeded",
  ],
  "a path of 100 000 steps": [`SELECT s${".a".repeat(100_000)} FROM S3Object s`, "InvalidKeyPath"],
  "nested CASE": [`SELECT ${"CASE WHEN ".repeat(20_000)} FROM S3Object`, "MaxOperatorsExceeded"],
  "60 000 concatenations": [`SELECT a${" || a".repeat(50_000)} FROM S3Object`, undefined],
  "60 000 additions": [`SELECT 1${" + 1".repeat(60_000)} FROM S3Object`, undefined],
};
for (const [title, [expression, code]] of Object.entries(HOSTILE)) {
  test(title, async () => {
    const work = ask(expression);
    if (code === undefined) await work;
    else await assert.rejects(work, { code });
  });
}

test("a computed value is at most 16 MiB", async () => {
  const double =
    "x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x || x";
  const data = `x\n${"y".repeat(1_000_000)}\n`;
  await assert.rejects(ask(`SELECT ${double} FROM S3Object`, { data }), {
    code: "QueryLimitExceeded",
  });
});

test("any text is parsed or refused", () => {
  const words =
    "SELECT FROM WHERE S3Object s a . * ( ) [ ] , ; + - * / % = <> < || AND OR NOT IS NULL MISSING LIKE ESCAPE IN BETWEEN CASE WHEN THEN ELSE END CAST AS INT COUNT SUM 'x' \"y\" `2010T` 1 1.5 GROUP BY HAVING ORDER LIMIT OFFSET TRIM EXTRACT DATE_ADD YEAR".split(
      " ",
    );
  const token = fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 3 }));
  const expression = fc.array(token, { maxLength: 40 }).map((parts) => parts.join(" "));
  const started = expression.map((text) => `SELECT ${text}`);
  fc.assert(
    fc.property(fc.oneof(expression, started, fc.string()), (text) => {
      try {
        parseQuery(text);
      } catch (error) {
        if (!(error instanceof SelectError)) throw error;
      }
    }),
    { numRuns: 3_000 },
  );
});

test("LIKE matches as a regular expression would, in bounded time", () => {
  const character = fc.constantFrom("a", "b", "%", "_", "😀", "\n");
  const text = fc.array(character, { maxLength: 8 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, text, (value, pattern) => {
      const source = Array.from(pattern)
        .map((one) => (one === "%" ? "[^]*" : one === "_" ? "[^]" : one))
        .join("");
      const expected = new RegExp(`^${source}$`, "u").test(value);
      assert.equal(compileLike(pattern)(value), expected);
    }),
    { numRuns: 3_000 },
  );
  const match = compileLike(`${"%a".repeat(50)}b`);
  assert.equal(match("a".repeat(20_000)), false);
});
