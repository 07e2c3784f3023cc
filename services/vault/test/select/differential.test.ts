// Generated questions over generated data, answered here and by DuckDB, where both languages mean the same.
//
// Not compared, because the languages differ (the sentence of the reference of S3 Select is behind each one):
// - integers divided by integers: DuckDB gives a double. S3 Select: "/" of the math operators, without a rule; here an integer.
// - comparisons of a text with a number in JSON: DuckDB converts. S3 Select converts by CAST: "If a conversion is needed, use
//   the CAST function".
// - the order of NULL: DuckDB's default is last in both directions; ORDER BY is not part of S3 Select.
// - SUBSTRING with a start below 1, which DuckDB counts from the end: "SUBSTRING('123456789', -4) -- '123456789'".
// - AND and OR with an operand that fails: DuckDB may skip or evaluate it; operands here never fail.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import fc from "fast-check";
import { askRows, CSV, LINES, PARQUET } from "./rig.ts";
import type { InputFormat } from "../../src/select/request.ts";

/** Questions for each format; PLATFORM_QUESTIONS asks more. */
const QUESTIONS = Number(process.env["PLATFORM_QUESTIONS"] ?? 150);
const ROWS = 60;

const folder = mkdtempSync(join(tmpdir(), "vault-differential-"));
let instance: DuckDBInstance;
let duck: DuckDBConnection;

before(async () => {
  instance = await DuckDBInstance.create(":memory:");
  duck = await instance.connect();
});
after(() => {
  duck.closeSync();
  instance.closeSync();
  rmSync(folder, { recursive: true, force: true });
});

/** A row; `i` is an integer, `d` a double with a fraction, `s` and `t` are texts, `b` is a boolean. */
interface Row {
  i: number | null;
  d: number;
  s: string;
  t: string | null;
  b: boolean;
}

const text = fc.string({
  unit: fc.constantFrom("a", "b", "B", "é", "%", "_", " ", "1"),
  maxLength: 5,
});
const row = fc.record<Row>({
  i: fc.option(fc.integer({ min: -50, max: 50 }), { freq: 6 }),
  d: fc.integer({ min: -400, max: 400 }).map((n) => n / 8 + 1 / 16),
  s: text.map((one) => `x${one}`),
  t: fc.option(
    text.map((one) => `y${one}`),
    { freq: 6 },
  ),
  b: fc.boolean(),
});

/** Names of columns in each language: CSV has texts, which are converted where they are used. */
interface Columns {
  readonly here: (name: keyof Row) => string;
  readonly duck: (name: keyof Row) => string;
}

/** A part of a question in both languages. */
type Both = readonly [here: string, duck: string];
type Part = fc.Arbitrary<Both>;

/** Expressions of each type, which contain each other. */
interface Expressions {
  number: Both;
  text: Both;
  condition: Both;
}

interface Grammar {
  readonly number: Part;
  readonly texts: Part;
  readonly condition: Part;
  readonly column: (...names: (keyof Row)[]) => Part;
}

const literal: Part = fc.integer({ min: -20, max: 20 }).map((n) => same(String(n)));
const quote = (value: string): string => `'${value.replaceAll("'", "''")}'`;

function same(value: string): Both {
  return [value, value];
}

/** Writes a part around others, in each language. */
function write(template: (...parts: string[]) => string, ...parts: readonly Both[]): Both {
  return [template(...parts.map(([here]) => here)), template(...parts.map(([, there]) => there))];
}

function combine(operator: string, left: Part, right: Part): Part {
  return fc.tuple(left, right).map((both) => write((a, b) => `(${a} ${operator} ${b})`, ...both));
}

function createNumbers({ number, texts, condition, column }: Grammar): Part {
  return fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    column("i", "d"),
    literal,
    combine("+", number, number),
    combine("-", number, number),
    combine("*", number, literal),
    texts.map(([here, there]): Both => [`CHAR_LENGTH(${here})`, `length(${there})`]),
    fc.tuple(number, number).map((both) => write((a, b) => `COALESCE(${a}, ${b})`, ...both)),
    fc.tuple(number, literal).map((both) => write((a, b) => `NULLIF(${a}, ${b})`, ...both)),
    fc
      .tuple(condition, number, number)
      .map((all) => write((a, b, c) => `CASE WHEN ${a} THEN ${b} ELSE ${c} END`, ...all)),
  );
}

