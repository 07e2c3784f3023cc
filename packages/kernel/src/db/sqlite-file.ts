// The files of an SQLite database: creation with private modes, the first handle, the path of the log.
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { DatabaseError, readDatabaseError } from "./error.ts";
import { explainDamage } from "./sqlite-check.ts";
import { SqliteHandle } from "./sqlite-handle.ts";

/** Creates a missing file with mode 0600, and its folder with 0700. */
export function createFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // SQLite would create a world-readable file; the WAL inherits the mode of the file. An existing file is not opened
  // here: closing it would release the locks that another engine of this process holds.
  try {
    closeSync(openSync(path, "ax", 0o600));
  } catch (error) {
    if (!isThere(error)) throw error;
  }
}

/** Opens a handle; an error that damage of the file caused names the file and the remedy. */
export function openHandle(
  path: string,
  ...options: ConstructorParameters<typeof SqliteHandle>
): SqliteHandle {
  try {
    return new SqliteHandle(...options);
  } catch (error) {
    const { kind } = readDatabaseError(error);
    if (kind !== "corrupt" || !(error instanceof Error)) throw error;
    throw new DatabaseError(kind, explainDamage(path, error.message), { cause: error });
  }
}

/** Returns the path of SQLite's log with links resolved; a first read creates it. */
export function findJournal(database: DatabaseSync): string {
  database.prepare("select 1 from sqlite_schema").all();
  const { file } = database.prepare("select file from pragma_database_list").get()!;
  return `${String(file)}-wal`;
}

function isThere(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EEXIST";
}
