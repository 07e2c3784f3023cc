// Restarting the write-ahead log of the index: the next commit begins at its start again.
import type { DatabaseSync } from "node:sqlite";

/**
 * Moves the log into the index and restarts it, without waiting. While a reader holds an older snapshot, as much as possible
 * is moved, and the log grows until the next call. Returns true if it was restarted. `busyTimeoutMs` is that of the
 * connection, which a restart would spend waiting for readers, with all writes behind it.
 */
export function restartLog(database: DatabaseSync, busyTimeoutMs: number): boolean {
  database.exec("pragma busy_timeout = 0");
  try {
    const row = database.prepare("pragma wal_checkpoint(restart)").get();
    return row?.["busy"] === 0;
  } finally {
    database.exec(`pragma busy_timeout = ${busyTimeoutMs}`);
  }
}
