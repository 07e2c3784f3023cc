// SQLite by `node:sqlite`: one writing and one reading handle, queued writers, commits synced in groups off the thread.
import type { DatabaseSync } from "node:sqlite";
import { locateExclusively } from "../files/index.ts";
import { DatabaseError, readDatabaseError } from "./error.ts";
import { findJournal, openHandle } from "./sqlite-file.ts";
import { SqliteGuard } from "./sqlite-guard.ts";
import type { SqliteHandle, SqliteResult } from "./sqlite-handle.ts";
import { SqliteJournal } from "./sqlite-journal.ts";
import { tooManyWaiting, WriterTurns } from "./writer-turns.ts";

/** Options of {@link SqliteEngine}. */
export interface SqliteOptions {
  /** Path of the file, or `:memory:`. Missing folders are created with mode 0700, a missing file with 0600. */
  path: string;
  /** `full` (default): commits survive a power failure. `normal`: they only survive a crash of the process. */
  synchronous?: "full" | "normal";
  /** Maximum wait of a writer for other writers, including other processes, in ms. Default 5 000. */
  busyTimeoutMs?: number;
  /** Maximum number of writers waiting for their turn or the disk; further ones fail with `busy`. Default 10 000. */
  waitingMax?: number;
  /**
   * Processes that use the file. `one`: only this one; others cannot open it meanwhile. `guests`: this one, and now and then
   * a command with `many`. `many` (default): several, which write it all the time; its pages have no checksums then.
   */
  processes?: "one" | "guests" | "many";
  /** Bytes that are kept on the disk (`FILE.reserve`) and given up when it is full, so that some commits succeed. Default 0. */
  reserveBytes?: number;
  /** True starts without what the file has lost; by default that is refused. */
  acceptLoss?: boolean;
  /** Number of prepared statements cached per handle. Default 200. */
  statementsMax?: number;
}

interface PendingWrite {
  sql: string;
  parameters: readonly unknown[];
  resolve: (result: SqliteResult) => void;
  reject: (error: unknown) => void;
}

const GROUP_MAX = 500;
// A handle blocks the thread while it waits for another process, so it waits briefly and the engine retries.
const BLOCKING_WAIT_MS = 10;
const STANDALONE = /^\s*(?:vacuum|pragma|attach|detach)\b/i;
const TRANSACTION_CONTROL = /^\s*(?:begin|commit|end|rollback|savepoint|release)\b/i;
const PLAIN_SELECT = /^\s*select\b/i;

/**
 * An open SQLite database. Reads outside a transaction run immediately on the reading handle and see the last commit.
 * Transactions use the writing handle exclusively, in the order of arrival. Writes outside a transaction that arrive
 * together share one transaction; each succeeds or fails on its own.
 *
 * The next writer starts as soon as a commit is written. The results of the commit, and of reads that saw it, are
 * returned only when it is on disk, so this process never reports data that a power failure could still undo. After a
 * failed sync all requests are rejected: the state of the file is unknown until it is reopened.
 */
export class SqliteEngine {
  readonly #options: Required<SqliteOptions>;
  readonly #writer: SqliteHandle;
  readonly #reader: SqliteHandle | undefined;
  /** Undefined if commits need not survive a power failure. */
  readonly #journal: SqliteJournal | undefined;
  /** Undefined in memory. */
  readonly #guard: SqliteGuard | undefined;
  readonly #turns: WriterTurns;
  #group: PendingWrite[] = [];
  #flushing: Promise<void> | undefined;
  #hasWritten = false;
  #closing: Promise<void> | undefined;
  #closed = false;

