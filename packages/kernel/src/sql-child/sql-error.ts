// Errors of questions in SQL.

/**
 * - `invalid`: the statement or its parameters are wrong; the message is SQLite's.
 * - `forbidden`: the statement does more than read what it may.
 * - `limit`: it has reached `limit`.
 * - `busy`: too many questions wait.
 * - `damaged`: the file cannot be read.
 * - `failed`: anything else.
 */
export type SqlErrorKind = "invalid" | "forbidden" | "limit" | "busy" | "damaged" | "failed";

/** A limit that ends a question. */
export type SqlLimitName = "time" | "memory" | "value" | "statement" | "complexity";

/** The end of a question without an answer. The message of kinds other than `damaged` and `failed` is meant for its author. */
export class SqlError extends Error {
  override readonly name = "SqlError";
  readonly kind: SqlErrorKind;
  readonly limit: SqlLimitName | undefined;
  /** Offset of the fault in the statement, in UTF-16 units, if it is known. */
  readonly position: number | undefined;

  constructor(
    kind: SqlErrorKind,
    message: string,
    options: {
      limit?: SqlLimitName | undefined;
      position?: number | undefined;
      cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.limit = options.limit;
    this.position = options.position;
  }
}
