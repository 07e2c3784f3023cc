// Questions in SQL, and their answers.

/** A value of SQLite. Integers that a number cannot hold exactly are bigint. */
export type SqlValue = null | number | bigint | string | Uint8Array;

/** The beginning of a text or a blob that is longer than `shownBytes`. */
export interface SqlCut {
  readonly head: string | Uint8Array;
  /** Size of the whole value in bytes; of a text in UTF-8. */
  readonly bytes: number;
}

/** Limits of a question. Those of rows and bytes cut the answer, the others end the question. */
export interface SqlLimits {
  readonly rows: number;
  /** Size of the values of the answer. */
  readonly bytes: number;
  /** From the start of the statement to the last row, with the time in which tables are filled; a child's own start is not part of it. */
  readonly timeMs: number;
  /** Memory of the statement and its answer, in addition to 72 MiB or more of the process. Checked 40 times a second. */
  readonly memoryBytes: number;
  /** Size of a value, also of one that is only computed, and of a row. */
  readonly valueBytes: number;
  readonly sqlBytes: number;
  /** Size from which values of the answer are cut. Default: they are whole. */
  readonly shownBytes?: number;
}

/** A view of a file that questions may read. */
export interface SqlView {
  readonly name: string;
  /** Trusted text: a SELECT on the tables of the file, which questions cannot read otherwise. */
  readonly select: string;
}

/** A table that questions may read, with rows that are fetched if the statement reads it. */
export interface SqlTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** The rows, in batches. An error of it is that of the question. */
  rows():
    | AsyncIterable<readonly (readonly SqlValue[])[]>
    | Iterable<readonly (readonly SqlValue[])[]>;
}

/**
 * The data of a question.
 *
 * - `views`: a SQLite file, of which only the views can be read. `isSnapshot` says that nothing changes the file and its log
 *   during the question: they are read without locks.
 * - `tables`: an empty database, filled with the tables that the statement reads.
 * - `file`: all tables of a SQLite file, with plans (`EXPLAIN`), recursion, and the pragmas that describe a schema.
 * - `postgres`: what the role of the URL may read, in a transaction that cannot write and is rolled back.
 */
export type SqlDatabase =
  | {
      readonly kind: "views";
      readonly path: string;
      readonly isSnapshot: boolean;
      readonly views: readonly SqlView[];
    }
  | { readonly kind: "tables"; readonly tables: readonly SqlTable[] }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string };

/** A change: one INSERT, UPDATE or DELETE, of the kinds `file` and `postgres`. */
export interface SqlWrite {
  /** Number of rows that must be changed, otherwise nothing is; undefined changes nothing, and only counts. */
  readonly expected?: number | undefined;
}

/** A question: one SELECT, or a change. */
export interface SqlQuestion {
  /** Shares the children fairly with others. */
  readonly tenant: string;
  readonly sql: string;
  /** Values of `?` or of named parameters. */
  readonly parameters?: readonly SqlValue[] | Readonly<Record<string, SqlValue>>;
  readonly database: SqlDatabase;
  readonly write?: SqlWrite;
  /** Limits that differ from those of the children. */
  readonly limits?: Partial<SqlLimits>;
}

/** A column of an answer. */
export interface SqlColumn {
  readonly name: string;
  /** Type of the kinds `file` and `postgres`, as the database names it; absent for expressions of SQLite. */
  readonly type?: string;
}

/** Effect of a change. */
export interface SqlChanges {
  /** Rows of the statement itself. */
  readonly rows: number;
  /** Rows that triggers and foreign keys have changed with them; null from PostgreSQL, which does not tell. */
  readonly others: number | null;
  /** False if it was only counted, or the number was not the expected one. */
  readonly isKept: boolean;
}

/** The answer to a question. */
export interface SqlAnswer {
  readonly columns: readonly SqlColumn[];
  readonly rows: readonly (readonly (SqlValue | SqlCut)[])[];
  /** True if there are further rows: the answer has reached its limit of rows or bytes. */
  readonly isTruncated: boolean;
  readonly elapsedMs: number;
  /** Of a change. */
  readonly changes?: SqlChanges;
}
