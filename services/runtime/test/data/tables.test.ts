// Tables and rows of SQLite files and PostgreSQL through the API: pages, filters, changes, exports, and statements.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { findPostgresSkip, startPostgresCluster } from "@platform/kernel/db-testing";
import pg from "pg";
import { startData, type Answer, type DataRigOptions } from "./rig.ts";

const LONG = "long ".repeat(20_000);

const SQLITE = `
  create table people(id integer primary key, email text not null unique, name text, score real, password_hash text,
    photo blob, born text default '1969-07-20');
  create table orders(id integer primary key, person integer not null references people(id) on delete cascade, big integer,
    total real generated always as (big * 2) virtual);
  create table pairs(a text, b text, note text, primary key (a, b)) without rowid;
  create table loose(word text);
  create table "a ""b"" select 表"("order" integer primary key, "x y" text);
  create table secrets(id integer primary key, word text);
  create view adults as select * from people;
  create table notes(id integer primary key, word text not null);
  insert into notes values (1, 'b'), (2, 'c'), (3, 'a' || printf('%.*c', 300000, 'x'));
  create view endless as with recursive n(x) as (select 1 union all select x + 1 from n) select x from n;
  create virtual table search using fts5(text);
  insert into people(id, email, name, score, password_hash, photo)
    with recursive n(x) as (select 1 union all select x + 1 from n where x < 250)
    select x, 'p' || x || '@example.com', case when x % 3 = 0 then null when x % 5 = 0 then '' else 'name ' || (x % 7) end,
      case when x % 4 = 0 then null else x % 10 / 2.0 end, 'h' || x, x'00ff' from n;
  insert into orders(person, big) values (1, 9223372036854775807), (1, 2), (2, 3);
  insert into pairs values ('a', '1', 'x'), ('a', '2', null), ('b', '1', '');
  insert into loose values ('one'), ('two');
  insert into "a ""b"" select 表" values (1, '<b>x</b>');
  insert into search(text) values ('found');
`;

const POSTGRES = `
  create table people(id int primary key, email text not null unique, name text, score float8, password_hash text,
    photo bytea, born text default '1969-07-20');
  create table orders(id serial primary key, person int not null references people(id) on delete cascade, big bigint,
    total bigint generated always as (id * 2) stored);
  create table pairs(a text, b text, note text, primary key (a, b));
  create table loose(word text);
  create table "a ""b"" select 表"("order" int primary key, "x y" text);
  create view adults as select * from people;
  create table notes(id int primary key, word text not null);
  insert into notes values (1, 'b'), (2, 'c'), (3, 'a' || repeat('x', 300000));
  create view endless as select x from generate_series(1, 1000000000000) x;
  insert into people(id, email, name, score, password_hash, photo)
    select x, 'p' || x || '@example.com', case when x % 3 = 0 then null when x % 5 = 0 then '' else 'name ' || (x % 7) end,
      case when x % 4 = 0 then null else x % 10 / 2.0 end, 'h' || x, '\\x00ff' from generate_series(1, 250) x;
  insert into orders(person, big) values (1, 9223372036854775807), (1, 2), (2, 3);
  insert into pairs values ('a', '1', 'x'), ('a', '2', null), ('b', '1', '');
  insert into loose values ('one'), ('two');
  insert into "a ""b"" select 表" values (1, '<b>x</b>');
`;

async function startPostgres(t: TestContext): Promise<DataRigOptions> {
  const cluster = await startPostgresCluster();
  const adminUrl = await cluster.createDatabase();
  const admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
  t.after(async () => {
    await admin.end();
    await cluster.stop();
  });
  await admin.query(`create role project login;
    do $$ begin execute format('grant all on schema %I to project', current_schema()); end $$;
    set role project; ${POSTGRES} reset role`);
  return { urls: { shop: adminUrl.replace("//platform@", "//project@") } };
}

/** Changes the schema as a migration of the project does. */
async function migrate(rig: Awaited<ReturnType<typeof startData>>, sql: string): Promise<void> {
  const { dataFolder, url } = rig.place("shop");
  if (url === undefined) {
    const database = new DatabaseSync(join(dataFolder, "items.sqlite"));
    database.exec(sql);
    database.close();
    return;
  }
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}

