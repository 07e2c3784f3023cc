// Parquet: all codecs and page versions, nested columns, few bytes read, and damaged files. DuckDB writes the files.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import fc from "fast-check";
import { SelectError } from "../../src/select/language/fault.ts";
import { type Asked, ask, askRows, askWithStats, PARQUET } from "./rig.ts";

const folder = mkdtempSync(join(tmpdir(), "vault-parquet-"));
let duck: DuckDBConnection;
let instance: DuckDBInstance;

before(async () => {
  instance = await DuckDBInstance.create(":memory:");
  duck = await instance.connect();
});
after(() => {
  duck.closeSync();
  instance.closeSync();
  rmSync(folder, { recursive: true, force: true });
});

/** The bytes of a file with the result of a query. */
async function write(query: string, options = ""): Promise<Buffer> {
  const path = join(folder, "file.parquet");
  await duck.run(`COPY (${query}) TO '${path}' (FORMAT parquet${options})`);
  return readFileSync(path);
}

const rows = (expression: string, data: Buffer, asked: Asked = {}): Promise<unknown[]> =>
  askRows(expression, { data, input: PARQUET, ...asked });

const NUMBERS = "SELECT i, i * 0.5 AS half, 'name ' || (i % 10) AS name FROM range(50000) t(i)";

