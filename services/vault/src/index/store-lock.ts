// One process per folder.
import { FileLockedError, lockFile } from "@platform/kernel/files";
import { StoreError } from "../model/store-error.ts";

/** Takes the lock. Throws `ServiceUnavailable` if another process has it. Returns a function that releases it. */
export function lockStore(path: string): () => void {
  try {
    return lockFile(path);
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    const reason =
      error instanceof FileLockedError
        ? `another process has the store open (${path})`
        : `the store cannot be locked (${path}: ${cause})`;
    throw new StoreError("ServiceUnavailable", reason, {}, { cause: error });
  }
}
