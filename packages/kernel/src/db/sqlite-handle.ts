// A connection of `node:sqlite` with its prepared statements and value conversions.
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";

/** Result of a statement. */
export interface SqliteResult {
  rows: Record<string, unknown>[];
  changes: bigint | undefined;
  insertId: bigint | undefined;
}

interface Prepared {
  statement: StatementSync;
  returnsRows: boolean;
}

/** A connection that caches its `statementsMax` most recently used statements. */
export class SqliteHandle {
  readonly database: DatabaseSync;
  readonly #statementsMax: number;
  readonly #statements = new Map<string, Prepared>();

  /** Opens the file (or `:memory:`) and runs the pragmas. */
  constructor(path: string, statementsMax: number, pragmas: readonly string[]) {
    this.database = new DatabaseSync(path, { enableForeignKeyConstraints: true });
    this.#statementsMax = statementsMax;
    for (const pragma of pragmas) this.database.exec(pragma);
  }

  /** Runs a statement and returns all rows. */
  execute(sql: string, parameters: readonly unknown[]): SqliteResult {
    const { statement, returnsRows } = this.#prepare(sql);
    const values = toSqlite(parameters);
    if (returnsRows) {
      const rows = statement.all(...values).map((row) => ({ ...row }));
      return { rows, changes: BigInt(rows.length), insertId: undefined };
    }
    const { changes, lastInsertRowid } = statement.run(...values);
    return { rows: [], changes: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  }

  /** Iterates over the rows of a query. */
  *iterate(sql: string, parameters: readonly unknown[]): Generator<Record<string, unknown>> {
    // Not cached: the statement could be run again during the iteration.
    const rows = this.database.prepare(sql).iterate(...toSqlite(parameters));
    for (const row of rows) yield { ...row };
  }

  #prepare(sql: string): Prepared {
    const known = this.#statements.get(sql);
    if (known !== undefined) {
      this.#statements.delete(sql);
      this.#statements.set(sql, known);
      return known;
    }
    const statement = this.database.prepare(sql);
    const prepared = { statement, returnsRows: statement.columns().length > 0 };
    if (this.#statements.size >= this.#statementsMax) {
      for (const oldest of this.#statements.keys()) {
        this.#statements.delete(oldest);
        break;
      }
    }
    this.#statements.set(sql, prepared);
    return prepared;
  }
}

function toSqlite(parameters: readonly unknown[]): SQLInputValue[] {
  return parameters.map((value, index) => {
    if (typeof value === "boolean") return value ? 1 : 0;
    if (isStorable(value)) return value;
    throw new TypeError(`parameter ${index + 1}: ${typeof value} cannot be stored`);
  });
}

function isStorable(value: unknown): value is SQLInputValue {
  return (
    typeof value === "string" ||
    typeof value === "number" ||
    typeof value === "bigint" ||
    value === null ||
    value instanceof Uint8Array
  );
}
