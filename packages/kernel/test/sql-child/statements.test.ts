// Statements that read, and statements that try more than that.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import type { SqlDatabase, SqlTable } from "../../src/sql-child/index.ts";
import { createRig } from "./rig.ts";

/** A file with people of two houses, and a secret. */
function createFile(t: TestContext): { folder: string; path: string } {
  const folder = mkdtempSync(join(tmpdir(), "sql-child-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "people.sqlite");
  const database = new DatabaseSync(path);
  database.exec(`
    create table people (house integer, name text, age integer, picture blob);
    create index people_by_name on people (name);
    create table secrets (value text);
    insert into people values (1, 'Ann', 30, x'00ff'), (1, 'Bob', null, null), (2, 'Eve', 9223372036854775807, x'');
    insert into secrets values ('hunter2');
  `);
  database.close();
  return { folder, path };
}

const viewOf = (path: string): SqlDatabase => ({
  kind: "views",
  path,
  isSnapshot: false,
  views: [{ name: "people", select: "select name, age from main.people where house = 1" }],
});

test("a view shows its rows, by all that SELECT can do", async (t) => {
  const { ask } = createRig(t);
  const database = viewOf(createFile(t).path);
  const { columns, rows, isTruncated } = await ask(database, "select name, age from people");
  assert.deepEqual(columns, [{ name: "name" }, { name: "age" }]);
  assert.deepEqual(rows, [
    ["Ann", 30],
    ["Bob", null],
  ]);
  assert.equal(isTruncated, false);
  const values = async (sql: string, parameters: [string] | { n: string } | [] = []) =>
    (await ask(database, sql, { parameters })).rows.flat();
  assert.deepEqual(await values("select count(*), upper(min(name)) from people -- all\n;\n"), [
    2,
    "ANN",
  ]);
  assert.deepEqual(await values("select p.name from people p join people q on p.name > q.name"), [
    "Bob",
  ]);
  assert.deepEqual(await values("with a as (select name from people) select name from a limit 1"), [
    "Ann",
  ]);
  assert.deepEqual(
    await values("select row_number() over (order by name desc) from people"),
    [1, 2],
  );
  assert.deepEqual(await values("select value ->> 'a' from json_each('[{\"a\":1}]')"), [1]);
  assert.deepEqual(await values("select name from people where name = ?", ["Ann"]), ["Ann"]);
  assert.deepEqual(await values("select name from people where name = :n", { n: "Bob" }), ["Bob"]);
  assert.deepEqual(await values("values ('x;y')"), ["x;y"]);
  assert.deepEqual(await values("select 7 from people"), [7, 7]);
  assert.deepEqual(await values("select count(*) from people"), [2]);
  assert.deepEqual(
    await values("with d(n) as (values (1), (2)) select a.n from d a, d b"),
    [1, 1, 2, 2],
  );
});

const HOSTILE = [
  "select value from secrets",
  "select name from people union select value from secrets",
  "select (select value from secrets)",
  "select name from main.people",
  "select * from main.people",
  // SQLite names a subquery as the reader of its tables.
  "with people as (select value from secrets) select * from people",
  "with people as (select * from main.people) select * from people",
  "select * from (select value from secrets) as people",
  "select * from people, (select value from secrets) as people",
  "select picture from people",
  "select house from people",
  "select rowid from main.people",
  "select * from sqlite_master",
  "select * from sqlite_schema",
  "select * from sqlite_temp_master",
  "select * from temp.sqlite_master",
  "select count(*) from sqlite_master",
  "select count(*) from secrets",
  "select count(*) from main.people",
  "select count(*) from SECRETS",
  "select count(*) from json_tree",
  "select count(*) from sqlite_temp_schema",
  "select count(*) from pragma_table_list",
  "select count(*) from fts5vocab",
  "select count(*) from temp.secrets",
  "select 1 from main.people",
  "select * from dbstat",
  "select count(*) from dbstat",
  "select * from sqlite_dbpage",
  "select * from pragma_table_list",
  "select * from pragma_database_list",
  "select * from pragma_table_info('secrets')",
  "select * from json_tree('[1]')",
  "pragma table_info(secrets)",
  "pragma database_list",
  "explain select name from people",
  "/**/ explain query plan select name from people",
  "with recursive n(x) as (values(1) union all select x + 1 from n) select x from n",
  "select load_extension('x')",
  "select fts3_tokenizer('simple')",
  "select sqlite_version()",
  "select sqlite_compileoption_get(1)",
  "insert into people values ('x', 1)",
  "insert into main.people values (1, 'x', 1, null) returning name",
  "update people set name = 'x'",
  "delete from main.people",
  "create table t (a)",
  "create temp table t (a)",
  "create temp view v as select value from secrets",
  "attach ':memory:' as other",
  "vacuum",
  "begin",
  "commit",
  "analyze",
  "reindex",
  "select 1; select value from secrets",
  "select 1; delete from people",
  "",
  "-- nothing",
  "selec name from people",
  "select name from people where",
  "select 'a",
  "select nothing from people",
  `select ${"(".repeat(5_000)}1${")".repeat(5_000)}`,
  `select ${"1,".repeat(5_000)}1`,
  "select \0",
];

test("a view hides everything else of its file", async (t) => {
  const { ask } = createRig(t);
  const database = viewOf(createFile(t).path);
  for (const sql of HOSTILE) {
    await assert.rejects(ask(database, sql), (error: Error & { kind?: string }) => {
      assert.match(
        `${error.name} ${error.kind}`,
        /^SqlError (?:invalid|forbidden|limit)$/,
        `${sql}: ${error.message}`,
      );
      assert.doesNotMatch(error.message, /hunter2|v[0-9a-f]{32}/, sql);
      return true;
    });
  }
});

test("a statement changes no file and creates none", async (t) => {
  const { folder, path } = createFile(t);
  const { ask } = createRig(t);
  const before = describeFolder(folder);
  const hostile = [
    `vacuum into '${join(folder, "copy.sqlite")}'`,
    `attach '${join(folder, "other.sqlite")}' as other`,
    "pragma journal_mode = wal",
    "pragma user_version = 7",
    "pragma writable_schema = on",
    "pragma wal_checkpoint",
    "pragma query_only = off",
    "insert into people values (1, 'x', 1, null) returning name",
    "with x as (select 1) delete from people",
    "create table t (a)",
    "create temp trigger x after insert on people begin select 1; end",
    "drop table people",
    "replace into people values (1, 'x', 1, null)",
    `select writefile('${join(folder, "x")}', 'x')`,
    "select load_extension('x')",
    "begin immediate",
  ];
  for (const database of [viewOf(path), { kind: "file", path } as const]) {
    for (const sql of hostile) {
      await assert.rejects(ask(database, sql), { name: "SqlError" }, sql);
    }
  }
  assert.deepEqual(describeFolder(folder), before);
});

function describeFolder(folder: string): string[] {
  return readdirSync(folder).map((name) => {
    const content = readFileSync(join(folder, name));
    return `${name} ${createHash("sha256").update(content).digest("hex")}`;
  });
}

test("a whole file shows its tables, plans and schema", async (t) => {
  const { path } = createFile(t);
  const { ask } = createRig(t);
  const values = async (sql: string) => (await ask({ kind: "file", path }, sql)).rows.flat();
  assert.deepEqual(await values("select value from secrets"), ["hunter2"]);
  assert.deepEqual(await values("select age from people where name = 'Eve'"), [
    9223372036854775807n,
  ]);
  assert.deepEqual(await values("select picture from people where name <> 'Bob'"), [
    Uint8Array.of(0, 255),
    new Uint8Array(),
  ]);
  assert.deepEqual(
    await values(
      "with recursive n(x) as (values(1) union all select x + 1 from n where x < 3) select x from n",
    ),
    [1, 2, 3],
  );
  const plan = await values("explain query plan select * from people where name = 'Ann'");
  assert.match(JSON.stringify(plan), /people_by_name/);
  assert.ok((await values("select name from sqlite_schema")).includes("secrets"));
  assert.ok((await values("select name from pragma_table_info('people')")).includes("picture"));
});

test("tables are filled if the statement reads them, and only then", async (t) => {
  const { ask } = createRig(t);
  const fetched: string[] = [];
  const table = (name: string, columns: string[], rows: SqlTable["rows"]): SqlTable => ({
    name,
    columns,
    rows: () => {
      fetched.push(name);
      return rows();
    },
  });
  const database: SqlDatabase = {
    kind: "tables",
    tables: [
      table("topics", ["name", "messages"], async function* rows() {
        yield [
          ["orders", 12n],
          ["it's", null],
        ];
        yield [["mails", 1.5]];
      }),
      table("groups", ["topic", "group"], () => [[["orders", Uint8Array.of(1)]]]),
      table("broken", ["a"], () => {
        throw new Error("no rows today");
      }),
    ],
  };
  assert.deepEqual((await ask(database, "select count(*) from topics where messages > 1")).rows, [
    [2],
  ]);
  assert.deepEqual(fetched, ["topics"]);
  const joined = await ask(
    database,
    'select name, "group" from topics join groups on topic = name',
  );
  assert.deepEqual(joined.rows, [["orders", Uint8Array.of(1)]]);
  assert.deepEqual(fetched, ["topics", "topics", "groups"]);
  assert.deepEqual((await ask(database, "select 1")).rows, [[1]]);
  await assert.rejects(ask(database, "select * from broken"), { message: "no rows today" });
  for (const sql of [
    "select * from sqlite_schema",
    "insert into topics values (1, 2)",
    "drop table topics",
  ]) {
    await assert.rejects(ask(database, sql), { kind: "forbidden" }, sql);
  }
  assert.deepEqual((await ask(database, "select name from topics order by 1 limit 1")).rows, [
    ["it's"],
  ]);
});

test("parameters that do not fit are errors of the statement", async (t) => {
  const { ask } = createRig(t);
  const database: SqlDatabase = { kind: "tables", tables: [] };
  await assert.rejects(ask(database, "select ?", { parameters: [1, 2] }), { kind: "invalid" });
  await assert.rejects(ask(database, "select :a", { parameters: { b: 1 } }), { kind: "invalid" });
  assert.deepEqual((await ask(database, "select :a", { parameters: { a: 2n ** 62n } })).rows, [
    [2n ** 62n],
  ]);
});
