// Declared databases: templates, transactions, migrations, on SQLite and PostgreSQL.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { findPostgresSkip, startPostgresCluster } from "@platform/kernel/db-testing";
import { Database, type DatabaseOptions } from "../../src/database/database.ts";
import { splitSql } from "../../src/database/split-sql.ts";
import { Service } from "../../src/service/service.ts";
import { sql } from "../../src/database/sql.ts";

const NOTES = {
  "0001-notes.sql": "create table notes (id integer primary key, text text, tag text)",
};

function createFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "database-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

function declare(t: TestContext, options: DatabaseOptions, dataFolder = "/nonexistent"): Database {
  const inMemory = dataFolder === "/nonexistent" && options.url === undefined;
  const database = new Database("notes", options, () => ({
    url: undefined,
    dataFolder,
    declared: ["notes"],
    inMemory,
  }));
  t.after(() => database.close());
  return database;
}

test("the option name is the name of the file", async (t) => {
  const service = new Service();
  const database = service.declareDatabase("Letters", { name: "notes" }, undefined);
  t.after(() => database.close());
  assert.equal(database.name, "notes");
  assert.throws(() => service.declareDatabase("notes", {}, undefined), /declared twice/);
});

test("a renamed database is refused until its file is renamed, and then has its rows and migrations", async (t) => {
  const dataFolder = createFolder(t);
  const open = (name: string, migrations: DatabaseOptions["migrations"], declared = [name]) => {
    const options = migrations === undefined ? {} : { migrations };
    return new Database(name, options, () => ({
      url: undefined,
      dataFolder,
      declared,
      inMemory: false,
    }));
  };
  const old = open("notes", NOTES);
  await old.run`insert into notes (text) values ('kept')`;
  await old.close();
  const renamed = open("letters", NOTES);
  await assert.rejects(renamed.open(), ({ message }: Error) =>
    [/letters\.sqlite does not exist/, /mv \S+notes\.sqlite \S+letters\.sqlite/, /touch/].every(
      (part) => part.test(message),
    ),
  );
  await assert.rejects(renamed.listMigrations());
  const files = readdirSync(dataFolder).filter((name) => !/\.(?:mark|sums|lock)$/.test(name));
  assert.deepEqual(files, ["notes.sqlite"], "no empty file");
  const another = open("photos", { "0001-photos.sql": "create table photos (id integer)" });
  await another.open();
  await another.close();
  const both = open("later", NOTES, ["notes", "later"]);
  await both.open();
  await both.close();
  for (const name of ["photos", "later"]) rmSync(join(dataFolder, `${name}.sqlite`));
  renameSync(join(dataFolder, "notes.sqlite"), join(dataFolder, "letters.sqlite"));
  const moved = open("letters", NOTES);
  assert.deepEqual(await moved.all`select text from notes`, [{ text: "kept" }]);
  assert.deepEqual(await moved.listMigrations(), [{ id: "0001-notes", isApplied: true }]);
  await moved.close();
});

test("a renamed database without migrations is refused, too, and an empty file is a decision", async (t) => {
  const dataFolder = createFolder(t);
  const open = (name: string) =>
    new Database(name, {}, () => ({
      url: undefined,
      dataFolder,
      declared: [name],
      inMemory: false,
    }));
  const old = open("notes");
  await old.run`create table notes (text text)`;
  await old.close();
  const renamed = open("letters");
  await assert.rejects(renamed.open(), /letters\.sqlite does not exist/);
  await renamed.close();
  writeFileSync(join(dataFolder, "letters.sqlite"), "");
  await renamed.run`create table letters (text text)`;
  await renamed.close();
});

async function checkQueries(database: Database): Promise<void> {
  const hostile = "'); drop table notes; --";
  assert.deepEqual(
    await database.run`insert into notes (id, text, tag) values (${1}, ${hostile}, ${null}), (2, 'b', 'x')`,
    { changes: 2 },
  );
  assert.equal((await database.one`select text from notes where id = ${1}`)?.["text"], hostile);
  assert.equal(await database.one`select * from notes where id = ${9}`, undefined);
  const filter = sql`where id in (${[1, 2, 3]}) and tag = ${"x"}`;
  assert.deepEqual(await database.all`select id from notes ${filter} order by id`, [{ id: 2 }]);
  assert.deepEqual(await database.all`select id from notes where id in (${[]})`, []);

  await assert.rejects(
    database.transaction(async (queries) => {
      await queries.run`delete from notes`;
      throw new Error("no");
    }),
    /^Error: no$/,
  );
  const count = async (): Promise<unknown> =>
    (await database.one`select count(*) as n from notes`)?.["n"];
  assert.equal(await count(), 2);
  // Functions that are called inside use the same transaction, through the database itself.
  const seen = await database.transaction(async (queries) => {
    await queries.run`delete from notes where id = ${1}`;
    return database.transaction(() => count());
  });
  assert.equal(seen, 1);
  assert.equal(await count(), 1);
}

