// A database for one service: opened from a URL, migrated, asked through Kysely, the same on SQLite and PostgreSQL.
import { setTimeout as sleep } from "node:timers/promises";
import { Kysely, sql, type Transaction } from "kysely";
import { DatabaseError, readDatabaseError } from "./error.ts";
import { migrate, type DatabaseKind, type Migration } from "./migration.ts";
import { withPostgresPort, withSqlitePort } from "./migration-port.ts";
import { createPostgresPool, type PostgresOptions } from "./postgres.ts";
import { createPostgresDialect } from "./postgres-dialect.ts";
import { createSqliteDialect } from "./sqlite-dialect.ts";
import { SqliteEngine, type SqliteOptions } from "./sqlite-engine.ts";

/** Which database, and its bounds where the defaults do not fit. */
export interface DatabaseOptions {
  /**
   * `postgres://…` or `postgresql://…`, or a SQLite file as `sqlite:path`; `sqlite::memory:` lives as long as it is
   * open. It may hold a password: never log it.
   */
  url: string;
  /** The service: scope of its migrations, and the name that PostgreSQL shows for its connections. */
  service: string;
  sqlite?: Omit<SqliteOptions, "path">;
  postgres?: Omit<PostgresOptions, "url" | "applicationName">;
}

/** How a transaction is run. */
export interface TransactionOptions {
  /** Runs in all, the first included. Default 5. */
  attemptsMax?: number;
  /** On PostgreSQL `read committed` unless `serializable` is asked for; on SQLite every transaction is serializable. */
  isolation?: "serializable";
}

/** An open database with the tables `Tables`. */
export interface Database<Tables> {
  readonly kind: DatabaseKind;
  /** For queries outside of transactions. */
  readonly db: Kysely<Tables>;
  /**
   * Runs `work` in one transaction, and again from its start when it collided with another (serialization failure,
   * deadlock) or its connection broke before the commit: it must do nothing but talk to the database through `trx`. Any
   * other error undoes it and is thrown; `busy` among them, for by then it has waited as long as it may. Where the
   * connection broke during the commit, the transaction may have happened.
   */
  transaction<T>(
    work: (trx: Transaction<Tables>) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T>;
  /**
   * Applies what is missing and returns the ids; see `migrate`. The parts of a service that keep tables of their own can
   * each have a history of their own: `part` is then its name.
   */
  migrate(migrations: readonly Migration[], nowMs?: number, part?: string): Promise<string[]>;
  /** A health check: undefined when the database answers. */
  check(): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Opens a database. A SQLite file is opened (and made) at once; PostgreSQL is connected at first use. */
export function openDatabase<Tables>(options: DatabaseOptions): Database<Tables> {
  const { url, service } = options;
  if (/^postgres(?:ql)?:\/\//.test(url)) {
    const pool = createPostgresPool({ ...options.postgres, url, applicationName: service });
    const dialect = createPostgresDialect(pool, options.postgres?.waitingMax);
    const db = new Kysely<Tables>({ dialect });
    return buildDatabase("postgres", db, {
      applyMigrations: (migrations, nowMs, part) =>
        withPostgresPort(pool, (port) => migrate(port, scopeOf(service, part), migrations, nowMs)),
      // Kysely leaves a pool alone that it has not used.
      closeStore: async () => {
        if (!pool.ending) await pool.end();
      },
    });
  }
  if (url.startsWith("sqlite:") && url.length > "sqlite:".length) {
    const engine = new SqliteEngine({ ...options.sqlite, path: url.slice("sqlite:".length) });
    const db = new Kysely<Tables>({ dialect: createSqliteDialect(engine) });
    return buildDatabase("sqlite", db, {
      applyMigrations: (migrations, nowMs, part) =>
        withSqlitePort(engine, (port) => migrate(port, scopeOf(service, part), migrations, nowMs)),
      closeStore: () => engine.close(),
    });
  }
  throw new TypeError("a database URL begins with postgres://, postgresql:// or sqlite:");
}

function scopeOf(service: string, part: string | undefined): string {
  return part === undefined ? service : `${service}/${part}`;
}

interface Store {
  applyMigrations(
    migrations: readonly Migration[],
    nowMs: number,
    part: string | undefined,
  ): Promise<string[]>;
  closeStore(): Promise<void>;
}

function buildDatabase<Tables>(
  kind: DatabaseKind,
  db: Kysely<Tables>,
  store: Store,
): Database<Tables> {
  return {
    kind,
    db,
    transaction: (work, options = {}) => runTransaction(db, work, options),
    migrate: (migrations, nowMs = Date.now(), part) =>
      store.applyMigrations(migrations, nowMs, part),
    check: async () => {
      try {
        await db.selectNoFrom(sql`1`.as("answer")).execute();
        return undefined;
      } catch (error) {
        return `the database does not answer: ${readDatabaseError(error).kind}`;
      }
    },
    close: async () => {
      await db.destroy();
      await store.closeStore();
    },
  };
}

async function runTransaction<Tables, T>(
  db: Kysely<Tables>,
  work: (trx: Transaction<Tables>) => Promise<T>,
  options: TransactionOptions,
): Promise<T> {
  const attemptsMax = options.attemptsMax ?? 5;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const builder = db.transaction();
      const chosen =
        options.isolation === undefined ? builder : builder.setIsolationLevel(options.isolation);
      return await chosen.execute(work);
    } catch (error) {
      if (attempt >= attemptsMax || !isUndone(error)) throw error;
    }
    // Transactions that collided must not meet again at the same moment.
    await sleep(2 ** attempt * (1 + Math.random()));
  }
}

// Whether running the transaction again may succeed and cannot do its work twice.
function isUndone(error: unknown): boolean {
  const { kind } = readDatabaseError(error);
  if (kind === "serialization_failure") return true;
  return error instanceof DatabaseError && error.isConnectionLost;
}
