// One process per folder: SQLite's exclusive transaction is a lock on every platform, and the system releases it with the
// process.
import { truncateSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { StoreError } from "../model/store-error.ts";

// SQLITE_CORRUPT, SQLITE_NOTADB (https://sqlite.org/rescode.html)
const DAMAGES = new Set([11, 26]);

/** Takes the lock. Throws `ServiceUnavailable` if another process has it. Returns a function that releases it. */
export function lockStore(path: string): () => void {
  try {
    return tryLock(path);
  } catch (error) {
    if (!isDamage(error)) throw explain(path, error);
  }
  // SQLite has read it, so no process has locked it; and it never contained data.
  try {
    truncateSync(path);
    return tryLock(path);
  } catch (error) {
    throw explain(path, error);
  }
}

function tryLock(path: string): () => void {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec("pragma locking_mode = exclusive; begin exclusive");
  } catch (error) {
    database.close();
    throw error;
  }
  return () => database.close();
}

function isDamage(error: unknown): boolean {
  const code = (error as { errcode?: unknown }).errcode;
  return typeof code === "number" && DAMAGES.has(code & 0xff);
}

const BUSY = 5;

function explain(path: string, error: unknown): StoreError {
  const isHeld = ((error as { errcode?: number }).errcode ?? 0) % 256 === BUSY;
  const cause = error instanceof Error ? error.message : String(error);
  const reason = isHeld
    ? `another process has the store open (${path})`
    : `the store cannot be locked (${path}: ${cause})`;
  return new StoreError("ServiceUnavailable", reason, {}, { cause: error });
}