test("queries bind values, and transactions are all or nothing", async (t) => {
  await checkQueries(declare(t, { migrations: NOTES }));
  await checkQueries(declare(t, { migrations: NOTES }, createFolder(t)));
});

test("the same works on PostgreSQL", { skip: findPostgresSkip() }, async (t) => {
  const cluster = await startPostgresCluster();
  t.after(() => cluster.stop());
  const url = await cluster.createDatabase();
  await checkQueries(declare(t, { migrations: NOTES, url }));
});

test("values that cannot be stored, and calls without a template, are refused", async (t) => {
  const database = declare(t, {});
  const wrong = (value: unknown): Promise<unknown> => database.one`select ${value as string}`;
  await assert.rejects(wrong(undefined), /value 1 of type undefined cannot be stored; use null/);
  await assert.rejects(wrong({ a: 1 }), /type Object cannot be stored; use JSON\.stringify/);
  const text = "select 1" as unknown as TemplateStringsArray;
  await assert.rejects(database.one(text), /notes\.one is a template tag/);
});

test("a query that fails names the line of its template, also in a loop and without await", async (t) => {
  const notes = declare(t, { migrations: NOTES });
  const lineOf = (text: string): number =>
    readFileSync(import.meta.filename, "utf8")
      .split("\n")
      .findIndex((one) => one.includes(text)) + 1;
  const fails = async (query: Promise<unknown>, mark: string): Promise<void> => {
    const error = await query.then(
      () => assert.fail("no error"),
      (reason: Error) => reason,
    );
    const [message = "", frame] = error.stack!.split("\n");
    assert.match(message, /no such table|cannot be stored/);
    const place = `database.test.ts:${lineOf(mark)}:`;
    assert.ok(frame!.includes(place), `${frame} instead of ${place}`);
  };
  await notes.open();
  for (const id of [1, 2]) await fails(notes.all`select * from nots where id = ${id}`, "from nots");
  const part = sql`select * from lost`;
  await fails(notes.one(part), "from lost");
  await fails(
    notes.run`delete from notes where id = ${undefined as never}`,
    "where id = ${undefined as",
  );
  // The call has returned to the event loop before the database fails.
  const detached = new Promise((_, reject) => {
    setImmediate(() => void notes.run`delete from gone`.catch(reject));
  });
  await fails(detached, "delete from gone");
});

test("a query that was not awaited inside its transaction fails instead of running outside", async (t) => {
  const database = declare(t, { migrations: NOTES });
  let late: Promise<unknown> | undefined;
  await database.transaction(async (queries) => {
    late = new Promise((resolve) => setTimeout(resolve, 20)).then(
      () => queries.run`delete from notes`,
    );
  });
  await assert.rejects(late!, /ran after its transaction/);
});

test("migrations are files in the order of their names, with variants per database", async (t) => {
  const folder = createFolder(t);
  const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);
  write("0001-notes.sql", "create table notes (id integer); create table tags (name text);");
  write("0002-first.sql", "broken on purpose");
  write(
    "0002-first.sqlite.sql",
    "insert into notes values (1); -- one; comment\ninsert into notes values (2);",
  );
  write("0002-first.postgres.sql", "also broken");
  const data = createFolder(t);
  const first = declare(t, { migrations: folder }, data);
  assert.equal((await first.all`select * from notes`).length, 2);
  await first.close();
  // Applied once.
  const again = declare(t, { migrations: folder }, data);
  assert.equal((await again.all`select * from notes`).length, 2);
  await again.close();
  write("0001-notes.sql", "create table other (id integer)");
  await assert.rejects(
    declare(t, { migrations: folder }, data).open(),
    /database notes: migration 0001-notes of notes was changed after it was applied/,
  );
});

