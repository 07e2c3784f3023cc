// Hostile questions about hostile files, while others put and get: each ends with an error of its own or its answer,
// memory stays bounded, and the next question is answered.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { gzipSync, zstdCompressSync, constants } from "node:zlib";
import { createRandom } from "@platform/testing/random";
import { serve, type Serving } from "./serving.ts";

/** PLATFORM_VAULT_ATTACKS=4 is the long form: so many expressions for each file, 144 attacks. */
const EXPRESSIONS_PER_FILE = Number(process.env["PLATFORM_VAULT_ATTACKS"] ?? 1);
const MIB = 1024 * 1024;
const SMALL = "id,name,n\n1,Ann,5\n2,Bob,7\n3,Eve,9\n";
const SEED = 36;
/** Both select threads are busy with it; other requests must not notice. */
const AT_ONCE = 6;

const CSV = { CSV: { FileHeaderInfo: "USE" } };
const RAGGED = { CSV: { FileHeaderInfo: "NONE", AllowQuotedRecordDelimiter: true } };
const LINES = { JSON: { Type: "LINES" } };
const DOCUMENT = { JSON: { Type: "DOCUMENT" } };
const PARQUET = { Parquet: {} };

interface HostileFile {
  readonly name: string;
  readonly bytes: Buffer;
  readonly inputs: readonly object[];
}

function makeFiles(): HostileFile[] {
  const random = createRandom(SEED);
  const noise = Buffer.from(Array.from({ length: 200_000 }, () => Math.floor(random() * 256)));
  const wide = `${Array.from({ length: 20_000 }, (_, n) => `c${n}`).join(",")}\n${"1,".repeat(20_000)}1\n`;
  const bomb = gzipSync(Buffer.alloc(64 * MIB, "a,b\n"));
  const lines = Array.from({ length: 50_000 }, (_, n) => `{"k":"${n}","v":${n}}\n`).join("");
  const window = zstdCompressSync(Buffer.alloc(MIB, "x\n"), {
    params: { [constants.ZSTD_c_windowLog]: 27 },
  });
  const parquet = Buffer.concat([Buffer.from("PAR1"), noise.subarray(0, 4_000)]);
  const lying = Buffer.alloc(8);
  lying.writeUInt32LE(0x7fff_ffff);
  lying.write("PAR1", 4);
  const text = (value: string): Buffer => Buffer.from(value);
  return [
    { name: "field.csv", bytes: text(`n\n${"x".repeat(10 * MIB)}\n`), inputs: [CSV, RAGGED] },
    { name: "quote.csv", bytes: text(`n\n"${"x\n".repeat(200_000)}`), inputs: [CSV, RAGGED] },
    { name: "nul.csv", bytes: text("n\n\0,\0\n\0\n"), inputs: [CSV, LINES] },
    { name: "utf16.csv", bytes: Buffer.from("\ufeffn\n1\n", "utf16le"), inputs: [CSV, LINES] },
    { name: "wide.csv", bytes: text(wide), inputs: [CSV, RAGGED] },
    { name: "noise", bytes: noise, inputs: [CSV, LINES, DOCUMENT, PARQUET] },
    { name: "deep.json", bytes: text("[".repeat(200_000)), inputs: [LINES, DOCUMENT] },
    {
      name: "levels.json",
      bytes: text(`${'{"a":'.repeat(10_000)}1${"}".repeat(10_000)}`),
      inputs: [DOCUMENT],
    },
    {
      name: "proto.json",
      bytes: text('{"__proto__":{"n":1},"constructor":1,"n":2,"n":3}\n'),
      inputs: [LINES, DOCUMENT],
    },
    {
      name: "digits.json",
      bytes: text(`{"n":${"9".repeat(400)}}\n{"n":1e${"9".repeat(300)}}\n`),
      inputs: [LINES],
    },
    { name: "open.json", bytes: text(`{"n":"${"x".repeat(2 * MIB)}`), inputs: [LINES, DOCUMENT] },
    { name: "groups.json", bytes: text(lines), inputs: [LINES] },
    { name: "bomb.gz", bytes: bomb, inputs: [{ ...CSV, CompressionType: "GZIP" }] },
    {
      name: "cut.gz",
      bytes: bomb.subarray(0, bomb.length >> 1),
      inputs: [{ ...CSV, CompressionType: "GZIP" }],
    },
    {
      name: "twice.gz",
      bytes: Buffer.concat([gzipSync(SMALL), gzipSync(SMALL), noise.subarray(0, 99)]),
      inputs: [{ ...CSV, CompressionType: "GZIP" }],
    },
    { name: "window.zst", bytes: window, inputs: [{ ...CSV, CompressionType: "ZSTD" }] },
    {
      name: "noise.bz2",
      bytes: Buffer.concat([text("BZh9"), noise]),
      inputs: [{ ...CSV, CompressionType: "BZIP2" }],
    },
    { name: "noise.parquet", bytes: parquet, inputs: [PARQUET] },
    { name: "lying.parquet", bytes: Buffer.concat([parquet, lying]), inputs: [PARQUET] },
  ];
}

