// A change of rows in a SQLite file, which the project that owns the file may have open.
import { constants, type DatabaseSync, type StatementSync } from "node:sqlite";
import { SqliteGuard } from "../db/sqlite-guard.ts";
import { FileLockedError, lockFile } from "../files/file-lock.ts";
import type { Ask } from "./messages.ts";
import { openForChange } from "./open-database.ts";
import { permitWriting } from "./permissions.ts";
import type { SqlAnswer, SqlChanges, SqlWrite } from "./question.ts";
import { readRows } from "./read-rows.ts";
import { SqlError } from "./sql-error.ts";
import { isBlank } from "./statement-text.ts";

type Send = (rows: SqlAnswer["rows"]) => void;

/**
 * Runs one INSERT, UPDATE or DELETE in a transaction, and keeps it if it has changed the expected number of rows. Its RETURNING
 * is the answer. Errors are those of SQLite.
 */
export function changeFile(
  ask: Ask,
  path: string,
  write: SqlWrite,
  send: Send,
): Omit<SqlAnswer, "rows" | "elapsedMs"> {
  const endFirst = becomeFirst(path);
  try {
    // Without another process that has the file open, this one keeps its checksums.
    const guard =
      endFirst === undefined
        ? undefined
        : new SqliteGuard({ path, processes: "guests", reserveBytes: 0, acceptLoss: false });
    try {
      const database = openForChange(path, ask.limits);
      try {
        // Checksums follow the log.
        database.exec("pragma journal_mode = wal");
        guard?.attach(database, path);
        const answer = change(database, ask, write, send);
        if (answer.changes?.isKept === true) guard?.noteCommit();
        guard?.prepareClose();
        return answer;
      } finally {
        database.close();
      }
    } finally {
      guard?.release();
    }
  } finally {
    endFirst?.();
  }
}

/** Takes the lock that the first process with a file holds; undefined if another one has it. */
function becomeFirst(path: string): (() => void) | undefined {
  try {
    return lockFile(`${path}.lock`);
  } catch (error) {
    if (error instanceof FileLockedError) return undefined;
    throw error;
  }
}

function change(
  database: DatabaseSync,
  ask: Ask,
  { expected }: SqlWrite,
  send: Send,
): Omit<SqlAnswer, "rows" | "elapsedMs"> {
  const { statement, trusted } = compile(database, ask.sql);
  const run = (sql: string): void => trusted(() => database.exec(sql));
  const count = (): { direct: number; total: number } =>
    trusted(() => {
      const row = database.prepare("select changes() as direct, total_changes() as total").get()!;
      return { direct: Number(row["direct"]), total: Number(row["total"]) };
    });
  run("begin immediate");
  try {
    const before = count().total;
    const isTruncated = readRows(statement, ask.parameters, ask.limits, send);
    const { direct: rows, total } = count();
    const isKept = expected !== undefined && rows === expected;
    const changes: SqlChanges = { rows, others: total - before - rows, isKept };
    run(isKept ? "commit" : "rollback");
    const columns = statement.columns().map(({ name }) => ({ name }));
    return { columns, isTruncated, changes };
  } catch (error) {
    if (database.isTransaction) run("rollback");
    throw error;
  }
}

/** A compiled statement, and the switch that lets this program control the transaction around it. */
interface Compiled {
  readonly statement: StatementSync;
  readonly trusted: <T>(work: () => T) => T;
}

function compile(database: DatabaseSync, sql: string): Compiled {
  if (sql.includes("\0")) throw new SqlError("invalid", "The statement contains a NUL character.");
  if (isBlank(sql)) throw new SqlError("invalid", "The statement is empty.");
  let isChange = false;
  let isTrusted = false;
  // Setting it a second time would compile the statement again.
  database.setAuthorizer((action, first, second, name, accessor) => {
    isChange ||=
      action === constants.SQLITE_INSERT ||
      action === constants.SQLITE_UPDATE ||
      action === constants.SQLITE_DELETE;
    return isTrusted || permitWriting({ action, first, second, database: name, accessor })
      ? constants.SQLITE_OK
      : constants.SQLITE_DENY;
  });
  const statement = database.prepare(sql);
  if (!isBlank(sql, statement.sourceSQL.length)) {
    throw new SqlError("forbidden", "Only one statement is allowed.");
  }
  if (!isChange) throw new SqlError("forbidden", "Only INSERT, UPDATE and DELETE are allowed.");
  statement.setReturnArrays(true);
  statement.setReadBigInts(true);
  const trusted: Compiled["trusted"] = (work) => {
    isTrusted = true;
    try {
      return work();
    } finally {
      isTrusted = false;
    }
  };
  return { statement, trusted };
}
