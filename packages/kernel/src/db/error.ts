// Classification of database errors, the same for both databases.
import { PlatformError, type ErrorCode } from "../errors/index.ts";

/** Kinds of database errors, as far as callers can react to them. */
export type DatabaseErrorKind =
  | "unique_violation"
  | "foreign_key_violation"
  | "not_null_violation"
  | "check_violation"
  /** A conflict with another transaction: repeating the whole transaction may succeed. */
  | "serialization_failure"
  /** The database is locked, or too many requests are waiting: retrying later may succeed. */
  | "busy"
  /** The database is unreachable or shutting down. */
  | "unavailable"
  | "timeout"
  | "full"
  | "read_only"
  | "corrupt"
  | "other";

/** A classified database error. `columns` is set for unique violations if the database reports them. */
export interface DatabaseErrorInfo {
  kind: DatabaseErrorKind;
  columns: readonly string[];
}

/** Options of a DatabaseError. */
export interface DatabaseErrorOptions extends ErrorOptions {
  /** True if an open connection broke, which rolls back its transaction. Default false. */
  isConnectionLost?: boolean;
}

/**
 * Thrown by this package, and in place of driver errors that mean "try again later" (`unavailable`, `busy`, `timeout`,
 * `full`); other driver errors pass through unchanged. `readDatabaseError` classifies both. APIs respond with it as a
 * PlatformError: callers receive the code's detail, and `message` is for logs.
 */
export class DatabaseError extends PlatformError {
  readonly kind: DatabaseErrorKind;
  readonly isConnectionLost: boolean;

  constructor(kind: DatabaseErrorKind, message: string, options: DatabaseErrorOptions = {}) {
    const { code, detail, retryAfterSeconds } = WIRE_FORMS[kind] ?? INTERNAL;
    super(code, detail, {
      cause: options.cause,
      headers: retryAfterSeconds === undefined ? {} : { "Retry-After": String(retryAfterSeconds) },
    });
    this.name = "DatabaseError";
    this.message = message;
    this.kind = kind;
    this.isConnectionLost = options.isConnectionLost ?? false;
  }
}

interface WireForm {
  code: ErrorCode;
  detail: string;
  retryAfterSeconds?: number;
}

const INTERNAL: WireForm = { code: "internal", detail: "An unexpected error occurred." };
// Kinds that callers can react to.
const WIRE_FORMS: Partial<Record<DatabaseErrorKind, WireForm>> = {
  unavailable: {
    code: "unavailable",
    detail: "The database is currently unreachable.",
    retryAfterSeconds: 2,
  },
  timeout: {
    code: "unavailable",
    detail: "The database did not respond in time.",
    retryAfterSeconds: 2,
  },
  busy: { code: "overloaded", detail: "The database is busy.", retryAfterSeconds: 1 },
  full: { code: "insufficient_storage", detail: "The database's disk is full." },
};

/** Converts driver errors that mean "try again later" to a DatabaseError; returns others unchanged. */
export function toDatabaseError(
  thrown: unknown,
  options: Pick<DatabaseErrorOptions, "isConnectionLost"> = {},
): unknown {
  if (thrown instanceof DatabaseError) return thrown;
  const { kind } = readDatabaseError(thrown);
  if (WIRE_FORMS[kind] === undefined) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new DatabaseError(kind, message, { ...options, cause: thrown });
}

/** Classifies a thrown value; `other` if it is not a database error. */
export function readDatabaseError(thrown: unknown): DatabaseErrorInfo {
  if (thrown instanceof DatabaseError) return { kind: thrown.kind, columns: [] };
  if (!(thrown instanceof Error)) return { kind: "other", columns: [] };
  const fields = thrown as Error & { code?: unknown; errcode?: unknown; detail?: unknown };
  if (fields.code === "ERR_SQLITE_ERROR" && typeof fields.errcode === "number") {
    const kind = readSqliteCode(fields.errcode);
    return { kind, columns: kind === "unique_violation" ? readSqliteColumns(thrown.message) : [] };
  }
  if (typeof fields.code === "string") {
    const kind = readPostgresCode(fields.code);
    return { kind, columns: kind === "unique_violation" ? readPostgresColumns(fields.detail) : [] };
  }
  if (TIMEOUT_MESSAGE.test(thrown.message)) return { kind: "timeout", columns: [] };
  if (UNAVAILABLE_MESSAGE.test(thrown.message)) return { kind: "unavailable", columns: [] };
  return { kind: "other", columns: [] };
}

