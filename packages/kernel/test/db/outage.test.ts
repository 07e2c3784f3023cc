// Outages of PostgreSQL: only statements in flight fail, and the pool recovers.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { openDatabase, readDatabaseError, type Database } from "@platform/kernel/db";
import {
  findPostgresSkip,
  startPostgresCluster,
  type PostgresCluster,
} from "@platform/kernel/db-testing";
import { getProblemHeaders, toPlatformError } from "@platform/kernel/errors";

interface Tables {
  counters: { id: string; value: number };
}

const RECOVERY_MS_MAX = 20_000;

describe("outages of PostgreSQL", { skip: findPostgresSkip() ?? false }, () => {
  let cluster: PostgresCluster;
  const opened: Database<Tables>[] = [];
  before(async () => {
    cluster = await startPostgresCluster({ keepsCommits: true });
  });
  after(async () => {
    for (const database of opened) await database.close();
    await cluster.stop();
  });

  const open = async (onConnectionError?: (error: Error) => void): Promise<Database<Tables>> => {
    const database = openDatabase<Tables>({
      url: await cluster.createDatabase(),
      service: "test",
      ...(onConnectionError === undefined ? {} : { postgres: { onConnectionError } }),
    });
    opened.push(database);
    await database.migrate([
      {
        id: "0001-counters",
        statements: (t) => [
          `create table counters (id ${t.text} primary key, value ${t.integer} not null)`,
        ],
      },
    ]);
    await database.db.insertInto("counters").values({ id: "a", value: 0 }).execute();
    return database;
  };
  const read = ({ db }: Database<Tables>): Promise<number> =>
    db
      .selectFrom("counters")
      .select("value")
      .where("id", "=", "a")
      .executeTakeFirstOrThrow()
      .then(({ value }) => value);
  const add = ({ db }: Pick<Database<Tables>, "db">): Promise<unknown> =>
    db
      .updateTable("counters")
      .set((row) => ({ value: row("value", "+", 1) }))
      .where("id", "=", "a")
      .execute();
  const waitForRecovery = async (database: Database<Tables>): Promise<void> => {
    const deadline = performance.now() + RECOVERY_MS_MAX;
    while ((await database.check()) !== undefined) {
      assert.ok(performance.now() < deadline, "the database was not reached again");
      await sleep(20);
    }
  };

  for (const mode of ["fast", "immediate"] as const) {
    test(`${mode} restarts under load cause only unavailable errors, and acknowledged writes persist`, async () => {
      const broken: Error[] = [];
      const database = await open((error) => broken.push(error));
      const counts = { confirmed: 0, unknown: 0, failures: 0 };
      const over = new AbortController();
      const note = (error: unknown): void => {
        counts.failures += 1;
        const { code, status } = toPlatformError(error);
        const { kind } = readDatabaseError(error);
        assert.ok(kind === "unavailable" || kind === "timeout", String(error));
        assert.deepEqual([code, status], ["unavailable", 503]);
        assert.ok(Number(getProblemHeaders(error)["Retry-After"]) >= 1);
      };
      const work = async (step: () => Promise<void>): Promise<void> => {
        while (!over.signal.aborted) {
          try {
            await step();
          } catch (error) {
            note(error);
            await sleep(2);
          }
        }
      };
      const load = [
        ...Array.from({ length: 8 }, () => work(async () => void (await read(database)))),
        ...Array.from({ length: 4 }, () =>
          work(async () => {
            counts.unknown += 1;
            await add(database);
            counts.confirmed += 1;
            counts.unknown -= 1;
          }),
        ),
        ...Array.from({ length: 4 }, () =>
          work(async () => {
            counts.unknown += 1;
            await database.transaction(async (trx) => {
              await add({ db: trx });
              await sql`select pg_sleep(0.002)`.execute(trx);
            });
            counts.confirmed += 1;
            counts.unknown -= 1;
          }),
        ),
      ];
      const restartOnce = async (): Promise<void> => {
        const before = counts.confirmed;
        const deadline = performance.now() + RECOVERY_MS_MAX;
        while (counts.confirmed < before + 20 && performance.now() < deadline) await sleep(5);
        assert.ok(counts.confirmed >= before + 20, "writes are confirmed again");
        const failed = counts.failures;
        await cluster.restart(mode, async () => {
          assert.match((await database.check()) ?? "", /does not respond: unavailable/);
        });
        assert.ok(counts.failures > failed, "the load noticed the outage");
        await waitForRecovery(database);
      };
      try {
        for (let restart = 0; restart < 3; restart += 1) await restartOnce();
      } finally {
        over.abort();
      }
      await Promise.all(load);
      assert.ok(broken.length > 0, "broken connections are reported");
      const value = await read(database);
      assert.ok(value >= counts.confirmed, `${value} of ${counts.confirmed} confirmed`);
      assert.ok(
        value <= counts.confirmed + counts.unknown,
        `${value} of at most ${counts.confirmed + counts.unknown}`,
      );
    });
  }

  // Terminates all other connections of this database on the server, like a load balancer in between.
  const cutConnections = async (url: Database<Tables>): Promise<void> => {
    await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where pid <> pg_backend_pid() and application_name = 'test'`.execute(url.db);
  };

  test("a read whose connection breaks is repeated on another one", async () => {
    const [database, other] = [await open(), await open()];
    const slow = database.db
      .selectFrom("counters")
      .select(["value", sql`pg_sleep(0.5)`.as("pause")])
      .execute();
    await waitForQuery(other, "pg_sleep(0.5)");
    await cutConnections(other);
    assert.equal((await slow)[0]?.value, 0);
  });

  test("a write whose connection breaks is not repeated, because it may have been executed", async () => {
    const [database, other] = [await open(), await open()];
    const slow = database.db
      .updateTable("counters")
      .set((row) => ({ value: sql<number>`${row.ref("value")} + length(pg_sleep(0.5)::text) + 1` }))
      .execute();
    slow.catch(() => {});
    await waitForQuery(other, "pg_sleep(0.5)");
    await cutConnections(other);
    await assert.rejects(slow, (error) => readDatabaseError(error).kind === "unavailable");
    assert.equal(await read(database), 0);
  });

  test("a transaction whose connection breaks before its commit is repeated", async () => {
    const [database, other] = [await open(), await open()];
    let runs = 0;
    await database.transaction(async (trx) => {
      runs += 1;
      await add({ db: trx });
      if (runs === 1) await cutConnections(other);
      await add({ db: trx });
    });
    assert.equal(runs, 2);
    assert.equal(await read(database), 2);
  });

  const waitForQuery = async (database: Database<Tables>, part: string): Promise<void> => {
    const deadline = performance.now() + RECOVERY_MS_MAX;
    for (;;) {
      const { rows } = await sql`select 1 from pg_stat_activity
        where state = 'active' and pid <> pg_backend_pid() and position(${part} in query) > 0`.execute(
        database.db,
      );
      if (rows.length > 0) return;
      assert.ok(performance.now() < deadline, "the statement did not start");
      await sleep(5);
    }
  };
});
