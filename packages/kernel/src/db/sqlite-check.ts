// The structure of a SQLite file: checked before it is used, or in the background if that takes long.
import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { DatabaseError, readDatabaseError } from "./error.ts";

/** Size up to which a start waits for the check, which reads the whole file. */
const WAIT_BYTES_MAX = 256 * 1024 ** 2;

/** A check in the background. */
export interface RunningCheck {
  /** Ends it without a result. */
  stop(): Promise<void>;
}

/**
 * Checks an open file with `quick_check` (https://sqlite.org/pragma.html#pragma_quick_check). Throws a DatabaseError if it
 * is damaged. Larger files are checked by a thread, which calls `onDamage` with the first fault.
 */
export function checkFile(
  path: string,
  database: DatabaseSync,
  onDamage: (fault: string) => void,
): RunningCheck | undefined {
  const { size } = statSync(path);
  if (size > WAIT_BYTES_MAX) return checkInBackground(path, onDamage);
  const fault = findFault(database);
  if (fault !== undefined) throw new DatabaseError("corrupt", explainDamage(path, fault));
  return undefined;
}

/** The message for operators. */
export function explainDamage(path: string, fault: string): string {
  return `${path} is damaged (${fault}): stop the service, keep the file, and restore a backup`;
}

/** The first fault of an open file; undefined if there is none. Errors other than damage are left to its use. */
export function findFault(database: DatabaseSync): string | undefined {
  try {
    const row = database.prepare("pragma quick_check(1)").get();
    const text = String(Object.values(row ?? {})[0] ?? "");
    return text === "ok" ? undefined : text.replaceAll(/\s+/g, " ").trim().slice(0, 200);
  } catch (error) {
    if (readDatabaseError(error).kind !== "corrupt") return undefined;
    return error instanceof Error ? error.message : String(error);
  }
}

function checkInBackground(path: string, onDamage: (fault: string) => void): RunningCheck {
  const worker = new Worker(new URL("sqlite-check-thread.ts", import.meta.url), {
    workerData: path,
  });
  worker.unref();
  worker.on("message", (fault: unknown) => {
    if (typeof fault === "string") onDamage(fault);
  });
  worker.on("error", () => undefined);
  return {
    stop: async () => {
      await worker.terminate();
    },
  };
}
