// One process a folder: SQLite's exclusive transaction is a lock on every platform, and the system lets it go with the process.
import { DatabaseSync } from "node:sqlite";
import { StoreError } from "../store-error.ts";

/** Takes the lock; throws `ServiceUnavailable` where another process has it. Returns the way to let it go. */
export function lockStore(path: string): () => void {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec("pragma locking_mode = exclusive; begin exclusive");
  } catch (error) {
    database.close();
    throw new StoreError(
      "ServiceUnavailable",
      `another process has the store open (${path})`,
      {},
      { cause: error },
    );
  }
  return () => database.close();
}