function createTexts({ texts, column }: Grammar): Part {
  const range = fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 4 }));
  return fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    column("s", "t"),
    text.map((value) => same(quote(`z${value}`))),
    ...["UPPER", "LOWER", "TRIM"].map((name) =>
      texts.map((one) => write((a) => `${name}(${a})`, one)),
    ),
    fc
      .tuple(texts, range)
      .map(([one, [from, count]]) => write((a) => `SUBSTRING(${a}, ${from}, ${count})`, one)),
    combine("||", texts, texts),
  );
}

function createConditions({ number, texts, condition, column }: Grammar): Part {
  const items = fc.array(literal, { minLength: 1, maxLength: 10 });
  return fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    ...["=", "<>", "<", "<=", ">", ">="].flatMap((operator) => [
      combine(operator, number, number),
      combine(operator, texts, texts),
    ]),
    column("b"),
    combine("AND", condition, condition),
    combine("OR", condition, condition),
    condition.map((one) => write((a) => `(NOT ${a})`, one)),
    fc
      .tuple(texts, text)
      .map(([one, pattern]) => write((a) => `(${a} LIKE ${quote(pattern)})`, one)),
    fc
      .tuple(number, literal, literal)
      .map((all) => write((a, low, high) => `(${a} BETWEEN ${low} AND ${high})`, ...all)),
    fc
      .tuple(number, items)
      .map(([one, list]) => write((a, ...rest) => `(${a} IN (${rest.join(", ")}))`, one, ...list)),
    column("i", "t").map((one) => write((a) => `(${a} IS NULL)`, one)),
  );
}

function createExpressions({ here, duck: there }: Columns): { [Type in keyof Expressions]: Part } {
  return fc.letrec<Expressions>((tie) => {
    const grammar: Grammar = {
      number: tie("number") as Part,
      texts: tie("text") as Part,
      condition: tie("condition") as Part,
      column: (...names) =>
        fc.constantFrom(...names).map((name): Both => [here(name), there(name)]),
    };
    return {
      number: createNumbers(grammar),
      text: createTexts(grammar),
      condition: createConditions(grammar),
    };
  });
}

/** A question in both languages; its rows are compared in order if it has one. */
interface Question {
  readonly here: string;
  readonly duck: string;
}

function createQuestions(columns: Columns): fc.Arbitrary<Question> {
  const { number, text: texts, condition } = createExpressions(columns);
  const where = condition.map(([a, b]): Both => [` WHERE ${a}`, ` WHERE ${b}`]);
  const value = fc.oneof(number, texts, condition);
  const plain = fc.tuple(value, value, fc.option(where)).map(([[a, c], [b, d], filter]) => ({
    here: `SELECT ${a} AS p, ${b} AS q FROM S3Object r${filter?.[0] ?? ""}`,
    duck: `SELECT ${c} AS p, ${d} AS q FROM data r${filter?.[1] ?? ""}`,
  }));
  const aggregate = fc.tuple(number, number, fc.option(where)).map(([[a, c], [b, d], filter]) => ({
    here: `SELECT COUNT(*) AS n, COUNT(${a}) AS c, SUM(${a}) AS s, MIN(${b}) AS lo, MAX(${b}) AS hi, AVG(${b}) AS v FROM S3Object r${filter?.[0] ?? ""}`,
    duck: `SELECT COUNT(*) AS n, COUNT(${c}) AS c, SUM(${c}) AS s, MIN(${d}) AS lo, MAX(${d}) AS hi, AVG(${d}) AS v FROM data r${filter?.[1] ?? ""}`,
  }));
  const group = fc.tuple(texts, number, fc.option(where)).map(([[a, c], [b, d], filter]) => ({
    here: `SELECT ${a} AS k, COUNT(*) AS n, SUM(${b}) AS s FROM S3Object r${filter?.[0] ?? ""} GROUP BY ${a} HAVING COUNT(*) > 1`,
    duck: `SELECT ${c} AS k, COUNT(*) AS n, SUM(${d}) AS s FROM data r${filter?.[1] ?? ""} GROUP BY ${c} HAVING COUNT(*) > 1`,
  }));
  const distinct = fc
    .tuple(texts, fc.nat({ max: 5 }), fc.nat({ max: 3 }))
    .map(([[a, c], limit, offset]) => ({
      here: `SELECT DISTINCT ${a} AS k FROM S3Object r ORDER BY k NULLS FIRST LIMIT ${limit} OFFSET ${offset}`,
      duck: `SELECT DISTINCT ${c} AS k FROM data r ORDER BY k NULLS FIRST LIMIT ${limit} OFFSET ${offset}`,
    }));
  return fc.oneof(plain, aggregate, group, distinct);
}

