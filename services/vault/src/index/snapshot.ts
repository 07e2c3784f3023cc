// A copy of the index on another drive, made while the index is in use.
import { existsSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { locateExclusively, syncFolder } from "@platform/kernel/files";
import { renameFile } from "../disk/files.ts";
import { openIndexReader } from "./schema.ts";
import type { SnapshotData } from "./snapshot-thread.ts";

/**
 * Copies a snapshot of the index `from` over the index at `to`, which must not be open. From its first moment the copy
 * marks its drive, `slot`, as incomplete. It is durable when this resolves. `logBytesMax` limits the log of an index in use.
 */
export async function copyIndex(
  from: string,
  to: string,
  slot: number,
  logBytesMax = Number.POSITIVE_INFINITY,
): Promise<void> {
  const staged = stageCopy(to);
  clearCopy(to);
  const worker = new Worker(new URL("./snapshot-thread.ts", import.meta.url), {
    workerData: { from, to: staged, slot, logBytesMax } satisfies SnapshotData,
  });
  await new Promise<void>((resolve, reject) => {
    worker.once("error", reject);
    worker.once("exit", () => resolve());
  });
  // The old file is removed before its WAL: the remains are not an index, and are replaced.
  for (const ending of ["", "-wal", "-shm", ".mark"]) rmSync(`${to}${ending}`, { force: true });
  await renameFile(staged, to);
  await syncFolder(dirname(to));
}

/** Removes the leftovers of an interrupted copy at `to`. */
export function clearCopy(to: string): void {
  for (const ending of ["", "-journal"]) rmSync(`${stageCopy(to)}${ending}`, { force: true });
}

/** The position of a copy of the index. */
export interface IndexPosition {
  /** Of the last start that had it open. */
  generation: number;
  /**
   * Of the start that committed its last group; together with the number of that group it identifies one state of the
   * index.
   */
  commitGeneration: number;
  /** Number of its last group; 0 before the first. */
  commit: number;
}

/** The position of an index; `undefined` if it is missing or unreadable. */
export function readPosition(path: string): IndexPosition | undefined {
  try {
    const index = openIndexReader(path);
    try {
      const read = (name: string) =>
        Number(index.sql("select value from meta where name = ?").get(name)?.["value"] ?? 0);
      return {
        generation: read("generation"),
        commitGeneration: read("commit_generation"),
        commit: read("commit"),
      };
    } finally {
      index.close();
    }
  } catch {
    // Missing or damaged: it is replaced from another copy.
    return undefined;
  }
}

/** True if the index is missing, or nothing was ever committed to it: its creation was interrupted. */
export function isUnusedIndex(path: string): boolean {
  if (!existsSync(path)) return true;
  const position = readPosition(path);
  if (position !== undefined) return position.commit === 0;
  try {
    // Opened for writing, so that an interrupted transaction is rolled back.
    const database = new DatabaseSync(locateExclusively(path));
    try {
      return Number(database.prepare("pragma user_version").get()?.["user_version"]) === 0;
    } finally {
      database.close();
    }
  } catch {
    return false;
  }
}

function stageCopy(to: string): string {
  return `${to}.new`;
}
