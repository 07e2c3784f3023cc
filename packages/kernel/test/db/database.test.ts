// The contract of both databases: migrations, transactions, values, errors, limits.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sql, type Generated } from "kysely";
import {
  DatabaseError,
  isUniqueViolation,
  openDatabase,
  readDatabaseError,
  type Database,
  type Migration,
} from "@platform/kernel/db";
import {
  findPostgresSkip,
  startPostgresCluster,
  type PostgresCluster,
} from "@platform/kernel/db-testing";

interface Tables {
  accounts: { id: string; owner: string; balance: number; photo: Uint8Array | null };
  notes: { id: Generated<number>; account_id: string; body: string };
}

const MIGRATIONS: Migration[] = [
  {
    id: "0001-accounts",
    statements: (t) => [
      `create table accounts (id ${t.text} primary key, owner ${t.text} not null unique,
        balance ${t.integer} not null check (balance >= 0), photo ${t.bytes})`,
    ],
  },
  {
    id: "0002-notes",
    statements: (t) => [
      `create table notes (id ${t.serialKey}, account_id ${t.text} not null references accounts (id), body ${t.text} not null)`,
      "create index notes_by_account on notes (account_id)",
    ],
  },
];

const folder = mkdtempSync(join(tmpdir(), "kernel-db-"));
let cluster: PostgresCluster | undefined;
let files = 0;
after(async () => {
  await cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const kinds = [
  {
    kind: "sqlite" as const,
    skip: undefined,
    start: async () => {},
    makeUrl: async () => `sqlite:${join(folder, `${(files += 1)}`, "test.db")}`,
  },
  {
    kind: "postgres" as const,
    skip: findPostgresSkip(),
    start: async () => {
      cluster = await startPostgresCluster();
    },
    makeUrl: async () => cluster!.createDatabase(),
  },
];

for (const { kind, skip, start, makeUrl } of kinds) {
  describe(`on ${kind}`, { skip: skip ?? false }, () => {
    before(start);

    const open = (url: string): Database<Tables> =>
      openDatabase<Tables>({ url, service: "test", sqlite: { busyTimeoutMs: 500 } });
    const withDatabase = async (
      work: (database: Database<Tables>, url: string) => Promise<void>,
    ): Promise<void> => {
      const url = await makeUrl();
      const database = open(url);
      try {
        await database.migrate(MIGRATIONS);
        await work(database, url);
      } finally {
        await database.close();
      }
    };
    const insert = (database: Database<Tables>, id: string, balance = 0): Promise<unknown> =>
      database.db
        .insertInto("accounts")
        .values({ id, owner: `owner of ${id}`, balance, photo: null })
        .execute();

    test("migrations run once, in order, and persist", async () => {
      const url = await makeUrl();
      const first = open(url);
      assert.deepEqual(await first.migrate(MIGRATIONS.slice(0, 1)), ["0001-accounts"]);
      await insert(first, "a");
      assert.deepEqual(await first.migrate(MIGRATIONS), ["0002-notes"]);
      assert.deepEqual(await first.migrate(MIGRATIONS), []);
      await first.close();
      const second = open(url);
      assert.deepEqual(await second.migrate(MIGRATIONS), []);
      assert.equal((await second.db.selectFrom("accounts").selectAll().execute()).length, 1);
      await second.close();
    });

    test("parts of a service have their own histories", () =>
      withDatabase(async (database) => {
        const part: Migration[] = [
          { id: "0001-part", statements: (t) => [`create table part (id ${t.text})`] },
        ];
        assert.deepEqual(await database.migrate(part, 0, "part"), ["0001-part"]);
        assert.deepEqual(await database.migrate(part, 0, "part"), []);
        assert.deepEqual(await database.migrate(MIGRATIONS), []);
      }));

    test("concurrent migrations apply each step once", async () => {
      const url = await makeUrl();
      const nodes = [open(url), open(url), open(url)];
      const applied = await Promise.all(nodes.map((node) => node.migrate(MIGRATIONS)));
      assert.deepEqual(applied.flat().toSorted(), ["0001-accounts", "0002-notes"]);
      await Promise.all(nodes.map((node) => node.close()));
    });

    test("a failed step rolls back all steps and is named in the error", async () => {
      const url = await makeUrl();
      const database = open(url);
      const bad: Migration[] = [
        ...MIGRATIONS,
        { id: "0003-bad", statements: () => ["create table x (a integer)", "create tabel y"] },
      ];
      await assert.rejects(database.migrate(bad), /migration 0003-bad of test failed: /);
      assert.deepEqual(await database.migrate(MIGRATIONS), ["0001-accounts", "0002-notes"]);
      await database.close();
    });

    test("an older program rejects a newer database", () =>
      withDatabase(async (database) => {
        await assert.rejects(
          database.migrate(MIGRATIONS.slice(0, 1)),
          /the test database is newer than this program: it has 0002-notes, the program ends at 0001-accounts/,
        );
      }));

    test("a changed migration is rejected; its white space may change", () =>
      withDatabase(async (database) => {
        const changed = (text: string): Migration[] => [
          MIGRATIONS[0]!,
          { id: "0002-notes", statements: () => [text] },
        ];
        await assert.rejects(database.migrate(changed("select 1")), /was changed after/);
        const spaced = MIGRATIONS.map(({ id, statements }): Migration => ({
          id,
          statements: (types, own) =>
            statements(types, own).map((text) => `  ${text.replaceAll(" ", "\n  ")}`),
        }));
        assert.deepEqual(await database.migrate(spaced), []);
      }));

    test("services that share a database have their own histories", () =>
      withDatabase(async (_database, url) => {
        const other = openDatabase<object>({ url, service: "other" });
        const own: Migration = { id: "0001-x", statements: () => ["create table x (a integer)"] };
        assert.deepEqual(await other.migrate([own]), ["0001-x"]);
        await other.close();
      }));

    test("migration ids out of order or of another form are rejected before any step runs", async () => {
      const database = open(await makeUrl());
      const step = (id: string): Migration => ({ id, statements: () => [] });
      await assert.rejects(database.migrate([step("0002-b"), step("0001-a")]), /out of order/);
      await assert.rejects(database.migrate([step("0001-a"), step("0001-b")]), /out of order/);
      await assert.rejects(database.migrate([step("1-a")]), /not allowed/);
      await database.close();
    });

    test("integers, text and bytes are stored unchanged", () =>
      withDatabase(async (database) => {
        const row = {
          id: "ü\u{1f600}' --",
          owner: "",
          balance: Number.MAX_SAFE_INTEGER,
          photo: new Uint8Array([0, 255, 10]),
        };
        await database.db.insertInto("accounts").values(row).execute();
        const found = await database.db
          .selectFrom("accounts")
          .selectAll()
          .executeTakeFirstOrThrow();
        assert.deepEqual({ ...found, photo: [...found.photo!] }, { ...row, photo: [0, 255, 10] });
        const { n } = await database.db
          .selectFrom("accounts")
          .select((eb) => eb.fn.countAll<number>().as("n"))
          .executeTakeFirstOrThrow();
        assert.equal(n, 1);
      }));

    test("text sorts by code point, not by a locale", () =>
      withDatabase(async (database) => {
        for (const id of ["b", "A", "a", "B", "é", "_"]) await insert(database, id);
        const rows = await database.db.selectFrom("accounts").select("id").orderBy("id").execute();
        assert.deepEqual(
          rows.map((row) => row.id),
          ["A", "B", "_", "a", "b", "é"],
        );
      }));

    test("updates return the number of changed rows, and the rows with returning", () =>
      withDatabase(async (database) => {
        await insert(database, "a");
        await insert(database, "b");
        const update = await database.db
          .updateTable("accounts")
          .set({ balance: 5 })
          .where("id", "=", "a")
          .executeTakeFirst();
        assert.equal(update.numUpdatedRows, 1n);
        const none = await database.db
          .deleteFrom("accounts")
          .where("id", "=", "zz")
          .executeTakeFirst();
        assert.equal(none.numDeletedRows, 0n);
        const [note] = await database.db
          .insertInto("notes")
          .values({ account_id: "a", body: "x" })
          .returning("id")
          .execute();
        assert.equal(note!.id, 1);
      }));

    test("violations are classified, with the columns of a unique violation", () =>
      withDatabase(async (database) => {
        const row = { id: "a", owner: "o", balance: 1, photo: null };
        await database.db.insertInto("accounts").values(row).execute();
        const fail = async (values: Partial<typeof row>): Promise<unknown> =>
          database.db
            .insertInto("accounts")
            .values({ ...row, ...values })
            .execute()
            .then(
              () => assert.fail("expected a violation"),
              (error: unknown) => error,
            );
        const key = await fail({ owner: "p" });
        assert.deepEqual(readDatabaseError(key), { kind: "unique_violation", columns: ["id"] });
        const owner = await fail({ id: "b" });
        assert.ok(isUniqueViolation(owner, "owner"));
        assert.ok(!isUniqueViolation(owner, "id"));
        const negative = await fail({ id: "c", owner: "q", balance: -1 });
        assert.equal(readDatabaseError(negative).kind, "check_violation");
        const missing = await fail({ id: "c", owner: null as unknown as string });
        assert.equal(readDatabaseError(missing).kind, "not_null_violation");
        const stray = database.db.insertInto("notes").values({ account_id: "no", body: "" });
        await assert.rejects(stray.execute(), (error) => {
          assert.equal(readDatabaseError(error).kind, "foreign_key_violation");
          return true;
        });
      }));

    test("a transaction that throws is rolled back", () =>
      withDatabase(async (database) => {
        await assert.rejects(
          database.transaction(async (trx) => {
            await trx
              .insertInto("accounts")
              .values({ id: "a", owner: "o", balance: 0, photo: null })
              .execute();
            throw new Error("changed my mind");
          }),
          /changed my mind/,
        );
        assert.deepEqual(await database.db.selectFrom("accounts").selectAll().execute(), []);
      }));

    test("a savepoint rolls back only its own part", () =>
      withDatabase(async (database) => {
        const trx = await database.db.startTransaction().execute();
        const add = (id: string): Promise<unknown> =>
          trx.insertInto("accounts").values({ id, owner: id, balance: 0, photo: null }).execute();
        await add("a");
        const afterA = await trx.savepoint("after_a").execute();
        await add("b");
        await (
          await afterA.rollbackToSavepoint("after_a").execute()
        )
          .releaseSavepoint("after_a")
          .execute();
        await trx.commit().execute();
        const rows = await database.db.selectFrom("accounts").select("id").execute();
        assert.deepEqual(rows, [{ id: "a" }]);
      }));

    test("other readers see the last commit while a transaction is open", () =>
      withDatabase(async (database) => {
        await insert(database, "a", 1);
        await database.transaction(async (trx) => {
          await trx.updateTable("accounts").set({ balance: 2 }).execute();
          const outside = await database.db.selectFrom("accounts").select("balance").execute();
          assert.deepEqual(outside, [{ balance: 1 }]);
          const inside = await trx.selectFrom("accounts").select("balance").execute();
          assert.deepEqual(inside, [{ balance: 2 }]);
        });
        const now = await database.db.selectFrom("accounts").select("balance").execute();
        assert.deepEqual(now, [{ balance: 2 }]);
      }));

    test("concurrent read-modify-write transactions lose no update", () =>
      withDatabase(async (database) => {
        await insert(database, "a", 0);
        const addOne = (): Promise<void> =>
          database.transaction(
            async (trx) => {
              const { balance } = await trx
                .selectFrom("accounts")
                .select("balance")
                .executeTakeFirstOrThrow();
              await trx
                .updateTable("accounts")
                .set({ balance: balance + 1 })
                .execute();
            },
            { isolation: "serializable", attemptsMax: 20 },
          );
        await Promise.all(Array.from({ length: 8 }, addOne));
        const row = await database.db.selectFrom("accounts").select("balance").executeTakeFirst();
        assert.equal(row?.balance, 8);
      }));

    test("a conflict is retried only up to the limit", () =>
      withDatabase(async (database) => {
        let runs = 0;
        const collide = database.transaction(
          async () => {
            runs += 1;
            throw new DatabaseError("serialization_failure", "collided");
          },
          { attemptsMax: 3 },
        );
        await assert.rejects(collide, /collided/);
        assert.equal(runs, 3);
      }));

    test("concurrent single writes succeed or fail independently", () =>
      withDatabase(async (database) => {
        const results = await Promise.allSettled(
          Array.from({ length: 300 }, (_, index) => insert(database, `${index % 200}`)),
        );
        assert.equal(results.filter((result) => result.status === "fulfilled").length, 200);
        for (const result of results) {
          if (result.status === "rejected") assert.ok(isUniqueViolation(result.reason));
        }
        const rows = await database.db.selectFrom("accounts").select("id").execute();
        assert.equal(rows.length, 200);
      }));

    test(
      "rows can be streamed, and the stream ended early",
      { skip: kind === "postgres" && "streaming from PostgreSQL is not built" },
      () =>
        withDatabase(async (database) => {
          for (const id of ["a", "b", "c"]) await insert(database, id);
          const seen: string[] = [];
          for await (const row of database.db.selectFrom("accounts").select("id").stream()) {
            seen.push(row.id);
            if (seen.length === 2) break;
          }
          assert.deepEqual(seen, ["a", "b"]);
          await insert(database, "d");
        }),
    );

    test("the health check reports whether the database responds", () =>
      withDatabase(async (database) => {
        assert.equal(await database.check(), undefined);
        await database.close();
        assert.match((await database.check())!, /^the database does not respond/);
      }));

    test("an unused database can be closed, also twice", async () => {
      const database = open(await makeUrl());
      await database.close();
      await database.close();
    });
  });
}

describe("SQLite only", () => {
  const makePath = (): string => join(folder, `${(files += 1)}`, "own.db");

  test("only the owner can access the file, and the journal mode is WAL", async () => {
    const path = makePath();
    const database = openDatabase<object>({ url: `sqlite:${path}`, service: "test" });
    await sql`create table t (a integer)`.execute(database.db);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal(statSync(`${path}-wal`).mode & 0o777, 0o600);
    const pragma = async (name: string): Promise<unknown> => {
      const { rows } = await sql
        .raw<Record<string, unknown>>(`pragma ${name}`)
        .execute(database.db);
      return Object.values(rows[0]!)[0];
    };
    assert.equal(await pragma("journal_mode"), "wal");
    // The engine syncs commits itself: durability.test.ts.
    assert.equal(await pragma("synchronous"), 1);
    assert.equal(await pragma("foreign_keys"), 1);
    await database.close();
  });

  test("in memory, reads outside a transaction wait for it", async () => {
    const database = openDatabase<Tables>({ url: "sqlite::memory:", service: "test" });
    await database.migrate(MIGRATIONS);
    let outside: Promise<unknown[]> | undefined;
    await database.transaction(async (trx) => {
      await trx
        .insertInto("accounts")
        .values({ id: "a", owner: "o", balance: 0, photo: null })
        .execute();
      outside = database.db.selectFrom("accounts").select("id").execute();
      await sleep(10);
    });
    assert.deepEqual(await outside, [{ id: "a" }]);
    await database.close();
  });

  test("a writer waits for another process up to its timeout, without blocking the thread", async () => {
    const url = `sqlite:${makePath()}`;
    const holder = openDatabase<Tables>({ url, service: "test" });
    await holder.migrate(MIGRATIONS);
    const other = openDatabase<Tables>({ url, service: "test", sqlite: { busyTimeoutMs: 200 } });
    let ticks = 0;
    const ticker = setInterval(() => (ticks += 1), 5);
    const trx = await holder.db.startTransaction().execute();
    await trx.deleteFrom("notes").execute();
    await assert.rejects(other.db.deleteFrom("notes").execute(), (error) => {
      assert.equal(readDatabaseError(error).kind, "busy");
      return true;
    });
    clearInterval(ticker);
    assert.ok(ticks >= 3, `${ticks} ticks`);
    await trx.rollback().execute();
    await other.db.deleteFrom("notes").execute();
    await other.close();
    await holder.close();
  });

  test("writers beyond the limit fail with busy", async () => {
    const database = openDatabase<Tables>({
      url: `sqlite:${makePath()}`,
      service: "test",
      sqlite: { waitingMax: 2 },
    });
    await database.migrate(MIGRATIONS);
    const writes = await Promise.allSettled(
      [1, 2, 3].map(() => database.db.deleteFrom("notes").execute()),
    );
    assert.deepEqual(
      writes.map((write) => write.status),
      ["fulfilled", "fulfilled", "rejected"],
    );
    await database.close();
  });

  test("more statements than fit in the cache work", async () => {
    const database = openDatabase<object>({
      url: "sqlite::memory:",
      service: "test",
      sqlite: { statementsMax: 2 },
    });
    for (const round of [1, 2]) {
      for (let n = 0; n < 5; n += 1) {
        const { rows } = await sql.raw<{ n: number }>(`select ${n} as n`).execute(database.db);
        assert.deepEqual(rows, [{ n }], `round ${round}`);
      }
    }
    await database.close();
  });

  test("transactions as SQL statements are rejected", async () => {
    const database = openDatabase<object>({ url: "sqlite::memory:", service: "test" });
    await assert.rejects(sql`begin`.execute(database.db), /must use Kysely/);
    await database.close();
  });

  test("closing completes accepted writes", async () => {
    const url = `sqlite:${makePath()}`;
    const database = openDatabase<Tables>({ url, service: "test" });
    await database.migrate(MIGRATIONS);
    const write = database.db
      .insertInto("accounts")
      .values({ id: "a", owner: "o", balance: 0, photo: null })
      .execute();
    await Promise.all([write, sleep(0).then(() => database.close())]);
    const again = openDatabase<Tables>({ url, service: "test" });
    assert.equal((await again.db.selectFrom("accounts").selectAll().execute()).length, 1);
    await again.close();
  });

  test("a migration that violates foreign keys is rolled back", async () => {
    const database = openDatabase<Tables>({ url: "sqlite::memory:", service: "test" });
    await database.migrate(MIGRATIONS);
    await database.db
      .insertInto("accounts")
      .values({ id: "a", owner: "o", balance: 0, photo: null })
      .execute();
    await database.db.insertInto("notes").values({ account_id: "a", body: "" }).execute();
    const broken: Migration = { id: "0003-x", statements: () => ["delete from accounts"] };
    await assert.rejects(database.migrate([...MIGRATIONS, broken]), /1 rows violate a foreign key/);
    assert.equal((await database.db.selectFrom("accounts").selectAll().execute()).length, 1);
    await database.close();
  });
});

test("an unsupported database URL is rejected without repeating it", () => {
  assert.throws(
    () => openDatabase({ url: "mysql://u:secret@h/d", service: "test" }),
    (error: Error) => error instanceof TypeError && !error.message.includes("secret"),
  );
});