test("migrations are named in one of three styles, and applied in the order of their numbers", async (t) => {
  const names = [
    ["0009-a", "0010-b"],
    ["099_a_name", "100_b"],
    ["20261128120000_b", "20261129000000_a"],
  ] as const;
  for (const [first, second] of names) {
    const database = declare(t, {
      migrations: {
        [`${second}.sql`]: "insert into notes values (1)",
        [`${first}.sql`]: "create table notes (id integer)",
      },
    });
    assert.equal((await database.all`select * from notes`).length, 1);
    await database.close();
  }
  const data = createFolder(t);
  const create = { "20261128120000_a.sql": "create table notes (id integer)" };
  await declare(t, { migrations: create }, data).open();
  const merged = { ...create, "20261101000000_merged.sql": "create table tags (id integer)" };
  await assert.rejects(
    declare(t, { migrations: merged }, data).open(),
    /20261101000000_merged of notes is new, but 20261128120000_a was applied before it: give it a later number/,
  );
});

test("a number that is left out is refused by name, unless the next one was applied already", async (t) => {
  const data = createFolder(t);
  const texts = { ...NOTES, "0003-later.sql": "create table later (id integer)" };
  await assert.rejects(
    declare(t, { migrations: texts }, data).open(),
    /there is no 0002 between 0001-notes and 0003-later: add the missing file, or give 0003-later this number/,
  );
  // Earlier versions applied it.
  const earlier = { ...NOTES, "0002-later.sql": texts["0003-later.sql"] };
  const database = declare(t, { migrations: earlier }, data);
  await database.run`update platform_migrations set id = '0003-later' where id = '0002-later'`;
  await database.close();
  await declare(t, { migrations: texts }, data).open();
});

test("a failing migration changes nothing and names its file", async (t) => {
  const data = createFolder(t);
  const texts = { ...NOTES, "0002-more.sql": "create table more (id integer); select nonsense;" };
  const broken = declare(t, { migrations: texts }, data);
  await assert.rejects(
    broken.open(),
    /database notes: migration 0002-more of notes failed: no such column/,
  );
  const plain = declare(t, {}, data);
  assert.deepEqual(
    await plain.all`select name from sqlite_master where name in ('notes', 'more')`,
    [],
  );
  const cases: [DatabaseOptions["migrations"], RegExp][] = [
    [{ "1-notes.sql": "" }, /1-notes\.sql is not a valid name; expected one like 0001-notes\.sql/],
    [{ "0001-a.sql": "", "002_b.sql": "" }, /0001-a and 002_b are named in two styles; use one/],
    [{ "001_a.sql": "", "001-b.sql": "" }, /001-b and 001_a are named in two styles/],
    [{ "0001-a.sql": "", "0001-b.sql": "" }, /0001-a and 0001-b have the same number/],
    [{ "0001-a.postgres.sql": "" }, /0001-a has no 0001-a\.sqlite\.sql and no 0001-a\.sql/],
    [{ "0001-a.sql": "select 1;\nselect 'x" }, /0001-a\.sql: line 2: .* is not closed/],
    [join(data, "missing"), /the folder .*missing cannot be read/],
  ];
  for (const [migrations, message] of cases) {
    await assert.rejects(declare(t, { migrations: migrations! }).open(), message);
  }
});

test("statements are separated by semicolons outside strings, comments and bodies", () => {
  const trigger = `create trigger t after insert on a begin
    update a set n = case when n > 1 then 2 else 3 end; delete from b where x = ';'; end`;
  assert.deepEqual(
    splitSql(`-- a; b\ninsert into "x;y" values (';''"'); ${trigger}; select 1;`, "sqlite"),
    [`-- a; b\ninsert into "x;y" values (';''"')`, trigger, "select 1"],
  );
  const body = "create function f() returns int as $b$ begin return 1; end $b$ language plpgsql";
  const text = `/* a; /* b; */ */ ${body};\nselect E'it\\';s', '$1;$';; -- end;`;
  assert.deepEqual(splitSql(text, "postgres"), [
    `/* a; /* b; */ */ ${body}`,
    `select E'it\\';s', '$1;$'`,
  ]);
  assert.deepEqual(splitSql(" ; /* only; comments */ ; ", "sqlite"), []);
});
