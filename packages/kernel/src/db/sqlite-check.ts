// The structure and the pages of a SQLite file: checked before it is used, or in the background if that takes long.
import type { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { readDatabaseError } from "./error.ts";
import type { PageSums } from "./sqlite-pages.ts";

/** Size up to which a start waits for the check, which reads the whole file. */
export const WAIT_BYTES_MAX = 256 * 1024 ** 2;

/** Work of the thread that checks a large file. */
export interface CheckTask {
  /** For `DatabaseSync`. */
  location: string;
  /** Of the open file. The thread does not close it: that would release the locks of this process. */
  descriptor: number;
  /** True if the pages have checksums, or shall have them. */
  readsPages: boolean;
  /** Sums of the pages as they were at the start; undefined if they are not known. */
  expected: PageSums | undefined;
}

export interface CheckResult {
  /** The first fault of the structure. */
  fault: string | undefined;
  /** Numbers of pages that differ from their sums. */
  different: number[];
  /** The sums of all pages, if they were read. */
  found: PageSums | undefined;
}

/** A check in the background. */
export interface RunningCheck {
  /** Ends it without a result. */
  stop(): Promise<void>;
}

/** The message for operators. */
export function explainDamage(path: string, fault: string): string {
  return `${path} is damaged (${fault}): stop the service, keep the file, and restore a backup`;
}

/**
 * The first fault of an open file by `quick_check` (https://sqlite.org/pragma.html#pragma_quick_check); undefined if there is
 * none. Errors other than damage are left to its use.
 */
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

/** Checks a file that is in use; the thread ends with the process. */
export function checkInBackground(
  task: CheckTask,
  onResult: (result: CheckResult) => void,
): RunningCheck {
  const worker = new Worker(new URL("sqlite-check-thread.ts", import.meta.url), {
    workerData: task,
  });
  worker.unref();
  worker.on("message", onResult);
  worker.on("error", () => undefined);
  return {
    stop: async () => {
      await worker.terminate();
    },
  };
}
