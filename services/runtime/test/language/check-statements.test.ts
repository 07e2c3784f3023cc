// Statements of service files: errors at their names, types of their rows.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { checkStatements } from "../../src/language/check-statements.ts";
import { compileService } from "../../src/language/compile.ts";
import { runPlatform } from "../fixture/run-process.ts";

const folder = mkdtempSync(join(tmpdir(), "statements-"));
after(() => rmSync(folder, { recursive: true }));
const PATH = join(folder, "main.service.ts");
mkdirSync(join(folder, "migrations"));
writeFileSync(
  join(folder, "migrations/0001-notes.sql"),
  `create table notes (id integer primary key, text text not null, at bigint, done boolean not null,
     size real, bytes blob, day date);
   create table tags (note integer not null references notes (id), name varchar(20) not null,
     primary key (note, name));`,
);

const HEAD = 'database notes { migrations: "./migrations" }\n';

function check(source: string, databaseUrl?: string) {
  const compiled = compileService(HEAD + source, PATH);
  return checkStatements({ path: PATH, source: HEAD + source, ...compiled, databaseUrl });
}

function findRow(sql: string): string | undefined {
  const { problems, rowTypes } = check(`export route GET / { return notes.all\`${sql}\` }`);
  assert.deepEqual(problems, [], sql);
  return rowTypes[0]?.text;
}

test("rows have the types of the declared columns", () => {
  const cases: [sql: string, type: string | undefined][] = [
    ["select id, text, at from notes", '<{ "id": number; "text": string; "at": number | null }>'],
    [
      "select done, size, bytes, day from notes",
      '<{ "done": number | boolean; "size": number | null; "bytes": Uint8Array | null; "day": unknown }>',
    ],
    ["select text as t from notes where id = ${1}", '<{ "t": string }>'],
    ["insert into notes (text, done) values (${1}, ${0}) returning id", '<{ "id": number }>'],
    ["select count(*) as n, max(at) as last from notes", '<{ "n": number; "last": unknown }>'],
    ["select note, name from tags", '<{ "note": number; "name": string }>'],
    // Rows of the right side may be missing.
    [
      "select notes.id, name from notes left join tags on note = id",
      '<{ "id": number | null; "name": string | null }>',
    ],
    ["select (select text from notes) as t", '<{ "t": string | null }>'],
    ["delete from notes", undefined],
    // Parts of statements are not known.
    ["select ${sql`id`} from notes", undefined],
    ["select id from notes ${sql`where id = 1`} order by id", undefined],
  ];
  for (const [sql, type] of cases) assert.equal(findRow(sql), type, sql);
});

test("errors are at the name that is wrong, also inside transactions", () => {
  const find = (source: string): string[] =>
    check(source).problems.map(({ line, column, message }) => `${line}:${column}: ${message}`);
  assert.deepEqual(find("every 1h { await notes.run`delete from nots` }"), [
    "2:40: no such table: nots",
  ]);
  assert.deepEqual(
    find(
      "every 1h {\n  const rows = await notes.all<{}>`\n    select id,\n      txt from notes`;\n}",
    ),
    ["5:7: no such column: txt"],
  );
  assert.deepEqual(find("every 1h { await notes.run`insert into notes (txt) values (1)` }"), [
    "2:47: table notes has no column named txt",
  ]);
  assert.deepEqual(find("every 1h { await notes.all`select * fro notes` }"), [
    '2:37: near "fro": syntax error',
  ]);
  assert.deepEqual(
    find(
      "every 1h { await notes.transaction(async (tx) => { await tx.one`select a from notes` }) }\n" +
        "every 2h { const tx = { one: String.raw }; tx.one`select no sql` }",
    ),
    ["2:72: no such column: a"],
  );
});

test("a migration that fails is reported at its folder", () => {
  mkdirSync(join(folder, "bad"));
  writeFileSync(join(folder, "bad/0001-a.sql"), "create table a (id integer);");
  writeFileSync(join(folder, "bad/0002-b.sql"), "alter table b add column c text;");
  const source = 'migrations "./bad"\ndatabase notes\nevery 1h { await notes.run`delete from a` }';
  const compiled = compileService(source, PATH);
  const { problems } = checkStatements({ path: PATH, source, ...compiled, databaseUrl: undefined });
  assert.deepEqual(
    problems.map(({ line, column, message }) => ({ line, column, message })),
    [{ line: 1, column: 12, message: "migration 0002-b: no such table: b" }],
  );
});

test("statements for PostgreSQL are not checked, which a warning says", () => {
  const source = "every 1h { await notes.run`delete from nots` }";
  const { problems } = check(source, "postgres://localhost/notes");
  assert.deepEqual(
    problems.map(({ severity }) => severity),
    ["warning"],
  );
});

test("check finds a column that a row does not have, at its place; a type argument stays the author's", () => {
  writeFileSync(
    PATH,
    `${HEAD}export route GET /a { const note = await notes.one\`select * from notes\`; return note?.txet }
export route GET /b { const note = await notes.one<{ txet: string }>\`select * from notes\`; return note?.txet }
export route GET /c { return notes.all\`select txet from notes\` }
`,
  );
  const { status, text } = runPlatform(folder, "check");
  assert.equal(status, 1);
  assert.match(text, /^main\.service\.ts:4:47: no such column: txet$/m);
  assert.match(text, /^main\.service\.ts:2:87: Property 'txet' does not exist on type/m);
  assert.match(text, /: 2 errors\n$/);
});

test("inserts without required columns, and with strings for integers, are errors at their place", () => {
  const find = (sql: string): string[] =>
    check(`every 1h { await notes.run\`${sql}\` }`).problems.map(
      ({ column, message }) => `${column}: ${message.replace(/,.*/, "")}`,
    );
  assert.deepEqual(find("insert into notes (text, size) values ('a', 1)"), [
    "40: the insert leaves out notes.done",
  ]);
  assert.deepEqual(find("replace into tags default values"), [
    "41: the insert leaves out tags.note",
    "41: the insert leaves out tags.name",
  ]);
  assert.deepEqual(find("insert into tags (name, note) values ('a', '1'), ('it''s, (b)', 'c')"), [
    "92: the column note has the type integer",
  ]);
  assert.deepEqual(
    find("insert into tags values (${1}, ${2}), (${'7'}, lower(${3})), (${'x'}, null)"),
    ["98: name is not null", "92: the column note has the type integer"],
  );
  const valid = [
    "insert into notes (text, done) values (${1}, 1) on conflict (id) do update set text = 'x'",
    "insert or ignore into notes (text) values ('a')",
    'insert into "notes" ("text", [done], at) values (/* , */ \'a\', 0, -1.5e3)',
    "insert into tags select id, text from notes",
    "insert into tags values (${sql`1`}, 'a')",
  ];
  for (const sql of valid) assert.deepEqual(find(sql), [], sql);
});
