// The database of a service: opened by URL, migrated, queried with Kysely, on SQLite or PostgreSQL.
import { setTimeout as sleep } from "node:timers/promises";
import { Kysely, sql, type Transaction } from "kysely";
import { DatabaseError, readDatabaseError } from "./error.ts";
import { migrate, type DatabaseKind, type Migration } from "./migration.ts";
import { withPostgresPort, withSqlitePort } from "./migration-port.ts";
import { createPostgresPool, type PostgresOptions } from "./postgres.ts";
import { createPostgresDialect } from "./postgres-dialect.ts";
import { createSqliteDialect } from "./sqlite-dialect.ts";
import { SqliteEngine, type SqliteOptions } from "./sqlite-engine.ts";

/** Options of {@link openDatabase}. */
export interface DatabaseOptions {
  /**
   * `postgres://…`, `postgresql://…`, or `sqlite:path` for a SQLite file; the data of `sqlite::memory:` is lost on
   * close. The URL may contain a password: never log it.
   */
  url: string;
  /** Name of the service: the scope of its migrations, and the application name in PostgreSQL. */
  service: string;
  sqlite?: Omit<SqliteOptions, "path">;
  postgres?: Omit<PostgresOptions, "url" | "applicationName">;
}

/** Options of a transaction. */
interface TransactionOptions {
  /** Maximum number of attempts, including the first. Default 5. */
  attemptsMax?: number;
  /** Default on PostgreSQL: `read committed`. On SQLite every transaction is serializable. */
  isolation?: "serializable";
}

/** An open database with the tables `Tables`. */
export interface Database<Tables> {
  readonly kind: DatabaseKind;
  /** For queries outside transactions. */
  readonly db: Kysely<Tables>;
  /**
   * Runs `work` in a transaction. It is repeated after a conflict (serialization failure, deadlock) and if the
   * connection broke before the commit, so it must have no effects except through `trx`. Any other error rolls back and
   * is thrown, including `busy`, which is thrown only after the full waiting time. If the connection breaks during the
   * commit, the transaction may have been committed.
   */
  transaction<T>(
    work: (trx: Transaction<Tables>) => Promise<T>,
    options?: TransactionOptions,
  ): Promise<T>;
  /**
   * Applies pending migrations and returns their ids; see `migrate`. A part of a service with its own tables can have
   * its own migration history, named `part`.
   */
  migrate(migrations: readonly Migration[], nowMs?: number, part?: string): Promise<string[]>;
  /** Reports damage that a caller has found in a row: `check` returns it from now on. Without effect on PostgreSQL. */
  reportDamage(fault: string): void;
  /** Health check: undefined if the database responds, otherwise the reason. */
  check(): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Opens a database. A SQLite file is opened (and created) immediately; PostgreSQL is connected on first use. */
export function openDatabase<Tables>(options: DatabaseOptions): Database<Tables> {
  const { url, service } = options;
  if (/^postgres(?:ql)?:\/\//.test(url)) {
    const pool = createPostgresPool({ ...options.postgres, url, applicationName: service });
    const dialect = createPostgresDialect(pool, options.postgres?.waitingMax);
    const db = new Kysely<Tables>({ dialect });
    return buildDatabase("postgres", db, {
      applyMigrations: (migrations, nowMs, part) =>
        withPostgresPort(pool, (port) => migrate(port, scopeOf(service, part), migrations, nowMs)),
      // Kysely does not end a pool that it has never used.
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
      findFault: () => engine.fault,
      noteDamage: (fault) => engine.noteDamage(fault),
    });
  }
  throw new TypeError("a database URL must start with postgres://, postgresql:// or sqlite:");
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
  /** The fault of the file or its disk. */
  findFault?(): string | undefined;
  noteDamage?(fault: string): void;
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
    reportDamage: (fault) => store.noteDamage?.(fault),
    check: async () => {
      try {
        await db.selectNoFrom(sql`1`.as("answer")).execute();
        return store.findFault?.();
      } catch (error) {
        return `the database does not respond: ${readDatabaseError(error).kind}`;
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
    // A random delay keeps conflicting transactions apart.
    await sleep(2 ** attempt * (1 + Math.random()));
  }
}

// True if the transaction was rolled back and may succeed if repeated.
function isUndone(error: unknown): boolean {
  const { kind } = readDatabaseError(error);
  if (kind === "serialization_failure") return true;
  return error instanceof DatabaseError && error.isConnectionLost;
}
