// Kysely dialect for a PostgreSQL pool: repeats reads after a broken connection, reports outages as `unavailable`.
import { setImmediate as passTurn } from "node:timers/promises";
import {
  AbortedTransactionError,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  SelectQueryNode,
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  type QueryResult,
  type TransactionSettings,
} from "kysely";
import type pg from "pg";
import { DatabaseError, readDatabaseError, toDatabaseError } from "./error.ts";

/** Creates a Kysely dialect for the pool; destroying the Kysely instance ends the pool. */
export function createPostgresDialect(pool: pg.Pool, waitingMax = 1_000): Dialect {
  return {
    createDriver: () => new PoolDriver(pool, waitingMax),
    createQueryCompiler: () => new PostgresQueryCompiler(),
    createAdapter: () => new PostgresAdapter(),
    createIntrospector: (db: Kysely<unknown>) => new PostgresIntrospector(db),
  };
}

// Maximum number of attempts of a repeatable statement, including the first. When a server restarts, all connections of
// the pool break at about the same time, so one repetition may use another broken one.
const ATTEMPTS_MAX = 3;

class PoolDriver implements Driver {
  readonly #pool: pg.Pool;
  readonly #waitingMax: number;

  constructor(pool: pg.Pool, waitingMax: number) {
    this.#pool = pool;
    this.#waitingMax = waitingMax;
  }

  async init(): Promise<void> {
    // The pool connects on first use.
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const connect = (): Promise<pg.PoolClient> => this.#connect();
    return new PoolConnection(await connect(), connect);
  }

  async beginTransaction(connection: PoolConnection, settings: TransactionSettings): Promise<void> {
    await connection.begin(settings);
  }

  async commitTransaction(connection: PoolConnection): Promise<void> {
    await connection.commit();
  }

  async rollbackTransaction(connection: PoolConnection): Promise<void> {
    await connection.rollback();
  }

  async savepoint(connection: PoolConnection, name: string): Promise<void> {
    await connection.run(`savepoint ${quoteName(name)}`);
  }

  async rollbackToSavepoint(connection: PoolConnection, name: string): Promise<void> {
    await connection.run(`rollback to ${quoteName(name)}`);
  }

  async releaseSavepoint(connection: PoolConnection, name: string): Promise<void> {
    await connection.run(`release ${quoteName(name)}`);
  }

  async releaseConnection(connection: PoolConnection): Promise<void> {
    connection.release();
  }

  async destroy(): Promise<void> {
    await this.#pool.end();
  }

  async #connect(): Promise<pg.PoolClient> {
    if (this.#pool.waitingCount >= this.#waitingMax) {
      throw new DatabaseError("busy", "too many requests are waiting for the database");
    }
    try {
      return await this.#pool.connect();
    } catch (error) {
      throw toDatabaseError(error);
    }
  }
}

class PoolConnection implements DatabaseConnection {
  readonly #connect: () => Promise<pg.PoolClient>;
  // Undefined if the connection broke and could not be replaced.
  #client: pg.PoolClient | undefined;
  #inTransaction = false;

  constructor(client: pg.PoolClient, connect: () => Promise<pg.PoolClient>) {
    this.#client = client;
    this.#connect = connect;
  }

  async executeQuery<R>({ sql, parameters, query }: CompiledQuery): Promise<QueryResult<R>> {
    const isRepeatable =
      !this.#inTransaction && SelectQueryNode.is(query) && query.with === undefined;
    const result = await (isRepeatable
      ? this.#runRepeatedly(sql, parameters)
      : this.run(sql, parameters));
    const { command, rowCount, rows } = result as pg.QueryResult<R & pg.QueryResultRow>;
    return CHANGING_COMMANDS.has(command)
      ? { rows, numAffectedRows: BigInt(rowCount ?? 0) }
      : { rows: rows ?? [] };
  }

  // oxlint-disable-next-line require-yield -- the interface requires a generator
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new DatabaseError("other", "streaming from PostgreSQL is not implemented");
  }

  /** Begins a transaction, on another connection if this one is broken. */
  async begin({ isolationLevel, accessMode }: TransactionSettings): Promise<void> {
    const isolation = isolationLevel === undefined ? "" : ` isolation level ${isolationLevel}`;
    await this.#runRepeatedly(`start transaction${isolation}${accessMode ? ` ${accessMode}` : ""}`);
    this.#inTransaction = true;
  }

  async commit(): Promise<void> {
    this.#inTransaction = false;
    const { command } = await this.run("commit").catch((error: unknown) => {
      if (!(error instanceof DatabaseError && error.isConnectionLost)) throw error;
      const message =
        "the connection broke during the commit; the transaction may have been committed";
      throw new DatabaseError(error.kind, message, { cause: error });
    });
    // PostgreSQL's response to COMMIT if an earlier statement of the transaction failed.
    if (command === "ROLLBACK") throw new AbortedTransactionError();
  }

  /** Closes the connection if it cannot roll back, which rolls back on the server; the original error is thrown. */
  async rollback(): Promise<void> {
    this.#inTransaction = false;
    if (this.#client === undefined) return;
    try {
      await this.#client.query("rollback");
    } catch {
      this.#discard();
    }
  }

  /** Runs a statement once, and discards the connection if it broke. */
  async run(sql: string, parameters?: readonly unknown[]): Promise<pg.QueryResult> {
    if (this.#client === undefined) {
      const message = "the connection broke earlier in this transaction";
      throw new DatabaseError("unavailable", message, { isConnectionLost: true });
    }
    try {
      return await this.#client.query(sql, parameters as unknown[] | undefined);
    } catch (error) {
      const isLost = isConnectionLost(error);
      if (isLost) this.#discard();
      throw toDatabaseError(error, { isConnectionLost: isLost });
    }
  }

  release(): void {
    this.#client?.release();
    this.#client = undefined;
  }

  async #runRepeatedly(sql: string, parameters?: readonly unknown[]): Promise<pg.QueryResult> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.run(sql, parameters);
      } catch (error) {
        if (this.#client !== undefined || attempt >= ATTEMPTS_MAX) throw error;
      }
      // The pool first processes the errors of its other broken connections.
      await passTurn();
      this.#client = await this.#connect();
    }
  }

  #discard(): void {
    this.#client?.release(true);
    this.#client = undefined;
  }
}

const CHANGING_COMMANDS = new Set(["INSERT", "UPDATE", "DELETE", "MERGE"]);

// After the driver's own timeout the statement is still running, so the connection cannot be reused.
function isConnectionLost(error: unknown): boolean {
  if (readDatabaseError(error).kind === "unavailable") return true;
  return error instanceof Error && error.message === "Query read timeout";
}

function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