/** True if the error is a unique violation, of exactly these columns if any are given. */
export function isUniqueViolation(thrown: unknown, ...columns: string[]): boolean {
  const info = readDatabaseError(thrown);
  if (info.kind !== "unique_violation") return false;
  return columns.length === 0 || columns.toSorted().join() === info.columns.toSorted().join();
}

// Extended result codes, https://www.sqlite.org/rescode.html; the low byte is the primary code.
function readSqliteCode(errcode: number): DatabaseErrorKind {
  switch (errcode) {
    case 2067: // SQLITE_CONSTRAINT_UNIQUE
    case 1555: // SQLITE_CONSTRAINT_PRIMARYKEY
    case 2579: // SQLITE_CONSTRAINT_ROWID
      return "unique_violation";
    case 787: // SQLITE_CONSTRAINT_FOREIGNKEY
      return "foreign_key_violation";
    case 1299: // SQLITE_CONSTRAINT_NOTNULL
      return "not_null_violation";
    case 275: // SQLITE_CONSTRAINT_CHECK
      return "check_violation";
    case 517: // SQLITE_BUSY_SNAPSHOT
      return "serialization_failure";
    default:
  }
  switch (errcode & 0xff) {
    case 5: // SQLITE_BUSY
    case 6: // SQLITE_LOCKED
      return "busy";
    case 8: // SQLITE_READONLY
      return "read_only";
    case 11: // SQLITE_CORRUPT
    case 26: // SQLITE_NOTADB
      return "corrupt";
    case 13: // SQLITE_FULL
      return "full";
    case 10: // SQLITE_IOERR
    case 14: // SQLITE_CANTOPEN
      return "unavailable";
    default:
      return "other";
  }
}

// Errors without a code that `pg` and its pool throw.
const TIMEOUT_MESSAGE =
  /timeout exceeded when trying to connect|due to connection timeout|Query read timeout/;
const UNAVAILABLE_MESSAGE =
  /Connection terminated|is not queryable|Cannot use a pool after calling end/;

const UNAVAILABLE_CODES = new Set([
  "EAI_AGAIN",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETDOWN",
  "ENETUNREACH",
  "ENOENT",
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
]);

// SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html
function readPostgresCode(code: string): DatabaseErrorKind {
  switch (code) {
    case "23505":
      return "unique_violation";
    case "23503":
      return "foreign_key_violation";
    case "23502":
      return "not_null_violation";
    case "23514":
      return "check_violation";
    case "40001":
    case "40P01":
      return "serialization_failure";
    case "55P03":
      return "busy";
    case "57014":
    case "25P03":
      return "timeout";
    case "25006":
      return "read_only";
    case "53100":
    case "53200":
      return "full";
    case "53300":
    case "57P01":
    case "57P02":
    case "57P03":
    case "57P05":
      return "unavailable";
    case "XX001":
    case "XX002":
      return "corrupt";
    default:
      if (/^08\w{3}$/.test(code) || UNAVAILABLE_CODES.has(code)) return "unavailable";
      return "other";
  }
}

// "UNIQUE constraint failed: users.tenant, users.name"
function readSqliteColumns(message: string): string[] {
  const found = /failed: (.+)$/.exec(message);
  if (found?.[1] === undefined || found[1].startsWith("index ")) return [];
  return found[1].split(", ").map((column) => column.slice(column.indexOf(".") + 1));
}

// "Key (tenant, name)=(a, b) already exists."
function readPostgresColumns(detail: unknown): string[] {
  const found = typeof detail === "string" ? /^Key \(([^()]+)\)=/.exec(detail) : null;
  return found?.[1]?.split(", ").map((column) => column.replaceAll('"', "")) ?? [];
}
