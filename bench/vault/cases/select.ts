// SQL on the content of objects over HTTP, beside DuckDB with one thread on the local file.
import { openAsBlob, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { findFreePort } from "../../../tests/stage/process.ts";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { runRounds } from "../../harness/rounds.ts";
import { CREDENTIALS, createPresigner } from "../presign.ts";
import { makePlatformVaultd } from "../stores/platform-vaultd.ts";

const GB = 1e9;
/** Rows of about 71 bytes of CSV. */
const LONG_ROWS = 14_000_000;
/** Rows of about 115 bytes of JSON. */
const LINES_ROWS = 8_700_000;
const WIDE_ROWS = 2_000_000;
const WIDE_COLUMNS = 20;
const DUCK = "DuckDB, one thread, local file";
/** So long that no round of a question is cut short. */
const TIMEOUT_MS = 600_000;

interface Question {
  readonly name: string;
  readonly file: string;
  readonly input: object;
  readonly expression: string;
  /** For DuckDB; `FILE` is the path. */
  readonly duck: string | undefined;
  readonly atMost?: number;
}

const CSV_INPUT = { CSV: { FileHeaderInfo: "USE" } };
const QUESTIONS: readonly Question[] = [
  {
    name: "CSV, 1 GB, filter and count",
    file: "long.csv",
    input: CSV_INPUT,
    expression:
      "SELECT COUNT(*) AS n FROM S3Object s WHERE s.city = 'city-7' AND CAST(s.amount AS FLOAT) > 500",
    duck:
      "select count(*) as n from read_csv('FILE', auto_detect=false, header=true, columns={'id':'VARCHAR','city':'VARCHAR'," +
      "'amount':'DOUBLE','name':'VARCHAR','note':'VARCHAR'}) where city = 'city-7' and amount > 500",
    atMost: 1.3,
  },
  {
    name: "JSON lines, 1 GB, filter and count",
    file: "long.ndjson",
    input: { JSON: { Type: "LINES" } },
    expression: "SELECT COUNT(*) AS n FROM S3Object s WHERE s.city = 'city-7' AND s.amount > 500",
    duck:
      "select count(*) as n from read_ndjson('FILE', columns={'city':'VARCHAR','amount':'DOUBLE'}) " +
      "where city = 'city-7' and amount > 500",
    atMost: 2.5,
  },
  {
    name: "Parquet, two of twenty columns",
    file: "wide.parquet",
    input: { Parquet: {} },
    expression: "SELECT SUM(s.c1) AS n FROM S3Object s WHERE s.c0 < 500",
    duck: "select sum(c1) as n from 'FILE' where c0 < 500",
    atMost: 10,
  },
  {
    name: "CSV, LIMIT 10 of 1 GB",
    file: "long.csv",
    input: CSV_INPUT,
    expression: "SELECT s.id FROM S3Object s LIMIT 10",
    duck: undefined,
  },
  {
    name: "CSV, 1 KB",
    file: "small.csv",
    input: CSV_INPUT,
    expression: "SELECT COUNT(*) AS n FROM S3Object s WHERE s.city = 'city-7'",
    duck: undefined,
  },
];

/** Questions about gigabytes. */
export const select: BenchCase = {
  name: "select",
  title: "SQL on objects of 1 GB",
  isOptional: true,
  run: async (context) => {
    await using workspace = new Workspace();
    const folder = join(workspace.folder, "files");
    mkdirSync(folder);
    const instance = await DuckDBInstance.create(":memory:", { threads: "1" });
    const duck = await instance.connect();
    context.say("  writing files");
    await writeFiles(duck, folder);
    const ask = await startStore(context, workspace, folder);
    const entrants = QUESTIONS.flatMap((question) => listEntrants(question, ask, duck, folder));
    const answers = new Map<string, string>();
    await runRounds(
      context,
      entrants,
      async ({ question, run }) => {
        const begun = performance.now();
        const answer = await run();
        const ms = performance.now() - begun;
        const expected = answers.get(question.name) ?? answer;
        answers.set(question.name, expected);
        return answer === expected ? { ms } : `answers ${answer} instead of ${expected}`;
      },
      ({ ms }) => `${ms!.toFixed(0)} ms`,
    );
    duck.closeSync();
    instance.closeSync();
    return {
      work: `One question at a time, over HTTP; the CSV file has ${describeSize(folder, "long.csv")}, the JSON lines ${describeSize(folder, "long.ndjson")}, the Parquet file ${WIDE_ROWS / 1e6} million rows of ${WIDE_COLUMNS} columns. The files of both are in the page cache.`,
      columns: [{ key: "ms", title: "ms", digits: 1 }],
      rows: entrants.map(({ row }) => row),
      ratioColumns: [],
      goals: QUESTIONS.flatMap(({ name, duck: other, atMost }) =>
        other === undefined || atMost === undefined
          ? []
          : [{ column: "ms", against: `${name}: ${DUCK}`, ours: [`${name}: vault`], atMost }],
      ),
    };
  },
};

interface Entrant {
  readonly question: Question;
  readonly row: Row;
  readonly run: () => Promise<string>;
}

function listEntrants(
  question: Question,
  ask: (question: Question) => Promise<string>,
  duck: DuckDBConnection,
  folder: string,
): Entrant[] {
  const { name, file, duck: sql } = question;
  const ours: Entrant = {
    question,
    row: { name: `${name}: vault`, isOurs: true, version: "", rounds: [] },
    run: () => ask(question),
  };
  if (sql === undefined) return [ours];
  const other: Entrant = {
    question,
    row: { name: `${name}: ${DUCK}`, isOurs: false, version: "", rounds: [] },
    run: async () => {
      const answer = await duck.runAndReadAll(sql.replace("FILE", join(folder, file)));
      return String(Number(answer.getRowsJson()[0]?.[0]));
    },
  };
  return [ours, other];
}

async function writeFiles(duck: DuckDBConnection, folder: string): Promise<void> {
  const rows = (count: number): string =>
    `select i as id, 'city-' || (i * 7919 % 20) as city, (i * 104729 % 100000) / 100.0 as amount, 'name of the person ' || i as name, ` +
    `'a note of some words' || case when i % 10 = 0 then ', with a comma' else '' end as note from range(${count}) t(i)`;
  const wide = Array.from(
    { length: WIDE_COLUMNS },
    (_, column) => `(i * ${7919 + 2 * column} % 1000) as c${column}`,
  );
  const COPIES = [
    [rows(LONG_ROWS), "long.csv", "format csv, header"],
    [rows(10), "small.csv", "format csv, header"],
    [rows(LINES_ROWS), "long.ndjson", "format json"],
    [
      `select ${wide.join(", ")} from range(${WIDE_ROWS}) t(i)`,
      "wide.parquet",
      "format parquet, compression snappy",
    ],
  ];
  for (const [query, file, options] of COPIES) {
    await duck.run(`copy (${query}) to '${join(folder, file!)}' (${options})`);
  }
}

// Resolves with the function that asks the store, and returns the number that it answers, or the number of records.
async function startStore(
  context: BenchContext,
  workspace: Workspace,
  files: string,
): Promise<(question: Question) => Promise<string>> {
  const store = makePlatformVaultd(context.builds[0]!);
  const folder = join(workspace.folder, "store");
  mkdirSync(folder);
  const port = await findFreePort();
  await store.start({ port, cores: context.cores.all, folder, workspace });
  const origin = `http://127.0.0.1:${port}`;
  const sign = createPresigner(new URL(origin).host, CREDENTIALS);
  const send = async (
    method: string,
    path: string,
    body?: Blob | string,
    query = {},
  ): Promise<string> => {
    const answer = await fetch(origin + sign(method, path, query), {
      method,
      ...(body === undefined ? {} : { body }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text;
  };
  await send("PUT", "/bench");
  for (const file of new Set(QUESTIONS.map((question) => question.file))) {
    await send("PUT", `/bench/${file}`, await openAsBlob(join(files, file)));
  }
  return async ({ file, expression, input }) => {
    const body = JSON.stringify({
      Expression: expression,
      InputSerialization: input,
      OutputSerialization: { JSON: {} },
    });
    const text = await send("POST", `/bench/${file}`, body, { select: "" });
    const lines = text.trimEnd().split("\n");
    const first = JSON.parse(lines[0]!) as { n?: number };
    return String(first.n ?? lines.length);
  };
}

function describeSize(folder: string, file: string): string {
  return `${(statSync(join(folder, file)).size / GB).toFixed(2)} GB`;
}
