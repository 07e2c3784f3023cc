// SQLite on `node:sqlite`: one writing and one reading handle, writers in line, commits synced together off the thread.
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { DatabaseError, readDatabaseError } from "./error.ts";
import { SqliteHandle, type SqliteResult } from "./sqlite-handle.ts";
import { SqliteJournal } from "./sqlite-journal.ts";

/** How a SQLite file is opened. */
export interface SqliteOptions {
  /** The file, or `:memory:`. Missing folders are made (0700), a missing file too (0600). */
  path: string;
  /** `full` (default): a commit survives a power cut. `normal`: it survives a crash of the process only. */
  synchronous?: "full" | "normal";
  /** How long a writer waits for others, in this process and in others, in ms. Default 5 000. */
  busyTimeoutMs?: number;
  /** Writers that may wait for their turn or for the disk; one more fails as `busy`. Default 10 000. */
  waitingMax?: number;
  /** Prepared statements kept per handle. Default 200. */
  statementsMax?: number;
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
 * arrive together share one transaction; each fails or succeeds for itself.
 *
 * The next writer goes on as soon as a commit is written; who committed, and who has read the outcome, gets an answer
 * when it is on the disk. So nobody in this process is told what a power cut could still take back. After a sync that
 * failed nothing is answered any more: what the file holds is known again when it is opened anew.
 */
export class SqliteEngine {
  readonly #options: Required<SqliteOptions>;
  readonly #writer: SqliteHandle;
  readonly #reader: SqliteHandle | undefined;
  /** Undefined where commits need not survive a power cut. */
  readonly #journal: SqliteJournal | undefined;
  readonly #waiters: Waiter[] = [];
  #group: PendingWrite[] = [];
  #flushing: Promise<void> | undefined;
  #locked = false;
  #hasWritten = false;
  #closing: Promise<void> | undefined;
  #closed = false;

  constructor(options: SqliteOptions) {
    this.#options = {
      synchronous: "full",
      busyTimeoutMs: 5_000,
      waitingMax: 10_000,
      statementsMax: 200,
      ...options,
    };
    const { path, synchronous, statementsMax } = this.#options;
    const inMemory = path === ":memory:";
    if (!inMemory) createFile(path);
    this.#writer = new SqliteHandle(path, statementsMax, [
      // Changing the journal mode needs the file alone for a moment: worth a longer wait at the start.
      `pragma busy_timeout = ${this.#options.busyTimeoutMs}`,
      "pragma journal_mode = wal",
      // Commits are only written; `SqliteJournal` syncs them before anybody hears of them.
      "pragma synchronous = normal",
      "pragma foreign_keys = on",
      "pragma journal_size_limit = 67108864",
      // A checkpoint syncs on this thread: four times the usual pages, for a quarter of the stalls.
      "pragma wal_autocheckpoint = 4000",
      `pragma busy_timeout = ${BLOCKING_WAIT_MS}`,
    ]);
    this.#reader = inMemory
      ? undefined
      : new SqliteHandle(path, statementsMax, [
          `pragma busy_timeout = ${BLOCKING_WAIT_MS}`,
          "pragma query_only = on",
        ]);
    if (!inMemory && synchronous === "full") {
      this.#journal = new SqliteJournal(findJournal(this.#writer.database));
    }
  }

  /** Runs one statement outside of any transaction. */
  async run(sql: string, parameters: readonly unknown[], isSelect: boolean): Promise<SqliteResult> {
    this.#checkUse(sql);
    if (this.#reader !== undefined && (isSelect || PLAIN_SELECT.test(sql))) {
      const result = this.#reader.execute(sql, parameters);
      await this.#settle();
      return result;
    }
    if (STANDALONE.test(sql)) {
      return this.exclusive(async () => this.#writer.execute(sql, parameters));
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
    let isSettled = inTransaction;
    for (const row of handle.iterate(sql, parameters)) {
      // All rows are of the moment when the first was read.
      if (!isSettled) await this.#settle();
      isSettled = true;
      yield row;
    }
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
    this.#hasWritten ||= !PLAIN_SELECT.test(sql);
    return this.#writer.execute(sql, parameters);
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

  /**
   * Commits, lets the next writer go on, and waits for the disk. When the commit fails the transaction is rolled back and
   * the error thrown; when the sync fails, nobody knows before the file is opened again.
   */
  async commit(): Promise<void> {
    if (this.#closed) throw closedError();
    try {
      this.#writer.database.exec("commit");
      if (this.#hasWritten) this.#journal?.noteCommit();
    } catch (error) {
      this.#rollbackIfOpen();
      throw error;
    } finally {
      this.#unlock();
    }
    await this.#settle();
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
    let result: T;
    try {
      result = await work(this.#writer.database);
      this.#journal?.noteCommit();
    } finally {
      this.#unlock();
    }
    await this.#settle();
    return result;
  }

  /** Waits for what is under way, at most `busyTimeoutMs` for an open transaction (which is then undone), and closes. */
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
    await this.#journal?.close();
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
        this.#hasWritten = false;
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
    const group = this.#group.splice(0, GROUP_MAX);
    try {
      const settlers = group.map((write) => this.#runGrouped(write));
      await this.#commitGroup(settlers);
    } catch (error) {
      for (const write of group) write.reject(error);
    }
  }

  // A failed statement undoes itself alone, unless the error was such that SQLite gave up the whole transaction.
  #runGrouped(write: PendingWrite): () => void {
    try {
      const result = this.#writer.execute(write.sql, write.parameters);
      return () => write.resolve(result);
    } catch (error) {
      return () => write.reject(error);
    }
  }

  async #commitGroup(settlers: (() => void)[]): Promise<void> {
    try {
      this.#checkTransaction();
      this.#writer.database.exec("commit");
      this.#journal?.noteCommit();
    } catch (error) {
      this.#rollbackIfOpen();
      throw error;
    } finally {
      this.#unlock();
    }
    await this.#settle();
    for (const settle of settlers) settle();
  }

  // Without a step through the queue of promises where everything is on the disk already.
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
        "transactions are begun and ended through Kysely, not as SQL",
      );
    }
  }

  async #lock(): Promise<void> {
    if (this.#closed) throw closedError();
    if ((this.#journal?.pending ?? 0) > this.#options.waitingMax) throw tooManyWaiting();
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
    if (this.#closed) throw closedError();
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
  // SQLite would make it readable by everyone; the WAL takes over the mode of the file. A file that is there is left
  // alone: closing it here would drop the locks that another engine in this process has on it.
  try {
    closeSync(openSync(path, "ax", 0o600));
  } catch (error) {
    if (!isThere(error)) throw error;
  }
}

// Where SQLite keeps the log, links resolved; a first read makes it.
function findJournal(database: DatabaseSync): string {
  database.prepare("select 1 from sqlite_schema").all();
  const { file } = database.prepare("select file from pragma_database_list").get()!;
  return `${String(file)}-wal`;
}

function tooManyWaiting(): DatabaseError {
  return new DatabaseError("busy", "too many writers wait for the database");
}

function closedError(): DatabaseError {
  return new DatabaseError("unavailable", "the database is closed");
}

function isThere(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EEXIST";
}
