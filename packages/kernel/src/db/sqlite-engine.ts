// SQLite on `node:sqlite`: one writing and one reading handle, writers in line, single writes committed together.
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { DatabaseError, readDatabaseError } from "./error.ts";

/** How a SQLite file is opened. */
export interface SqliteOptions {
  /** The file, or `:memory:`. Missing folders are made (0700), a missing file too (0600). */
  path: string;
  /** `full` (default): a commit survives a power cut. `normal`: it survives a crash of the process only. */
  synchronous?: "full" | "normal";
  /** How long a writer waits for others, in this process and in others, in ms. Default 5 000. */
  busyTimeoutMs?: number;
  /** Writers that may wait; one more fails as `busy`. Default 10 000. */
  waitingMax?: number;
  /** Prepared statements kept per handle. Default 200. */
  statementsMax?: number;
}

/** What a statement returned. */
export interface SqliteResult {
  rows: Record<string, unknown>[];
  changes: bigint | undefined;
  insertId: bigint | undefined;
}

interface Handle {
  database: DatabaseSync;
  statements: Map<string, StatementSync>;
}

interface PendingWrite {
  sql: string;
  parameters: readonly unknown[];
  resolve: (result: SqliteResult) => void;
  reject: (error: unknown) => void;
}

interface Waiter {
  grant: () => void;
  timer: NodeJS.Timeout;
}

const GROUP_MAX = 500;
// A handle blocks the thread while it waits for another process, so it waits shortly and we come back.
const BLOCKING_WAIT_MS = 10;
const STANDALONE = /^\s*(?:vacuum|pragma|attach|detach)\b/i;
const TRANSACTION_CONTROL = /^\s*(?:begin|commit|end|rollback|savepoint|release)\b/i;
const PLAIN_SELECT = /^\s*select\b/i;

/**
 * One open SQLite database. Reads outside of a transaction run at once on the reading handle and see the last commit.
 * Transactions have the writing handle to themselves, first come first served. Writes outside of a transaction that
 * arrive together share one transaction, so one fsync acknowledges all of them; each fails or succeeds for itself.
 */
export class SqliteEngine {
  readonly #options: Required<SqliteOptions>;
  readonly #writer: Handle;
  readonly #reader: Handle | undefined;
  readonly #waiters: Waiter[] = [];
  #group: PendingWrite[] = [];
  #flushing: Promise<void> | undefined;
  #locked = false;
  #closed = false;