  constructor(options: SqliteOptions) {
    this.#options = {
      synchronous: "full",
      busyTimeoutMs: 5_000,
      waitingMax: 10_000,
      statementsMax: 200,
      processes: "many",
      reserveBytes: 0,
      acceptLoss: false,
      ...options,
    };
    this.#turns = new WriterTurns(this.#options);
    const { path, synchronous, statementsMax, processes } = this.#options;
    const inMemory = path === ":memory:";
    if (!inMemory) this.#guard = new SqliteGuard(this.#options);
    const isAlone = processes === "one" && !inMemory;
    const location = isAlone ? locateExclusively(path) : path;
    const opened: SqliteHandle[] = [];
    try {
      this.#writer = openHandle(path, location, statementsMax, [
        // Changing the journal mode requires exclusive access for a moment, so the initial timeout is longer.
        `pragma busy_timeout = ${this.#options.busyTimeoutMs}`,
        "pragma journal_mode = wal",
        // Commits are only written; `SqliteJournal` syncs them before they are acknowledged.
        "pragma synchronous = normal",
        "pragma foreign_keys = on",
        "pragma journal_size_limit = 67108864",
        // A checkpoint syncs on this thread: four times the default pages for a quarter of the stalls.
        "pragma wal_autocheckpoint = 4000",
        `pragma busy_timeout = ${BLOCKING_WAIT_MS}`,
      ]);
      opened.push(this.#writer);
      if (inMemory) return;
      this.#reader = openHandle(path, location, statementsMax, [
        `pragma busy_timeout = ${BLOCKING_WAIT_MS}`,
        "pragma query_only = on",
      ]);
      opened.push(this.#reader);
      const journal = findJournal(this.#writer.database);
      this.#guard?.attach(this.#writer.database, location);
      if (synchronous === "full")
        this.#journal = new SqliteJournal(journal, () => this.#guard!.captureCommits());
    } catch (error) {
      for (const { database } of opened.toReversed()) database.close();
      this.#guard?.release();
      throw error;
    }
  }

  /** The fault of the file or its disk, once that is known; for health checks. */
  get fault(): string | undefined {
    return this.#guard?.damage ?? this.#guard?.fullDisk;
  }

  /** Notes damage that a caller has found. */
  noteDamage(fault: string): void {
    this.#guard?.noteDamage(fault);
  }

  /** Runs a statement outside a transaction. */
  async run(sql: string, parameters: readonly unknown[], isSelect: boolean): Promise<SqliteResult> {
    this.#checkUse(sql);
    if (this.#reader !== undefined && (isSelect || PLAIN_SELECT.test(sql))) {
      const result = this.#execute(this.#reader, sql, parameters);
      await this.#settle();
      return result;
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

  /** Iterates over the rows of a query. */
  async *iterate(
    sql: string,
    parameters: readonly unknown[],
    inTransaction: boolean,
  ): AsyncGenerator {
    this.#checkUse(sql);
    const handle = inTransaction ? this.#writer : this.#reader;
    if (handle === undefined) {
      // An in-memory database has only one handle, which may be in a transaction.
      yield* (await this.run(sql, parameters, true)).rows;
      return;
    }
    let isSettled = inTransaction;
    try {
      for (const row of handle.iterate(sql, parameters)) {
        // All rows belong to the snapshot of the first one.
        if (!isSettled) await this.#settle();
        isSettled = true;
        yield row;
      }
    } catch (error) {
      throw this.#noteError(error);
    }
  }

  /** Waits for the writing handle and begins a write transaction. */
  async begin(): Promise<void> {
    await this.#lock();
    try {
      await this.#beginImmediate();
    } catch (error) {
      this.#turns.pass();
      throw error;
    }
  }

  /** Runs a statement in the transaction. */
  runInTransaction(sql: string, parameters: readonly unknown[]): SqliteResult {
    this.#checkUse(sql);
    this.#checkTransaction();
    this.#hasWritten ||= !PLAIN_SELECT.test(sql);
    return this.#execute(this.#writer, sql, parameters);
  }

  /** Runs a savepoint statement in the transaction. */
  savepoint(sql: string): void {
    this.#checkTransaction();
    this.#writer.database.exec(sql);
  }

  /** Returns the number of rows that violate foreign keys, as seen by the transaction. */
  checkForeignKeys(): number {
    return this.#writer.database.prepare("pragma foreign_key_check").all().length;
  }

  /**
   * Commits, starts the next writer, and waits for the disk. If the commit fails, the transaction is rolled back and
   * the error thrown; if the sync fails, the state of the transaction is unknown until the file is reopened.
   */
  async commit(): Promise<void> {
    if (this.#closed) throw closedError();
    try {
      this.#writer.database.exec("commit");
      if (this.#hasWritten) this.#noteCommit();
    } catch (error) {
      this.#rollbackIfOpen();
      throw this.#noteError(error);
    } finally {
      this.#turns.pass();
    }
    await this.#settle();
  }

  /** Rolls back; does nothing if SQLite has already done so. */
  rollback(): void {
    if (this.#closed) return;
    try {
      this.#rollbackIfOpen();
    } finally {
      this.#turns.pass();
    }
  }

  /** Runs `work` exclusively on the writing handle, outside a transaction. */
  async exclusive<T>(work: (database: DatabaseSync) => Promise<T>): Promise<T> {
    await this.#lock();
    let result: T;
    try {
      result = await work(this.#writer.database);
      this.#noteCommit();
    } finally {
      this.#turns.pass();
    }
    await this.#settle();
    return result;
  }

  /** Waits for pending work, up to `busyTimeoutMs` for an open transaction (which is then rolled back), and closes. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    while (this.#flushing !== undefined) await this.#flushing;
    const idle = await this.#lock().then(
      () => true,
      () => false,
    );
    this.#closed = true;
    await this.#guard?.stop();
    await this.#journal?.close();
    this.#reader?.database.close();
    if (idle) this.#writer.database.exec("pragma optimize");
    this.#guard?.prepareClose();
    this.#writer.database.close();
    this.#guard?.release();
    this.#turns.end();
  }

  // Retries for up to `busyTimeoutMs` while another process holds the lock.
  async #beginImmediate(): Promise<void> {
    const deadline = performance.now() + this.#options.busyTimeoutMs;
    for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 50)) {
      try {
        this.#writer.database.exec("begin immediate");
        this.#hasWritten = false;
        return;
      } catch (error) {
        if (readDatabaseError(error).kind !== "busy" || performance.now() >= deadline)
          throw this.#noteError(error);
      }
      await new Promise((resolve) => setTimeout(resolve, waitMs * (0.5 + Math.random() / 2)));
    }
  }

  #execute(handle: SqliteHandle, sql: string, parameters: readonly unknown[]): SqliteResult {
    try {
      return handle.execute(sql, parameters);
    } catch (error) {
      throw this.#noteError(error);
    }
  }

  // In the log already, and not yet acknowledged.
  #noteCommit(): void {
    this.#guard?.noteCommit();
    this.#journal?.noteCommit();
  }

  #noteError(error: unknown): unknown {
    this.#guard?.noteError(error);
    return error;
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
    const group = this.#group.splice(0, GROUP_MAX);
    try {
      const settlers = group.map((write) => this.#runGrouped(write));
      await this.#commitGroup(settlers);
    } catch (error) {
      for (const write of group) write.reject(error);
    }
  }

  // A failed statement is rolled back on its own, unless SQLite rolled back the whole transaction.
  #runGrouped(write: PendingWrite): () => void {
    try {
      const result = this.#execute(this.#writer, write.sql, write.parameters);
      return () => write.resolve(result);
    } catch (error) {
      return () => write.reject(error);
    }
  }

  async #commitGroup(settlers: (() => void)[]): Promise<void> {
    try {
      this.#checkTransaction();
      this.#writer.database.exec("commit");
      this.#noteCommit();
    } catch (error) {
      this.#rollbackIfOpen();
      throw this.#noteError(error);
    } finally {
      this.#turns.pass();
    }
    await this.#settle();
    for (const settle of settlers) settle();
  }

  // Synchronous if everything is already on disk.
  #settle(): Promise<void> | undefined {
    return this.#journal === undefined || this.#journal.pending === 0
      ? undefined
      : this.#journal.settle();
  }

  #checkUse(sql: string): void {
    if (this.#closed) throw closedError();
    if (this.#journal?.failure !== undefined) throw this.#journal.failure;
    if (TRANSACTION_CONTROL.test(sql)) {
      throw new DatabaseError(
        "other",
        "transactions must use Kysely's methods, not SQL statements",
      );
    }
  }

  async #lock(): Promise<void> {
    if (this.#closed) throw closedError();
    if ((this.#journal?.pending ?? 0) > this.#options.waitingMax) throw tooManyWaiting();
    await this.#turns.take();
    if (this.#closed) throw closedError();
  }

  // Some errors, such as a full disk, end a transaction implicitly; further statements would be committed one by one.
  #checkTransaction(): void {
    if (!this.#writer.database.isTransaction) {
      throw new DatabaseError("unavailable", "the database rolled back the transaction");
    }
  }

  #rollbackIfOpen(): void {
    if (this.#writer.database.isTransaction) this.#writer.database.exec("rollback");
  }
}

function closedError(): DatabaseError {
  return new DatabaseError("unavailable", "the database is closed");
}
