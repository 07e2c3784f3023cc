// An exclusive lock between processes. SQLite's exclusive transaction is one on every platform, and the operating system
// releases it with the process, so that a crash leaves no stale lock.
import { closeSync, openSync, truncateSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

// SQLITE_BUSY, SQLITE_CORRUPT, SQLITE_NOTADB (https://sqlite.org/rescode.html)
const BUSY = 5;
const DAMAGES: ReadonlySet<number> = new Set([11, 26]);

/** Another process holds the lock. */
export class FileLockedError extends Error {
  constructor(path: string, options: ErrorOptions) {
    super(`another process has locked ${path}`, options);
    this.name = "FileLockedError";
  }
}

/**
 * Locks a file, which is created if it is missing and never contains data. Returns a function that releases the lock.
 * Throws `FileLockedError` if another process holds it, the system's error if the file cannot be written.
 */
export function lockFile(path: string): () => void {
  try {
    return tryLock(path);
  } catch (error) {
    const code = readCode(error);
    if (code === BUSY) throw new FileLockedError(path, { cause: error });
    if (code === undefined || !DAMAGES.has(code)) {
      requireWritable(path);
      throw error;
    }
  }
  // SQLite has read the damaged file, so no process has locked it.
  truncateSync(path);
  return tryLock(path);
}

// SQLite says only that it cannot open the file; the system's error, such as EACCES, says why.
function requireWritable(path: string): void {
  closeSync(openSync(path, "a"));
}

function tryLock(path: string): () => void {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // Nothing is ever written, so that a full disk can be locked: not even a journal.
    database.exec("pragma locking_mode = exclusive; pragma journal_mode = memory; begin exclusive");
  } catch (error) {
    database.close();
    throw error;
  }
  return () => database.close();
}

function readCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown }).errcode;
  return typeof code === "number" ? code & 0xff : undefined;
}
