// Kysely dialect for `SqliteEngine`.
import {
  type CompiledQuery,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type DatabaseConnection,
  type Dialect,
  type DialectAdapter,
  type Driver,
  type Kysely,
  type QueryResult,
  type TransactionSettings,
} from "kysely";
import { toDatabaseError } from "./error.ts";
import type { SqliteEngine } from "./sqlite-engine.ts";
import type { SqliteResult } from "./sqlite-handle.ts";

/** Creates a Kysely dialect for an open engine; destroying the Kysely instance closes the engine. */
export function createSqliteDialect(engine: SqliteEngine): Dialect {
  return {
    createDriver: () => new EngineDriver(engine),
    createQueryCompiler: () => new SqliteQueryCompiler(),
    createAdapter: (): DialectAdapter => new EngineAdapter(),
    createIntrospector: (db: Kysely<unknown>) => new SqliteIntrospector(db),
  };
}

// Without this, Kysely would block reads while a transaction runs; the engine does its own queueing.
class EngineAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

class EngineDriver implements Driver {
  readonly #engine: SqliteEngine;

  constructor(engine: SqliteEngine) {
    this.#engine = engine;
  }

  async init(): Promise<void> {
    // The engine is open already.
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    return new EngineConnection(this.#engine);
  }

  // Every transaction is serializable: there is only one writer.
  async beginTransaction(
    connection: EngineConnection,
    _settings: TransactionSettings,
  ): Promise<void> {
    await this.#engine.begin().catch(rethrow);
    connection.inTransaction = true;
  }

  async commitTransaction(connection: EngineConnection): Promise<void> {
    connection.inTransaction = false;
    await this.#engine.commit().catch(rethrow);
  }

  async rollbackTransaction(connection: EngineConnection): Promise<void> {
    if (!connection.inTransaction) return;
    connection.inTransaction = false;
    this.#engine.rollback();
  }

  async savepoint(_connection: EngineConnection, name: string): Promise<void> {
    this.#engine.savepoint(`savepoint ${quoteName(name)}`);
  }

  async rollbackToSavepoint(_connection: EngineConnection, name: string): Promise<void> {
    this.#engine.savepoint(`rollback to ${quoteName(name)}`);
  }

  async releaseSavepoint(_connection: EngineConnection, name: string): Promise<void> {
    this.#engine.savepoint(`release ${quoteName(name)}`);
  }

  async releaseConnection(): Promise<void> {
    // Connections are views of the one engine.
  }

  async destroy(): Promise<void> {
    await this.#engine.close();
  }
}

class EngineConnection implements DatabaseConnection {
  inTransaction = false;
  readonly #engine: SqliteEngine;

  constructor(engine: SqliteEngine) {
    this.#engine = engine;
  }

  async executeQuery<R>(compiled: CompiledQuery): Promise<QueryResult<R>> {
    const { sql, parameters, query } = compiled;
    let result: SqliteResult;
    try {
      result = this.inTransaction
        ? this.#engine.runInTransaction(sql, parameters)
        : await this.#engine.run(sql, parameters, SelectQueryNode.is(query));
    } catch (error) {
      throw toDatabaseError(error);
    }
    const rows = result.rows as R[];
    if (result.insertId === undefined) return { rows, numAffectedRows: result.changes ?? 0n };
    return { rows, numAffectedRows: result.changes ?? 0n, insertId: result.insertId };
  }

  async *streamQuery<R>(compiled: CompiledQuery): AsyncIterableIterator<QueryResult<R>> {
    const { sql, parameters } = compiled;
    for await (const row of this.#engine.iterate(sql, parameters, this.inTransaction)) {
      yield { rows: [row as R] };
    }
  }
}

// SQLite reports a full disk where it writes: at the commit, as a rule.
function rethrow(error: unknown): never {
  throw toDatabaseError(error);
}

function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
