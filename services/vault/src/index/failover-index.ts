// The event loop's connection to an index with several copies: if one cannot be read, the next one is used.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { IndexConnection, openIndexReader } from "./schema.ts";

/** Reads from one copy at a time. */
export class FailoverIndex extends IndexConnection {
  /** Called if a copy cannot be read. Must call `switchTo` before it returns true. */
  onFailure: () => boolean = () => false;
  #path: string;

  constructor(path: string) {
    super(openDatabase(path));
    this.#path = path;
  }

  get path(): string {
    return this.#path;
  }

  /** Continues with another copy. */
  switchTo(path: string): void {
    this.replace(openDatabase(path));
    this.#path = path;
  }

  override leaveDamaged(): boolean {
    return this.onFailure();
  }

  override sql(text: string, asArrays = false): StatementSync {
    const again = <Result>(work: (statement: StatementSync) => Result): Result => {
      try {
        return work(super.sql(text, asArrays));
      } catch (error) {
        if (!isDiskFailure(error) || !this.onFailure()) throw error;
        return work(super.sql(text, asArrays));
      }
    };
    type Values = Parameters<StatementSync["get"]>;
    // Only reads are used here, and `iterate` returns few rows: they are read immediately.
    return {
      get: (...values: Values) => again((statement) => statement.get(...values)),
      all: (...values: Values) => again((statement) => statement.all(...values)),
      iterate: (...values: Values) => again((statement) => statement.all(...values)).values(),
    } as unknown as StatementSync;
  }
}

// SQLITE_IOERR, SQLITE_CORRUPT, SQLITE_CANTOPEN, SQLITE_NOTADB (https://sqlite.org/rescode.html)
const DISK_FAILURES = new Set([10, 11, 14, 26]);

/** True if an error means that the file of the index cannot be read. */
function isDiskFailure(error: unknown): boolean {
  const code = (error as { errcode?: unknown } | undefined)?.errcode;
  return typeof code === "number" && DISK_FAILURES.has(code & 0xff);
}

function openDatabase(path: string): DatabaseSync {
  return openIndexReader(path).database;
}