describe("codecs and versions", () => {
  for (const codec of ["UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "LZ4_RAW"]) {
    for (const version of ["V1", "V2"]) {
      test(`${codec}, pages of ${version}`, async () => {
        const data = await write(NUMBERS, `, CODEC ${codec}, PARQUET_VERSION ${version}`);
        assert.deepEqual(
          await rows(
            "SELECT COUNT(*) AS c, SUM(i) AS s, MAX(half) AS m FROM S3Object WHERE name = 'name 3'",
            data,
          ),
          [{ c: 5_000, s: 124_990_000, m: 24_996.5 }],
        );
      });
    }
  }
});

test("BROTLI", async () => {
  const data = await write("SELECT 'x' AS a", ", CODEC BROTLI");
  assert.deepEqual(await rows("SELECT a FROM S3Object", data), [{ a: "x" }]);
});

test("values of all types", async () => {
  const data = await write(
    `SELECT true AS b, 7::TINYINT AS i8, -7::SMALLINT AS i16, 9223372036854775807 AS i64, 18446744073709551615::UBIGINT AS u64,
     1.0::DOUBLE AS d, 0.5::FLOAT AS f, 12.34::DECIMAL(9,2) AS dec, 'é😀' AS s, DATE '2020-02-29' AS day,
     TIMESTAMP '2020-02-29 12:34:56.789012' AS t, 'ab'::BLOB AS blob, NULL::INTEGER AS n,
     [1, 2, NULL] AS list, {'x': 1, 'y': ['z']} AS o, '123e4567-e89b-12d3-a456-426614174000'::UUID AS id`,
  );
  const [row] = await rows("SELECT * FROM S3Object", data);
  const { u64, i64, ...others } = row as Record<string, unknown>;
  assert.deepEqual(others, {
    b: true,
    i8: 7,
    i16: -7,
    d: 1,
    f: 0.5,
    dec: 12.34,
    s: "é😀",
    day: "2020-02-29",
    t: "2020-02-29T12:34:56.789012Z",
    blob: "ab",
    n: null,
    list: [1, 2, null],
    o: { x: 1, y: ["z"] },
    id: "123e4567-e89b-12d3-a456-426614174000",
  });
  const text = await ask("SELECT i64, d FROM S3Object", { data, input: PARQUET });
  assert.equal(text, '{"i64":9223372036854775807,"d":1.0}\n');
  assert.deepEqual([typeof u64, typeof i64], ["number", "number"]);
  assert.deepEqual(
    await rows(
      "SELECT s.list[1] AS a, s.o.y[0] AS b, _1 AS c FROM S3Object s WHERE day < `2020-03-01T` AND EXTRACT(hour FROM t) = 12",
      data,
    ),
    [{ a: 2, b: "z", c: true }],
  );
});

describe("columns of numbers", () => {
  // Repeated values have a dictionary, distinct ones have none; equal ones are one run.
  const FORMS = [
    "(i * 7919 % 1000 - 500)::INTEGER",
    "(i * 104729 % 70000)::BIGINT",
    "i * 1000003 - 40000000000",
    "(i % 3 - 1)::TINYINT",
    "7::SMALLINT",
    "(i * 7 % 200000) * 0.25::DOUBLE",
    "(i % 5)::DOUBLE",
    "(i * 0.5)::FLOAT",
    "CASE WHEN i % 1000 = 0 THEN 9007199254740993 + i ELSE i END",
    "(i % 250)::UTINYINT",
    "NULL::BIGINT",
  ];
  const HOLES = ["true", "i % 3 <> 0", "i < 30000", "i % 1000 = 1"];

  for (const version of ["V1", "V2"]) {
    test(`are those that DuckDB reads, with nulls in all places, ${version}`, async () => {
      for (const hole of HOLES) {
        const columns = FORMS.map((form, at) => `CASE WHEN ${hole} THEN ${form} END AS c${at}`);
        const query = `SELECT i, ${columns.join(", ")} FROM range(60000) t(i)`;
        const data = await write(query, `, PARQUET_VERSION ${version}, ROW_GROUP_SIZE 20480`);
        const names = FORMS.map((_, at) => `c${at}`).join(", ");
        const where = "i % 97 = 5";
        const ours = await rows(`SELECT ${names} FROM S3Object WHERE ${where}`, data);
        const theirs = await duck.runAndReadAll(
          `SELECT ${names} FROM (${query}) WHERE ${where} ORDER BY i`,
        );
        const expected = theirs
          .getRowObjectsJson()
          .map((row) =>
            Object.fromEntries(
              Object.entries(row).map(([name, value]) => [
                name,
                value === null ? null : Number(value),
              ]),
            ),
          );
        assert.ok(expected.length > 600);
        assert.deepEqual(ours, expected, hole);
      }
    });
  }

  test("keep the difference between whole doubles and integers", async () => {
    const data = await write("SELECT 1::DOUBLE AS d, 1::INTEGER AS n FROM range(3)");
    assert.equal(
      await ask("SELECT d / 2 AS x, n / 2 AS y FROM S3Object LIMIT 1", { data, input: PARQUET }),
      '{"x":0.5,"y":0}\n',
    );
  });
});

test("rows of several row groups keep their order, and LIMIT ends the reading", async () => {
  const data = await write(NUMBERS, ", ROW_GROUP_SIZE 5000");
  assert.deepEqual(
    (await rows("SELECT i FROM S3Object", data)).map((row) => (row as { i: number }).i),
    Array.from({ length: 50_000 }, (_, index) => index),
  );
  const { stats } = await askWithStats("SELECT i FROM S3Object LIMIT 10", { data, input: PARQUET });
  const all = await askWithStats("SELECT i FROM S3Object", { data, input: PARQUET });
  assert.ok(stats.scannedBytes < all.stats.scannedBytes / 2);
});

test("only the needed columns are read, and no row group that cannot match", async () => {
  const columns = Array.from({ length: 20 }, (_, index) => `hash(i + ${index}) AS c${index}`);
  const data = await write(
    `SELECT i, ${columns.join(", ")} FROM range(20000) t(i)`,
    ", ROW_GROUP_SIZE 2048, CODEC UNCOMPRESSED",
  );
  const scan = async (expression: string): Promise<number> =>
    (await askWithStats(expression, { data, input: PARQUET })).stats.scannedBytes;
  assert.ok((await scan("SELECT COUNT(*) FROM S3Object")) <= 65_536 * 2);
  assert.ok((await scan("SELECT MAX(c1) FROM S3Object WHERE c2 > 5")) < data.length / 4);
  const one = "SELECT c1 FROM S3Object s WHERE s.i BETWEEN 5000 AND 5010 AND c2 IS NOT NULL";
  assert.ok((await scan(one)) < data.length / 10);
  assert.equal((await rows(one, data)).length, 11);
});

test("conditions on numbers select the same rows, in front of others and behind them", async () => {
  const data = await write(
    `SELECT CASE WHEN i % 7 = 0 THEN NULL ELSE i % 20 - 10 END AS n,
     CASE WHEN i % 5 = 0 THEN 'nan'::DOUBLE WHEN i % 11 = 0 THEN NULL ELSE (i % 30) / 4.0 - 3 END AS d,
     CASE WHEN i % 20 = 3 AND i % 7 > 0 THEN 'x' ELSE i::VARCHAR END AS s,
     CASE WHEN i % 7 = 0 THEN 'x' ELSE '1' END AS z FROM range(9000) t(i)`,
    ", ROW_GROUP_SIZE 4096",
  );
  const conditions = ["=", "<>", "<", "<=", ">", ">="].flatMap((operator) =>
    ["n", "d"].flatMap((name) => [`${name} ${operator} 3`, `-2 ${operator} ${name}`]),
  );
  conditions.push("n BETWEEN -3 AND 4", "n > 9223372036854775807", "_1 < 3 AND _2 > 1");
  const count = async (where: string): Promise<unknown> => {
    const answer = await rows(`SELECT COUNT(*) AS c FROM S3Object WHERE ${where}`, data);
    return (answer[0] as { c: unknown }).c;
  };
  for (const one of conditions) {
    const hidden = await count(`(${one}) = true`);
    assert.equal(await count(one), hidden, one);
    assert.equal(await count(`s <> 'y' AND ${one}`), hidden, one);
    assert.equal(await count(`n < 5 AND ${one}`), await count(`${one} AND (n < 5) = true`), one);
  }
  // Only a condition in front of a fault saves the rows from it.
  assert.equal(await count("n <> -7 AND CAST(s AS INT) >= 0"), await count("n <> -7"));
  await assert.rejects(count("CAST(s AS INT) >= 0 AND n <> -7"), { code: "CastFailed" });
  // NULL does not decide.
  await assert.rejects(count("n > 5 AND CAST(z AS INT) > 0"), { code: "CastFailed" });
});

test("a scan range selects the row groups that begin in it", async () => {
  const data = await write(NUMBERS, ", ROW_GROUP_SIZE 5000");
  const half = Math.floor(data.length / 2);
  const count = async (start: number, end: number): Promise<number> => {
    const [row] = await rows("SELECT COUNT(*) AS c FROM S3Object", data, {
      scanRange: { start, end },
    });
    return (row as { c: number }).c;
  };
  const [first, second] = [await count(0, half - 1), await count(half, data.length - 1)];
  assert.equal(first + second, 50_000);
  assert.ok(first > 0 && second > 0);
});

describe("damaged files are ParquetParsingError", () => {
  test("texts, truncated files and lying footers", async () => {
    const data = await write("SELECT 1 AS a");
    const footer = Buffer.from(data);
    footer.writeUInt32LE(0xffff_fff0, footer.length - 8);
    const cyclic = Buffer.from(data);
    cyclic.writeUInt32LE(4, cyclic.length - 8);
    for (const bytes of [
      Buffer.alloc(0),
      Buffer.from("PAR1"),
      Buffer.from("hello, this is no Parquet file"),
      data.subarray(0, -1),
      data.subarray(0, 40),
      footer,
      cyclic,
    ]) {
      await assert.rejects(rows("SELECT * FROM S3Object", bytes), { code: "ParquetParsingError" });
    }
  });

  test("a file with any bytes changed is answered or refused", async () => {
    const data = await write(NUMBERS.replace("50000", "300"), ", ROW_GROUP_SIZE 2048");
    const change = fc.tuple(
      fc.integer({ min: 0, max: data.length - 1 }),
      fc.integer({ min: 0, max: 255 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
        const bytes = Buffer.from(data);
        for (const [at, value] of changes) bytes[at] = value;
        try {
          await rows("SELECT * FROM S3Object", bytes);
        } catch (error) {
          assert.ok(error instanceof SelectError, String(error));
        }
      }),
      { numRuns: 400 },
    );
  });
});
