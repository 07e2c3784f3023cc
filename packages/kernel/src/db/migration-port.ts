// The migration transaction and its lock on each database.
import type pg from "pg";
import { DatabaseError } from "./error.ts";
import type { MigrationPort } from "./migration.ts";
import type { SqliteEngine } from "./sqlite-engine.ts";

// "platform" in ASCII, truncated to a positive 63-bit number. All programs use the same advisory lock.
const ADVISORY_LOCK_KEY = "8101799321466597224";
const LOCK_TIMEOUT_MS = 60_000;

/**
 * Runs `work` with a port on the SQLite engine. Foreign keys are checked at the end, so that a step may rebuild a table
 * (https://www.sqlite.org/lang_altertable.html#otheralter).
 */
export async function withSqlitePort<T>(
  engine: SqliteEngine,
  work: (port: MigrationPort) => Promise<T>,
): Promise<T> {
  await engine.exclusive(async (database) => {
    database.exec("pragma foreign_keys = off");
  });
  try {
    return await work({
      kind: "sqlite",
      begin: () => engine.begin(),
      execute: async (sql) => {
        engine.runInTransaction(sql, []);
      },
      query: async (sql, parameters) => engine.runInTransaction(sql, parameters).rows,
      commit: async () => {
        const broken = engine.checkForeignKeys();
        if (broken > 0) {
          throw new DatabaseError("foreign_key_violation", `${broken} rows violate a foreign key`);
        }
        await engine.commit();
      },
      rollback: async () => engine.rollback(),
    });
  } finally {
    await engine.exclusive(async (database) => {
      database.exec("pragma foreign_keys = on");
    });
  }
}

/** Runs `work` with a port on one connection of the pool; an advisory lock excludes other nodes. */
export async function withPostgresPort<T>(
  pool: pg.Pool,
  work: (port: MigrationPort) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    return await work({
      kind: "postgres",
      begin: async () => {
        await client.query("begin");
        await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
        await client.query("set local statement_timeout = 0");
        await client.query(`select pg_advisory_xact_lock(${ADVISORY_LOCK_KEY})`);
      },
      execute: async (sql) => {
        await client.query(sql);
      },
      query: async (sql, parameters) =>
        (await client.query<Record<string, unknown>>(sql, [...parameters])).rows,
      commit: async () => {
        await client.query("commit");
      },
      rollback: async () => {
        // A connection that cannot roll back is discarded. The original error is thrown.
        await client.query("rollback").catch((error: Error) => (broken = error));
      },
    });
  } finally {
    client.release(broken);
  }
}