const EXPRESSIONS = [
  "SELECT COUNT(*) FROM S3Object",
  "SELECT * FROM S3Object s ORDER BY s._1 || s._1 || s._1",
  `SELECT DISTINCT ${Array.from({ length: 40 }, () => "s._1").join(" || ")} FROM S3Object s`,
  `SELECT COUNT(*) FROM S3Object s WHERE ${Array.from({ length: 100 }, (_, n) => `s._1 LIKE '%a%a%a%a%a%b${n}'`).join(" OR ")}`,
];
/** On a small file: what they are is the attack. */
const TEXTS = [
  "(".repeat(200_000),
  `SELECT ${"-".repeat(100_000)}1 FROM S3Object`,
  `SELECT s${".a".repeat(60_000)} FROM S3Object s`,
  `SELECT ${"a || ".repeat(40_000)}a FROM S3Object`,
  `SELECT ${"CASE WHEN 1=1 THEN ".repeat(5_000)}1${" END".repeat(5_000)} FROM S3Object`,
  `SELECT * FROM S3Object WHERE n IN (${Array.from({ length: 50_000 }, (_, n) => n).join(",")})`,
  `SELECT '${"x".repeat(200_000)} FROM S3Object`,
  "SELECT * FROM S3Object; DROP TABLE objects",
  "SELECT * FROM sqlite_master",
  "SELECT * FROM S3Object s, S3Object t",
  "SELECT * FROM S3Object WHERE n = (SELECT MAX(n) FROM S3Object)",
  "SELECT * FROM S3Object UNION SELECT * FROM S3Object",
  "SELECT readfile('/etc/passwd') FROM S3Object",
  "SELECT * FROM '/etc/passwd'",
  "SELECT SUBSTRING(name, -9223372036854775808, 9223372036854775807) FROM S3Object",
  "SELECT CAST(n AS INT) * 9223372036854775807 FROM S3Object",
  "SELECT CAST(n AS INT) / 0 FROM S3Object",
  "SELECT TO_TIMESTAMP(name, 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyy') FROM S3Object",
  `SELECT name LIKE '${"%_".repeat(50_000)}' FROM S3Object`,
  "SELECT name LIKE 'a' ESCAPE 'ab' FROM S3Object",
  "SELECT \u0000 FROM S3Object",
  "SELECT 1 FROM S3Object LIMIT 99999999999999999999",
  "SELECT s.__proto__.constructor FROM S3Object s",
  `SELECT * FROM S3Object${"[*]".repeat(50_000)}`,
];

let serving: Serving;

before(async () => {
  serving = await serve({ env: { PLATFORM_VAULT_SELECT_TIMEOUT_MS: "1000" } });
  await serving.s3.must("PUT", "/data");
  await serving.s3.must("PUT", "/data/small.csv", { body: SMALL });
});
after(() => serving[Symbol.asyncDispose]());

/** The code of the error, `200` for an answer, or `cut` for one that ended before its end. */
async function ask(key: string, expression: string, input: object): Promise<string> {
  const body = JSON.stringify({
    Expression: expression,
    ExpressionType: "SQL",
    InputSerialization: input,
    OutputSerialization: { JSON: {} },
  });
  try {
    const { status, code } = await serving.s3.send("POST", `/data/${key}?select`, { body });
    assert.ok(
      status < 500 || code === "Busy",
      `${key}, ${expression.slice(0, 80)}: ${status} ${code}`,
    );
    return status === 200 ? "200" : String(code);
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return "cut";
  }
}

test("attacks end, each with its answer or an error of S3, and disturb nothing", async (t) => {
  const { s3, vault } = serving;
  const files = makeFiles();
  for (const { name, bytes } of files) await s3.must("PUT", `/data/${name}`, { body: bytes });
  const attacks = [
    ...files.flatMap(({ name, inputs }) =>
      inputs.flatMap((input) =>
        EXPRESSIONS.slice(-EXPRESSIONS_PER_FILE).map((expression) => ({ name, input, expression })),
      ),
    ),
    ...TEXTS.map((expression) => ({ name: "small.csv", input: CSV, expression })),
  ];
  const before = readMemory(vault.pid);
  const ended = new AbortController();
  let longestMs = 0;
  const others = (async () => {
    while (!ended.signal.aborted) {
      const startedMs = performance.now();
      assert.equal((await s3.must("GET", "/data/small.csv")).text, SMALL);
      await s3.must("PUT", "/data/put.csv", { body: SMALL });
      longestMs = Math.max(longestMs, performance.now() - startedMs);
    }
  })();
  const ends = new Map<string, number>();
  const queue = attacks.values();
  const lane = async (): Promise<void> => {
    for (const { name, input, expression } of queue) {
      const end = await ask(name, expression, input);
      assert.match(end, /^(?:200|cut|[A-Z][A-Za-z]+)$/, `${name}: ${expression.slice(0, 80)}`);
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  ended.abort();
  await others;
  t.diagnostic(
    `${attacks.length} attacks: ${[...ends].map(([end, count]) => `${end} ${count}`).join(", ")}`,
  );
  assert.ok((ends.get("200") ?? 0) < attacks.length / 2);
  assert.ok(longestMs < 3_000, `${longestMs} ms`);
  const growth = readMemory(vault.pid) - before;
  assert.ok(growth < 700 * MIB, `${Math.round(growth / MIB)} MiB`);
  assert.equal(await ask("small.csv", "SELECT COUNT(*) FROM S3Object", CSV), "200");
});

function readMemory(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
