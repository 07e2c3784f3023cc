// Hostile statements to a database file and to PostgreSQL: none of them changes a byte, makes a file, or opens a connection.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import pg from "pg";
import { findPostgresSkip, startPostgresCluster } from "@platform/kernel/db-testing";
import { createRig } from "./rig.ts";
import { HOSTILE_POSTGRES } from "./hostile-postgres.ts";
import { HOSTILE_SQLITE } from "./hostile-sqlite.ts";

const LIMITS = { timeMs: 700, memoryBytes: 128 * 1024 ** 2 };
const SCHEMA = `
  create table notes(id integer primary key autoincrement, text text);
  create index notes_text on notes(text);
  create view all_notes as select * from notes;
  create virtual table search using fts5(text);
  insert into notes(text) values ('one'), ('two'), ('three'), ('four');
  insert into search(text) values ('one');
`;

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "hostile-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** All files of a folder with their content. SQLite's shared memory has no content of its own. */
function readFolder(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder).map((name) => {
      const content = name.endsWith("-shm") ? "" : readFileSync(join(folder, name));
      return [name, createHash("sha256").update(content).digest("hex")];
    }),
  );
}

for (const mode of ["wal", "delete"]) {
  test(`no statement to a file changes anything: journal ${mode}`, async (t) => {
    const folder = makeFolder(t);
    const original = join(folder, "original");
    const elsewhere = join(folder, "elsewhere");
    const source = makeFolder(t);
    const database = new DatabaseSync(join(source, "items.sqlite"));
    database.exec(`pragma journal_mode = ${mode}; ${SCHEMA}`);
    // Another process has it open, so that a log stays.
    if (mode === "wal")
      database.exec("pragma wal_autocheckpoint = 0; update notes set text = text");
    cpSync(source, original, { recursive: true });
    database.close();
    const { ask } = createRig(t, { limits: LIMITS });
    const path = join(original, "items.sqlite");
    await ask({ kind: "file", path }, "select count(*) from notes");
    const before = readFolder(original);
    const outcomes = { refused: 0, answered: 0 };
    // Statements that only compute may be answered; none of them leaves a trace.
    for (const text of HOSTILE_SQLITE) {
      const sql = text.replaceAll("{out}", elsewhere);
      const isAnswered = await ask({ kind: "file", path }, sql).then(
        () => true,
        () => false,
      );
      outcomes[isAnswered ? "answered" : "refused"] += 1;
      assert.deepEqual(readFolder(original), before, text);
      assert.deepEqual(
        readdirSync(folder).filter((name) => name.startsWith("elsewhere")),
        [],
        text,
      );
    }
    assert.ok(HOSTILE_SQLITE.length >= 200);
    assert.ok(outcomes.refused >= 190, JSON.stringify(outcomes));
  });
}

test("reading of all forms works where writing does not", async (t) => {
  const folder = makeFolder(t);
  const path = join(folder, "items.sqlite");
  const database = new DatabaseSync(path);
  database.exec(SCHEMA);
  database.close();
  const { ask } = createRig(t);
  for (const sql of [
    "select * from all_notes",
    "with recursive n(x) as (select 1 union all select x + 1 from n where x < 5) select x from n",
    "select id, row_number() over (order by text) from notes",
    "select json_extract('{\"a\":1}', '$.a'), value from json_each('[1]')",
    "explain query plan select * from notes where text = 'one'",
    "select * from search where search match 'one'",
    "select * from pragma_table_xinfo('notes')",
    "pragma table_info(notes)",
    "select 9223372036854775807 as big",
  ]) {
    assert.ok((await ask({ kind: "file", path }, sql)).rows.length > 0, sql);
  }
});

const postgresSkip = findPostgresSkip() ?? false;

/** A database with the role of a project, its content, and a function and procedures that write. */
async function createProjectDatabase(t: TestContext): Promise<{ url: string; admin: pg.Client }> {
  const cluster = await startPostgresCluster();
  const adminUrl = await cluster.createDatabase();
  const admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
  t.after(async () => {
    await admin.end();
    await cluster.stop();
  });
  await admin.query(`
    create role project login;
    do $$ begin execute format('grant all on schema %I to project', current_schema()); end $$;
    set role project;
    create table notes(id int primary key, text text);
    create sequence notes_seq;
    create index notes_text on notes(text);
    create view all_notes as select * from notes;
    insert into notes values (1, 'one'), (2, 'two'), (3, 'three');
    create function writes_function() returns int language plpgsql as
      $$ begin insert into notes values (50, 'x'); return 1; end $$;
    create procedure writes() language plpgsql as $$ begin insert into notes values (51, 'x'); end $$;
    create procedure commits() language plpgsql as
      $$ begin commit; insert into notes values (52, 'x'); commit; end $$;
    reset role`);
  return { url: adminUrl.replace("//platform@", "//project@"), admin };
}