  constructor(options: SqliteOptions) {
    this.#options = {
      synchronous: "full",
      busyTimeoutMs: 5_000,
      waitingMax: 10_000,
      statementsMax: 200,
      ...options,
    };
    const { path, synchronous } = this.#options;
    const inMemory = path === ":memory:";
    if (!inMemory) createFile(path);
    this.#writer = openHandle(path, [
      // Changing the journal mode needs the file alone for a moment: worth a longer wait at the start.
      `pragma busy_timeout = ${this.#options.busyTimeoutMs}`,
      "pragma journal_mode = wal",
      `pragma synchronous = ${synchronous}`,
      "pragma foreign_keys = on",
      "pragma journal_size_limit = 67108864",
      `pragma busy_timeout = ${BLOCKING_WAIT_MS}`,
    ]);
    this.#reader = inMemory
      ? undefined
      : openHandle(path, [`pragma busy_timeout = ${BLOCKING_WAIT_MS}`, "pragma query_only = on"]);
  }

  /** Runs one statement outside of any transaction. */
  async run(sql: string, parameters: readonly unknown[], isSelect: boolean): Promise<SqliteResult> {
    this.#checkUse(sql);
    if (this.#reader !== undefined && (isSelect || PLAIN_SELECT.test(sql))) {
      return this.#execute(this.#reader, sql, parameters);
    }
    if (STANDALONE.test(sql)) {
      return this.exclusive(async () => this.#execute(this.#writer, sql, parameters));
    }
    if (this.#group.length >= this.#options.waitingMax) throw tooManyWaiting();
    return new Promise((resolve, reject) => {
      this.#group.push({ sql, parameters, resolve, reject });
      this.#scheduleGroup();
    });
  }

  /** Rows of a query one by one. */
  async *iterate(
    sql: string,
    parameters: readonly unknown[],
    inTransaction: boolean,
  ): AsyncGenerator {
    this.#checkUse(sql);
    const handle = inTransaction ? this.#writer : this.#reader;
    if (handle === undefined) {
      // In memory there is one handle only, and it may be in the midst of somebody's transaction.
      yield* (await this.run(sql, parameters, true)).rows;
      return;
    }
    // A cached statement could be run again while this one is half read.
    const rows = handle.database.prepare(sql).iterate(...toSqlite(parameters));
    for (const row of rows) yield { ...row };
  }

  /** Waits for the writing handle and begins a transaction that writes from its start. */
  async begin(): Promise<void> {
    await this.#lock();
    try {
      await this.#beginImmediate();
    } catch (error) {
      this.#unlock();
      throw error;
    }
  }

  /** Runs one statement inside the transaction that `begin` began. */
  runInTransaction(sql: string, parameters: readonly unknown[]): SqliteResult {
    this.#checkUse(sql);
    this.#checkTransaction();
    return this.#execute(this.#writer, sql, parameters);
  }

  /** A savepoint statement inside the transaction. */
  savepoint(sql: string): void {
    this.#checkTransaction();
    this.#writer.database.exec(sql);
  }

  /** How many rows, seen from inside the transaction, refer to rows that do not exist. */
  checkForeignKeys(): number {
    return this.#writer.database.prepare("pragma foreign_key_check").all().length;
  }

  /** Commits; when that fails the transaction is rolled back and the error thrown. */
  commit(): void {
    try {
      this.#writer.database.exec("commit");
    } catch (error) {
      this.#rollbackIfOpen();
      throw error;
    } finally {
      this.#unlock();
    }
  }

  /** Rolls back, also where SQLite has done so by itself already. */
  rollback(): void {
    if (this.#closed) return;
    try {
      this.#rollbackIfOpen();
    } finally {
      this.#unlock();
    }
  }

  /** Runs `work` alone on the writing handle, outside of a transaction. */
  async exclusive<T>(work: (database: DatabaseSync) => Promise<T>): Promise<T> {
    await this.#lock();
    try {
      return await work(this.#writer.database);
    } finally {
      this.#unlock();
    }
  }

  /** Waits for what is under way, at most `busyTimeoutMs` for an open transaction (which is then undone), and closes. */
  async close(): Promise<void> {
    if (this.#closed) return;
    while (this.#flushing !== undefined) await this.#flushing;
    const idle = await this.#lock().then(
      () => true,
      () => false,
    );
    if (this.#closed) return;
    this.#closed = true;
    this.#reader?.database.close();
    if (idle) this.#writer.database.exec("pragma optimize");
    this.#writer.database.close();
    for (const waiter of this.#waiters.splice(0)) {
      clearTimeout(waiter.timer);
      waiter.grant();
    }
  }

  // Comes back until `busyTimeoutMs` has passed while another process holds the lock.
  async #beginImmediate(): Promise<void> {
    const deadline = performance.now() + this.#options.busyTimeoutMs;
    for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 50)) {
      try {
        this.#writer.database.exec("begin immediate");
        return;
      } catch (error) {
        if (readDatabaseError(error).kind !== "busy" || performance.now() >= deadline) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, waitMs * (0.5 + Math.random() / 2)));
    }
  }

  #scheduleGroup(): void {
    this.#flushing ??= new Promise((resolve) => {
      setImmediate(() => {
        void this.#flushGroup().then(() => {
          this.#flushing = undefined;
          if (this.#group.length > 0) this.#scheduleGroup();
          resolve();
        });
      });
    });
  }

  async #flushGroup(): Promise<void> {
    try {
      await this.begin();
    } catch (error) {
      for (const write of this.#group.splice(0)) write.reject(error);
      return;
    }
    try {
      const group = this.#group.splice(0, GROUP_MAX);
      const settlers = group.map((write) => this.#runGrouped(write));
      this.#commitGroup(group, settlers);
    } finally {
      this.#unlock();
    }
  }

  // A failed statement undoes itself alone, unless the error was such that SQLite gave up the whole transaction.
  #runGrouped(write: PendingWrite): () => void {
    try {
      const result = this.#execute(this.#writer, write.sql, write.parameters);
      return () => write.resolve(result);
    } catch (error) {
      return () => write.reject(error);
    }
  }

  #commitGroup(group: PendingWrite[], settlers: (() => void)[]): void {
    try {
      this.#checkTransaction();
      this.#writer.database.exec("commit");
    } catch (error) {
      this.#rollbackIfOpen();
      for (const write of group) write.reject(error);
      return;
    }
    for (const settle of settlers) settle();
  }

  #execute(handle: Handle, sql: string, parameters: readonly unknown[]): SqliteResult {
    const statement = this.#prepare(handle, sql);
    const values = toSqlite(parameters);
    if (statement.columns().length > 0) {
      const rows = statement.all(...values).map((row) => ({ ...row }));
      return { rows, changes: BigInt(rows.length), insertId: undefined };
    }
    const { changes, lastInsertRowid } = statement.run(...values);
    return { rows: [], changes: BigInt(changes), insertId: BigInt(lastInsertRowid) };
  }

  #prepare(handle: Handle, sql: string): StatementSync {
    const known = handle.statements.get(sql);
    if (known !== undefined) {
      handle.statements.delete(sql);
      handle.statements.set(sql, known);
      return known;
    }
    const statement = handle.database.prepare(sql);
    if (handle.statements.size >= this.#options.statementsMax) {
      for (const oldest of handle.statements.keys()) {
        handle.statements.delete(oldest);
        break;
      }
    }
    handle.statements.set(sql, statement);
    return statement;
  }

  #checkUse(sql: string): void {
    if (this.#closed) throw new DatabaseError("unavailable", "the database is closed");
    if (TRANSACTION_CONTROL.test(sql)) {
      throw new DatabaseError(
        "other",
        "transactions are begun and ended through Kysely, not as SQL",
      );
    }
  }

  async #lock(): Promise<void> {
    if (this.#closed) throw new DatabaseError("unavailable", "the database is closed");
    if (!this.#locked) {
      this.#locked = true;
      return;
    }
    if (this.#waiters.length >= this.#options.waitingMax) throw tooManyWaiting();
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(new DatabaseError("busy", "another transaction holds the database for too long"));
      }, this.#options.busyTimeoutMs);
      const waiter: Waiter = { grant: resolve, timer };
      this.#waiters.push(waiter);
    });
    if (this.#closed) throw new DatabaseError("unavailable", "the database is closed");
  }

  #unlock(): void {
    const next = this.#waiters.shift();
    if (next === undefined) {
      this.#locked = false;
      return;
    }
    clearTimeout(next.timer);
    next.grant();
  }

  // A full disk, for one, ends a transaction behind our back; what followed would be committed piece by piece.
  #checkTransaction(): void {
    if (!this.#writer.database.isTransaction) {
      throw new DatabaseError("unavailable", "the database gave up the transaction");
    }
  }

  #rollbackIfOpen(): void {
    if (this.#writer.database.isTransaction) this.#writer.database.exec("rollback");
  }
}

function createFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // SQLite would make it readable by everyone; the WAL takes over the mode of the file.
  closeSync(openSync(path, "a", 0o600));
}

function openHandle(path: string, pragmas: readonly string[]): Handle {
  const database = new DatabaseSync(path, { enableForeignKeyConstraints: true });
  for (const pragma of pragmas) database.exec(pragma);
  return { database, statements: new Map() };
}

function tooManyWaiting(): DatabaseError {
  return new DatabaseError("busy", "too many writers wait for the database");
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