/** A value without the differences of number types; missing is null. */
function normalize(value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "number") return Number(value.toPrecision(12));
  return value;
}

function toLines(rows: readonly object[], names: readonly string[]): string[] {
  return rows
    .map((one) =>
      JSON.stringify(names.map((name) => normalize((one as Record<string, unknown>)[name]))),
    )
    .sort();
}

async function compare(
  rows: readonly Row[],
  question: Question,
  load: () => Promise<{ data: Buffer; input: InputFormat }>,
): Promise<void> {
  const { data, input } = await load();
  const reader = await duck.runAndReadAll(question.duck);
  const names = reader.columnNames();
  const found = (await askRows(question.here, { data, input })) as object[];
  assert.deepEqual(
    toLines(found, names),
    toLines(reader.getRowObjectsJS(), names),
    `${question.here}\n${question.duck}\n${JSON.stringify(rows)}`,
  );
}

const TYPES = "i BIGINT, d DOUBLE, s VARCHAR, t VARCHAR, b BOOLEAN";

async function fill(rows: readonly Row[]): Promise<void> {
  await duck.run(`CREATE OR REPLACE TABLE data (${TYPES})`);
  const values = rows.map(
    ({ i, d, s, t, b }) =>
      `(${i ?? "NULL"}, ${d}, ${quote(s)}, ${t === null ? "NULL" : quote(t)}, ${b})`,
  );
  await duck.run(`INSERT INTO data VALUES ${values.join(", ")}`);
}

const FORMATS: Record<
  string,
  { columns: Columns; encode: (rows: readonly Row[]) => Promise<Buffer>; input: InputFormat }
> = {
  "JSON lines": {
    columns: { here: (name) => `r.${name}`, duck: (name) => `r.${name}` },
    input: LINES,
    encode: async (rows) => Buffer.from(rows.map((one) => `${JSON.stringify(one)}\n`).join("")),
  },
  CSV: {
    // An empty field stands for NULL.
    columns: {
      here: (name) =>
        ({
          i: "CAST(NULLIF(r.i, '') AS INT)",
          d: "CAST(r.d AS FLOAT)",
          s: "r.s",
          t: "NULLIF(r.t, '')",
          b: "CAST(r.b AS BOOL)",
        })[name],
      duck: (name) => `r.${name}`,
    },
    input: CSV,
    encode: async (rows) => {
      const field = (value: Row[keyof Row]): string =>
        value === null ? "" : `"${String(value).replaceAll('"', '""')}"`;
      const lines = rows.map(({ i, d, s, t, b }) => [i, d, s, t, b].map(field).join(","));
      return Buffer.from(`i,d,s,t,b\n${lines.join("\n")}\n`);
    },
  },
  Parquet: {
    columns: { here: (name) => `r.${name}`, duck: (name) => `r.${name}` },
    input: PARQUET,
    encode: async () => {
      const path = join(folder, "data.parquet");
      await duck.run(`COPY data TO '${path}' (FORMAT parquet)`);
      return readFileSync(path);
    },
  },
};

for (const [name, { columns, encode, input }] of Object.entries(FORMATS)) {
  test(`${name}: ${QUESTIONS} questions have the answers of DuckDB`, async () => {
    const [rows] = fc.sample(fc.array(row, { minLength: ROWS, maxLength: ROWS }), {
      numRuns: 1,
      seed: 36,
    });
    await fill(rows!);
    const data = await encode(rows!);
    await fc.assert(
      fc.asyncProperty(createQuestions(columns), (question) =>
        compare(rows!, question, async () => ({ data, input })),
      ),
      { numRuns: QUESTIONS },
    );
  });
}