const DIALECTS = [
  {
    database: "items",
    skip: false,
    start: async () => ({ databases: { shop: { items: SQLITE } } }),
  },
  { database: "postgres", skip: findPostgresSkip() ?? false, start: startPostgres },
] as const;

for (const { database, skip, start } of DIALECTS) {
  const base = `/projects/shop/databases/${database}`;
  const rowsOf = (table: string): string => `${base}/tables/${encodeURIComponent(table)}/rows`;

  test(`${database}: tables with keys, references and counts`, { skip }, async (t) => {
    const { call } = await startData(t, await start(t));
    const list = await call("GET", "/projects/shop/databases");
    assert.deepEqual(
      [list.status, list.body.mode, list.body.items[0].name],
      [200, "edit", database],
    );
    const { body } = await call("GET", `${base}/tables`);
    const tables = Object.fromEntries(body.items.map((one: { name: string }) => [one.name, one]));
    const { people, orders, pairs, adults, loose } = tables;
    assert.deepEqual(
      [people.kind, people.key, people.rows, people.rows_estimated],
      ["table", ["id"], 250, false],
    );
    assert.equal(
      people.columns.find((one: { name: string }) => one.name === "password_hash").hidden,
      true,
    );
    assert.deepEqual(orders.references, [{ columns: ["person"], table: "people", to: ["id"] }]);
    assert.deepEqual(people.referenced_by, [{ columns: ["person"], table: "orders", to: ["id"] }]);
    assert.equal(
      orders.columns.find((one: { name: string }) => one.name === "total").generated,
      true,
    );
    assert.deepEqual([pairs.key, adults.kind], [["a", "b"], "view"]);
    assert.equal(typeof loose.row_id, "string");
    assert.ok(tables['a "b" select 表'] !== undefined);
  });

  test(`${database}: pages in each order have each row once`, { skip }, async (t) => {
    const { call } = await startData(t, await start(t));
    for (const sort of ["", "id", "-id", "name", "-name", "score", "-score", "email"]) {
      const ids: number[] = [];
      const values: unknown[] = [];
      let cursor: string | null = null;
      do {
        const query: string = `?limit=60&sort=${sort}${cursor === null ? "" : `&cursor=${cursor}`}`;
        const { status, body }: Answer = await call("GET", `${rowsOf("people")}${query}`);
        assert.equal(status, 200, JSON.stringify(body));
        ids.push(...body.items.map(({ key }: { key: { id: number } }) => key.id));
        const column = ["id", "email", "name", "score"].indexOf(sort.replace("-", ""));
        values.push(
          ...body.items.map((row: { values: unknown[] }) => row.values[Math.max(0, column)]),
        );
        cursor = body.next_cursor;
      } while (cursor !== null);
      assert.equal(ids.length, 250, sort);
      assert.equal(new Set(ids).size, 250, sort);
      const known = values.filter((value) => value !== null) as (string | number)[];
      const isDescending = sort.startsWith("-");
      for (const [index, value] of known.entries()) {
        const before = known[index - 1];
        if (typeof before !== "number" || typeof value !== "number") continue;
        assert.ok(isDescending ? before >= value : before <= value, `${sort}: ${before}, ${value}`);
      }
    }
  });

  test(
    `${database}: a value that is too long to be shown keeps its place in the order`,
    { skip },
    async (t) => {
      const { call } = await startData(t, await start(t));
      const { body } = await call("GET", `${rowsOf("notes")}?sort=word`);
      assert.deepEqual(
        body.items.map(({ key }: { key: { id: number } }) => key.id),
        [3, 1, 2],
      );
    },
  );

  test(
    `${database}: a sort that reads a whole long table is refused by the name of its column`,
    { skip },
    async (t) => {
      const { call } = await startData(t, { ...(await start(t)), questionMs: 1_500 });
      const { status, body } = await call("GET", `${rowsOf("endless")}?sort=-x`);
      assert.deepEqual([status, body.limit, body.columns], [422, "time", ["x"]]);
      assert.match(
        body.detail,
        /^No index of endless begins with x: .* add an index by a migration\.$/,
      );
    },
  );

  test(
    `${database}: filters find rows without SQL, and hidden columns are in none`,
    { skip },
    async (t) => {
      const { call } = await startData(t, await start(t));
      const find = async (...filter: unknown[]): Promise<Answer> =>
        call("GET", `${rowsOf("people")}?filter=${encodeURIComponent(JSON.stringify(filter))}`);
      const one = await find({ column: "email", op: "eq", value: "p7@example.com" });
      assert.deepEqual(one.body.items[0].values, [
        7,
        "p7@example.com",
        "name 0",
        3.5,
        { hidden: true },
        { blob: "AP8=", bytes: 2 },
        "1969-07-20",
      ]);
      const count = async (...filter: unknown[]): Promise<number> =>
        (await find(...filter)).body.items.length;
      assert.equal(await count({ column: "email", op: "starts", value: "p25" }), 2);
      assert.equal(await count({ column: "email", op: "contains", value: "%" }), 0);
      assert.equal(
        await count({ column: "id", op: "gt", value: 240 }, { column: "name", op: "null" }),
        3,
      );
      assert.equal(
        await count({ column: "name", op: "eq", value: "" }, { column: "id", op: "le", value: 20 }),
        3,
      );
      assert.equal((await find({ column: "password_hash", op: "eq", value: "h1" })).status, 403);
      assert.equal((await find({ column: "id; drop table people", op: "null" })).status, 400);
      const sorted = await call("GET", `${rowsOf("people")}?sort=password_hash`);
      assert.equal(sorted.status, 403);
      const strange = await call("GET", rowsOf('a "b" select 表'));
      assert.deepEqual(strange.body.items, [{ key: { order: 1 }, values: [1, "<b>x</b>"] }]);
      const view = await call("GET", `${rowsOf("adults")}?limit=10`);
      assert.deepEqual([view.body.items.length, view.body.next_cursor], [10, null]);
      assert.equal((await call("GET", rowsOf("none"))).status, 404);
    },
  );

  test(
    `${database}: pages follow a migration that runs while they are turned`,
    { skip },
    async (t) => {
      const rig = await startData(t, await start(t));
      const read = (query = ""): Promise<Answer> => rig.call("GET", `${rowsOf("pairs")}?${query}`);
      assert.deepEqual((await read()).body.items[0].values, ["a", "1", "x"]);
      await migrate(rig, "alter table pairs rename column note to remark");
      const renamed = await read();
      assert.deepEqual([renamed.status, renamed.body.items[0].values], [200, ["a", "1", "x"]]);
      await migrate(rig, "alter table pairs add column extra text default 'e'");
      // A column that the page before did not have, and the tables that the console reads again.
      const filter = JSON.stringify([{ column: "extra", op: "eq", value: "e" }]);
      const extra = await read(`filter=${encodeURIComponent(filter)}`);
      assert.deepEqual([extra.status, extra.body.items[0].values], [200, ["a", "1", "x", "e"]]);
      await migrate(rig, "alter table pairs drop column extra");
      await rig.call("GET", `${base}/tables`);
      assert.deepEqual((await read()).body.items[0].values, ["a", "1", "x"]);
      await migrate(rig, "drop table pairs");
      assert.equal((await read()).status, 404);
    },
  );

  test(`${database}: a row is changed only if it is as it was shown`, { skip }, async (t) => {
    const { call } = await startData(t, await start(t));
    const change = (json: unknown): Promise<Answer> => call("PATCH", rowsOf("people"), { json });
    const before = { email: "p7@example.com", name: "name 0", score: 3.5, photo: { blob: "AP8=" } };
    const done = await change({ key: { id: 7 }, before, set: { name: "new", id: 700 } });
    assert.deepEqual([done.status, done.body.kept, done.body.key], [200, true, { id: 700 }]);
    const late = await change({ key: { id: 700 }, before, set: { name: "other" } });
    assert.deepEqual([late.status, late.body.present[2]], [409, "new"]);
    assert.equal((await change({ key: { id: 7 }, before, set: { name: "x" } })).body.present, null);
    assert.equal((await change({ key: { id: 1 }, set: { email: null } })).status, 422);
    const added = await call("POST", rowsOf("orders"), {
      json: { values: { person: 5, big: { int: "9007199254740993" } } },
    });
    assert.deepEqual([added.status, added.body.key], [201, { id: 4 }]);
    const read = await call(
      "GET",
      `${base}/tables/orders/row?key=${encodeURIComponent('{"id":4}')}`,
    );
    assert.deepEqual(read.body.values[2], { int: "9007199254740993" });
    assert.equal(
      (await call("POST", rowsOf("orders"), { json: { values: { total: 5 } } })).status,
      400,
    );
    const trial = await call("DELETE", `${rowsOf("people")}?trial=true`, {
      json: { key: { id: 1 } },
    });
    assert.deepEqual([trial.body.rows, trial.body.kept], [1, false]);
    if (database === "items") assert.equal(trial.body.others, 2);
    assert.equal(
      (await call("DELETE", rowsOf("people"), { json: { key: { id: 1 } } })).body.kept,
      true,
    );
    const left = await call("GET", `${base}/tables/orders/rows`);
    assert.deepEqual(
      left.body.items.map(({ key }: { key: { id: number } }) => key.id),
      [3, 4],
    );
    const pair = await call("PATCH", rowsOf("pairs"), {
      json: { key: { a: "a", b: "2" }, before: { note: null }, set: { note: "" } },
    });
    assert.equal(pair.body.kept, true);
    assert.equal((await call("DELETE", rowsOf("adults"), { json: { key: {} } })).status, 409);
  });

  test(`${database}: statements read, and change in two steps`, { skip }, async (t) => {
    const { call, place } = await startData(t, await start(t));
    const run = (json: unknown, token?: string): Promise<Answer> =>
      call("POST", `${base}/query`, { json, ...(token === undefined ? {} : { token }) });
    const read = await run({
      sql: "select id, big from orders where person = :who order by id -- :no",
      parameters: { who: 1 },
    });
    assert.deepEqual(read.body.rows, [
      [1, { int: "9223372036854775807" }],
      [2, 2],
    ]);
    assert.equal((await run({ sql: "delete from orders" })).status, 422);
    assert.match((await run({ sql: "create table x(a int)" })).body.detail, /make a migration/);
    assert.equal((await run({ sql: "select * from nothing" })).body.reason, "invalid");
    const counted = await run({ sql: "delete from orders where person = 1", write: {} });
    assert.deepEqual([counted.body.changes.rows, counted.body.changes.kept], [2, false]);
    const other = await run({ sql: "delete from orders where person = 1", write: { expected: 1 } });
    assert.equal(other.body.changes.kept, false);
    const kept = await run({ sql: "delete from orders where person = 1", write: { expected: 2 } });
    assert.equal(kept.body.changes.kept, true);
    assert.equal((await run({ sql: "delete from orders", write: {} }, "data:query")).status, 403);
    const plan = await call("POST", `${base}/plan`, {
      json: { sql: "select * from people where email = 'x'" },
    });
    assert.match(plan.body.lines[0].text, /people/);
    const history = await call("GET", `${base}/history`);
    assert.equal(history.body.items[0].sql, "delete from orders where person = 1");
    mkdirSync(join(place("shop").folder, "queries"), { recursive: true });
    writeFileSync(
      join(place("shop").folder, "queries", "by-person.sql"),
      "select * from orders where person = :who",
    );
    await call("PUT", `${base}/queries/mine`, { json: { sql: "select 1" } });
    const queries = await call("GET", `${base}/queries`);
    assert.deepEqual(
      queries.body.items.map((one: Record<string, unknown>) => [
        one["name"],
        one["source"],
        one["parameters"],
      ]),
      [
        ["by-person", "project", ["who"]],
        ["mine", "saved", []],
      ],
    );
    assert.equal((await call("DELETE", `${base}/queries/mine`)).status, 204);
    const audit = await call("GET", "/data-audit");
    const texts = audit.body.items.map((one: { detail: { sql?: string } }) => one.detail.sql);
    assert.ok(texts.includes("delete from orders where person = ?"));
    assert.ok(texts.includes("select id, big from orders where person = :who order by id"));
    assert.equal((await call("GET", "/data-audit/verification")).body.intact, true);
  });

  test(`${database}: a fault has its place in the text that was written`, { skip }, async (t) => {
    const { call, place } = await startData(t, await start(t));
    const ask = (path: string, sql: string, parameters: object = {}): Promise<Answer> =>
      call("POST", `${base}/${path}`, { json: { sql, parameters } });
    /** The rest of the text from the place of its fault. */
    const locate = async (sql: string, parameters?: object, path = "query"): Promise<string> => {
      const { status, body } = await ask(path, sql, parameters);
      assert.equal(status, 422, sql);
      return sql.slice(body.position);
    };
    assert.equal(await locate("select 1 as a, 'form' form x"), "x");
    assert.equal(await locate("select '😀', 'from'\nfrom people limit 1 from"), "from");
    assert.equal(await locate("select id from people where nane = 'nane'"), "nane = 'nane'");
    assert.equal(await locate("select p.nane from people p"), locateName("p.nane"));
    assert.equal(await locate('select 1 from "peeple"'), '"peeple"');
    const values = { first_name: "a", x: 1 };
    assert.equal(await locate("select :x, :x where :first_name = 'a' an :x", values), "an :x");
    assert.equal(await locate("select 1, (2", undefined), "");
    assert.equal(await locate("selec 1", undefined, "plan"), "selec 1");
    const { body } = await ask("query", "drop table people");
    assert.deepEqual(body.migration, {
      path: "migrations/0001-drop-table-people.sql",
      text: "drop table people;\n",
    });
    mkdirSync(join(place("shop").folder, "migrations"));
    writeFileSync(join(place("shop").folder, "migrations", "007_tags.sql"), "select 1;");
    const next = await ask("query", 'create table if not exists "My Tags" (a int); ');
    assert.equal(next.body.migration.path, "migrations/008_create_table_mytags.sql");
    assert.equal(next.body.reason, "schema");

    function locateName(name: string): string {
      return database === "items" ? `${name.split(".")[1]} from people p` : `${name} from people p`;
    }
  });

  test(`${database}: exports leave hidden columns out and run no formulas`, { skip }, async (t) => {
    const { call } = await startData(t, await start(t));
    const put = { name: "=cmd|' /C calc'!A0" };
    await call("PATCH", rowsOf("people"), { json: { key: { id: 1 }, set: put } });
    const csv = await call("GET", `${base}/tables/people/export`);
    const lines = csv.body.split("\r\n");
    assert.equal(lines[0], "id,email,name,score,photo,born");
    assert.equal(lines.length, 252);
    assert.match(lines[1], /^1,p1@example.com,'=cmd/);
    assert.match(lines[3], /^3,p3@example.com,,/);
    assert.match(lines[5], /^5,p5@example.com,"",/);
    const json = JSON.parse((await call("GET", `${base}/tables/orders/export?format=json`)).body);
    assert.equal(json[0].big, "9223372036854775807");
    const sql = (await call("GET", `${base}/tables/orders/export?format=sql`)).body;
    assert.match(
      sql,
      /^insert into "orders" \("id", "person", "big"\) values \(1, 1, 9223372036854775807\);\n/,
    );
  });
}

test("texts that are not valid UTF-8 keep their place in the order, and change no other row", async (t) => {
  const bytes = ["61", "61fe", "61ff", "62", "efbfbd", "fe", "ff"];
  const rows = bytes.map(
    (hex, index) => `(cast(x'${hex}' as text), cast(x'ff' as text), ${index})`,
  );
  const sql = `create table words(word text primary key, note text, place integer) without rowid;
    insert into words values ${rows.join(", ")};`;
  const { call, place } = await startData(t, { databases: { shop: { items: sql } } });
  const path = "/projects/shop/databases/items/tables/words/rows";
  for (const sort of ["", "&sort=note", "&sort=-word"]) {
    const places: number[] = [];
    let cursor = "";
    do {
      const { body } = await call("GET", `${path}?limit=2${sort}${cursor}`);
      places.push(...body.items.map(({ values }: { values: number[] }) => values[2]!));
      cursor = body.next_cursor === null ? "" : `&cursor=${encodeURIComponent(body.next_cursor)}`;
    } while (cursor !== "" && places.length < 20);
    const wanted = [...bytes.keys()];
    assert.deepEqual(places, sort === "&sort=-word" ? wanted.toReversed() : wanted, sort);
  }
  const { body } = await call("GET", `${path}?limit=2`);
  assert.deepEqual(body.items[1].key, { word: { text: "a\ufffd", bytes: 4 } });
  const wrong = { key: { word: "\ufffd" }, before: { place: 5 }, set: { place: 9 } };
  assert.equal((await call("PATCH", path, { json: wrong })).status, 409);
  const right = { key: { word: "a" }, before: { place: 0 }, set: { place: 8 } };
  assert.equal((await call("PATCH", path, { json: right })).body.kept, true);
  const database = new DatabaseSync(join(place("shop").dataFolder, "items.sqlite"));
  const found = database
    .prepare("select hex(word) word, hex(note) note from words order by 1")
    .all();
  database.close();
  assert.deepEqual(
    found.map(({ word, note }) => [word, note]),
    bytes.map((hex) => [hex.toUpperCase(), "FF"]),
  );
});

test("infinity keeps its place in the order, and rows that have it can be changed", async (t) => {
  const sql = `create table figures(id integer primary key, ratio real, note text);
    insert into figures values (1, 9e999, 'a'), (2, -9e999, 'b'), (3, 1.5, 'c'), (4, 9e999, 'd'), (5, -9e999, 'e');`;
  const { call } = await startData(t, { databases: { shop: { items: sql } } });
  const path = "/projects/shop/databases/items/tables/figures/rows";
  for (const [sort, wanted] of [
    ["ratio", [2, 5, 3, 1, 4]],
    ["-ratio", [4, 1, 3, 5, 2]],
  ] as const) {
    const ids: number[] = [];
    let cursor = "";
    do {
      const { body } = await call("GET", `${path}?limit=1&sort=${sort}${cursor}`);
      ids.push(...body.items.map(({ key }: { key: { id: number } }) => key.id));
      cursor = body.next_cursor === null ? "" : `&cursor=${encodeURIComponent(body.next_cursor)}`;
    } while (cursor !== "" && ids.length < 10);
    assert.deepEqual(ids, wanted, sort);
  }
  const json = { key: { id: 1 }, before: { ratio: "Infinity", note: "a" }, set: { note: "new" } };
  assert.equal((await call("PATCH", path, { json })).body.kept, true);
  const filter = JSON.stringify([{ column: "ratio", op: "eq", value: "-Infinity" }]);
  const { body } = await call("GET", `${path}?filter=${encodeURIComponent(filter)}`);
  assert.equal(body.items.length, 2);
});

test("a long value is cut, and downloaded whole", async (t) => {
  const sql = `create table texts(id integer primary key, body text, raw blob);
    insert into texts values (1, '${LONG}', zeroblob(300000))`;
  const { call } = await startData(t, { databases: { shop: { items: sql } } });
  const table = "/projects/shop/databases/items/tables/texts";
  const { body } = await call("GET", `${table}/rows`);
  const [, text, blob] = body.items[0].values;
  assert.deepEqual([text.bytes, text.text.length], [100_000, 65_536]);
  assert.deepEqual(blob, { blob: "", bytes: 300_000 });
  const whole = await call("POST", `${table}/value`, { json: { key: { id: 1 }, column: "body" } });
  assert.equal(whole.body, LONG);
});

test("showing a hidden value is an audit entry, and values of changes are none", async (t) => {
  const { call } = await startData(t, { databases: { shop: { items: SQLITE } } });
  const table = "/projects/shop/databases/items/tables/people";
  const shown = await call("POST", `${table}/value`, {
    json: { key: { id: 3 }, column: "password_hash" },
  });
  assert.equal(shown.body, "h3");
  await call("PATCH", `${table}/rows`, {
    json: { key: { id: 3 }, set: { name: "private words" } },
  });
  const { body } = await call("GET", "/data-audit?target=shop/items");
  assert.deepEqual(
    body.items.map((one: { action: string }) => one.action),
    ["data.update", "data.reveal"],
  );
  assert.deepEqual(body.items[0].detail.columns, ["name"]);
  assert.ok(!JSON.stringify(body.items).includes("private words"));
});

test("a change is in the audit log before it is made, so that no end of the process loses it", async (t) => {
  const { call, data } = await startData(t, { databases: { shop: { items: SQLITE } } });
  const rows = "/projects/shop/databases/items/tables/people/rows";
  const { audit } = await data.openStore();
  const update = data.update.bind(data);
  // As if the process was killed between the change and the second entry.
  t.mock.method(data, "update", async (...parameters: Parameters<typeof update>) => {
    const report = await update(...parameters);
    t.mock.method(audit, "record", () => Promise.reject(new Error("killed")));
    return report;
  });
  const set = { name: "changed" };
  assert.equal((await call("PATCH", rows, { json: { key: { id: 3 }, set } })).status, 500);
  t.mock.restoreAll();
  const lost = await call("GET", "/data-audit");
  const [entry] = lost.body.items;
  assert.deepEqual(
    [entry.action, entry.detail.state, entry.detail.columns, entry.detail.key],
    ["data.update", "begun", ["name"], { id: 3 }],
  );
  assert.equal(lost.body.items.length, 1);
  await call("PATCH", rows, { json: { key: { id: 3 }, set: { name: "again" } } });
  const { body } = await call("GET", "/data-audit?limit=1");
  assert.equal(body.items[0].detail.state, undefined, "one that has ended");
  const next = await call("GET", `/data-audit?limit=1&cursor=${body.next_cursor}`);
  assert.deepEqual(next.body.items, [], "its beginning is not listed, also on the next page");
  assert.equal((await call("GET", "/data-audit/verification")).body.intact, true);

  // Nothing changes without the first entry.
  t.mock.method(audit, "record", () => Promise.reject(new Error("the disk is full")));
  assert.equal((await call("PATCH", rows, { json: { key: { id: 3 }, set } })).status, 500);
  t.mock.restoreAll();
  const key = encodeURIComponent('{"id":3}');
  const row = await call("GET", `/projects/shop/databases/items/tables/people/row?key=${key}`);
  assert.ok(row.body.values.includes("again"));
});

test("each operation requires its right to its project: 0 doors", async (t) => {
  const databases = { shop: { items: SQLITE }, blog: { items: SQLITE } };
  const { call } = await startData(t, { databases });
  const key = encodeURIComponent('{"id":2}');
  const operations: [
    right: "read" | "edit" | "query",
    method: string,
    path: string,
    json?: unknown,
  ][] = [
    ["read", "GET", ""],
    ["read", "GET", "/items/tables"],
    ["read", "GET", "/items/tables/people/rows"],
    ["read", "GET", `/items/tables/people/row?key=${key}`],
    ["read", "GET", "/items/tables/people/export"],
    ["read", "POST", "/items/tables/people/value", { key: { id: 2 }, column: "email" }],
    ["edit", "POST", "/items/tables/loose/rows", { values: { word: "x" } }],
    ["edit", "PATCH", "/items/tables/people/rows", { key: { id: 2 }, set: { name: "x" } }],
    ["edit", "DELETE", "/items/tables/people/rows?trial=true", { key: { id: 2 } }],
    ["query", "POST", "/items/query", { sql: "select 1" }],
    ["query", "POST", "/items/plan", { sql: "select 1" }],
    ["query", "GET", "/items/history"],
    ["query", "GET", "/items/queries"],
    ["query", "PUT", "/items/queries/q", { sql: "select 1" }],
    ["query", "DELETE", "/items/queries/q"],
  ];
  const sufficient: Record<string, string[]> = {
    read: ["read", "edit", "query"],
    edit: ["edit"],
    query: ["query"],
  };
  for (const [right, method, path, json] of operations) {
    for (const held of ["read", "edit", "query", "runtime:read", "admin"] as const) {
      for (const [scope, project] of [
        [`data:${held}`, undefined],
        [`data:${held}:shop`, "shop"],
        [`data:${held}:blog`, "blog"],
      ] as const) {
        const token =
          held === "admin"
            ? "vault:admin,gate:admin,runtime:manage"
            : held === "runtime:read"
              ? held
              : scope;
        const { status } = await call(method, `/projects/shop/databases${path}`, { json, token });
        const mayAct =
          sufficient[right]!.includes(held) && (project === undefined || project === "shop");
        assert.equal(status !== 403, mayAct, `${method} ${path} with ${token}: ${status}`);
      }
    }
    const anonymous = await call(method, `/projects/shop/databases${path}`, { json, token: "" });
    assert.ok([401, 403].includes(anonymous.status), `${method} ${path}`);
  }
});

test("console_data closes the pages, or changes", async (t) => {
  const databases = { shop: { items: SQLITE } };
  const off = await startData(t, { databases, mode: "off" });
  assert.equal((await off.call("GET", "/projects/shop/databases")).status, 403);
  const reading = await startData(t, { databases, mode: "read" });
  const rows = "/projects/shop/databases/items/tables/people/rows";
  assert.equal((await reading.call("GET", rows)).status, 200);
  assert.equal(
    (await reading.call("PATCH", rows, { json: { key: { id: 1 }, set: { name: "x" } } })).status,
    403,
  );
  const write = { sql: "delete from people", write: { expected: 250 } };
  assert.equal(
    (await reading.call("POST", "/projects/shop/databases/items/query", { json: write })).status,
    403,
  );
});