test("no statement to PostgreSQL changes anything", { skip: postgresSkip }, async (t) => {
  const { url, admin } = await createProjectDatabase(t);
  const folder = makeFolder(t);
  const elsewhere = join(folder, "elsewhere");
  let calls = 0;
  const listener = createServer((socket) => {
    calls += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  t.after(() => listener.close());
  const { port } = listener.address() as AddressInfo;
  const read = async (): Promise<unknown> => {
    const { rows } = await admin.query(`select
      (select json_agg(n order by n.id) from notes n) as notes,
      (select json_agg(c.relname order by c.oid) from pg_class c where c.relnamespace > 16000 or c.relnamespace = 2200) as classes,
      (select count(*) from pg_largeobject_metadata) as large, (select last_value from notes_seq) as sequence,
      (select is_called from notes_seq) as called, (select json_agg(r order by r.oid) from pg_roles r) as roles,
      (select count(*) from pg_proc) as functions, (select count(*) from pg_extension) as extensions,
      (select count(*) from pg_db_role_setting) as settings, (select count(*) from pg_type) as types,
      (select count(*) from pg_namespace where nspname !~ '^pg_') as schemas,
      (select count(*) from pg_prepared_xacts) as prepared, (select count(*) from pg_replication_slots) as slots`);
    return rows[0];
  };
  const before = await read();
  const { ask } = createRig(t, { limits: LIMITS });
  for (const text of HOSTILE_POSTGRES) {
    const sql = text.replaceAll("{out}", elsewhere).replaceAll("{port}", String(port));
    await ask({ kind: "postgres", url }, sql).catch(() => undefined);
    assert.deepEqual(await read(), before, text);
    assert.deepEqual(readdirSync(folder), [], text);
  }
  assert.ok(HOSTILE_POSTGRES.length >= 200);
  assert.equal(calls, 0);
});

test("the role of a superuser is refused with the reason", { skip: postgresSkip }, async (t) => {
  const { url, admin } = await createProjectDatabase(t);
  const { ask } = createRig(t);
  const superuser = url.replace("//project@", "//platform@");
  await assert.rejects(ask({ kind: "postgres", url: superuser }, "select 1"), {
    kind: "forbidden",
    message: /is a superuser/,
  });
  await admin.query("grant pg_read_server_files to project");
  await assert.rejects(ask({ kind: "postgres", url }, "select 1"), {
    kind: "forbidden",
    message: /pg_read_server_files/,
  });
});

test("values of PostgreSQL keep what a number cannot hold", { skip: postgresSkip }, async (t) => {
  const { url } = await createProjectDatabase(t);
  const { ask } = createRig(t, { limits: { rows: 3, timeMs: 20_000 } });
  const { rows, columns, isTruncated } = await ask(
    { kind: "postgres", url },
    "select 9223372036854775807::int8, 'NaN'::float8, 0.1::numeric, '\\x00ff'::bytea, $1::int, null, '' from generate_series(1, 1000)",
    { parameters: [7] },
  );
  assert.deepEqual(rows[0], [
    9223372036854775807n,
    "NaN",
    "0.1",
    new Uint8Array([0, 255]),
    7,
    null,
    "",
  ]);
  assert.deepEqual(
    columns.map(({ type }) => type),
    ["bigint", "double precision", "numeric", "bytea", "integer", "text", "text"],
  );
  assert.deepEqual([rows.length, isTruncated], [3, true]);
});

test("a change is kept only if it changes the expected rows", { skip: postgresSkip }, async (t) => {
  const { url, admin } = await createProjectDatabase(t);
  const { ask } = createRig(t);
  const database = { kind: "postgres", url } as const;
  const change = (sql: string, expected?: number) => ask(database, sql, { write: { expected } });
  const counted = await change("delete from notes");
  assert.deepEqual(counted.changes, { rows: 3, others: null, isKept: false });
  const other = await change("delete from notes where id < 3", 1);
  assert.deepEqual(other.changes, { rows: 2, others: null, isKept: false });
  const kept = await change("update notes set text = 'new' where id = 1 returning text", 1);
  assert.deepEqual([kept.changes?.isKept, kept.rows], [true, [["new"]]]);
  await assert.rejects(change("drop view all_notes", 0), { kind: "forbidden" });
  await assert.rejects(change("commit", 0), { kind: "forbidden" });
  const { rows } = await admin.query("select count(*)::int as n from notes where text = 'new'");
  assert.equal(rows[0].n, 1);
});

test("a change of a file keeps the expected rows, and runs its triggers and foreign keys", async (t) => {
  const folder = makeFolder(t);
  const path = join(folder, "items.sqlite");
  const database = new DatabaseSync(path);
  database.exec(`pragma journal_mode = wal;
    ${SCHEMA}
    create table parts(id integer primary key, note integer references notes(id) on delete cascade);
    insert into parts(note) values (1), (1), (2);
    create trigger no_five before update on notes when new.text = 'five' begin select raise(abort, 'no five'); end;`);
  const { ask } = createRig(t);
  const change = (sql: string, expected?: number) =>
    ask({ kind: "file", path }, sql, { write: { expected } });
  const counted = await change("delete from notes where id = 1");
  assert.deepEqual(counted.changes, { rows: 1, others: 2, isKept: false });
  assert.equal((await change("delete from notes", 1)).changes?.isKept, false);
  assert.equal((await change("delete from notes where id = 1", 1)).changes?.isKept, true);
  const inserted = await change("insert into notes(text) values ('five') returning id", 1);
  assert.deepEqual(inserted.rows, [[5]]);
  await assert.rejects(change("update notes set text = 'five'", 4), { message: /no five/ });
  for (const sql of [
    "select 1",
    "drop table notes",
    "delete from sqlite_schema",
    `vacuum into '${join(folder, "x")}'`,
    "delete from notes; delete from parts",
    "commit",
    "pragma writable_schema = on",
    "create table x(a)",
    `attach '${join(folder, "x")}' as x`,
  ]) {
    await assert.rejects(change(sql, 0), { name: "SqlError" }, sql);
  }
  assert.deepEqual({ ...database.prepare("select count(*) as n from notes").get() }, { n: 4 });
  assert.deepEqual({ ...database.prepare("select count(*) as n from parts").get() }, { n: 1 });
  assert.ok(!readdirSync(folder).includes("x"));
  database.close();
});
