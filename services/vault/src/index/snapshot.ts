// A copy of the index on another drive, made while the index is in use.
import { existsSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { renameFile, syncFolder } from "../disk/files.ts";
import { openIndexReader } from "./schema.ts";
import type { SnapshotData } from "./snapshot-thread.ts";

/**
 * Copies the index `from`, as of one moment, over the one at `to`, which nobody may have open. The copy says from its first
 * moment on that its drive, `slot`, lacks something. Durable when it resolves.
 */
export async function copyIndex(from: string, to: string, slot: number): Promise<void> {
  const staged = stageCopy(to);
  clearCopy(to);
  const worker = new Worker(new URL("./snapshot-thread.ts", import.meta.url), {
    workerData: { from, to: staged, slot } satisfies SnapshotData,
  });
  await new Promise<void>((resolve, reject) => {
    worker.once("error", reject);
    worker.once("exit", () => resolve());
  });
  // The old file goes before its WAL: without it, what is left is no index, and is copied anew.
  for (const ending of ["", "-wal", "-shm", ".mark"]) rmSync(`${to}${ending}`, { force: true });
  await renameFile(staged, to);
  await syncFolder(dirname(to));
}

/** Removes what the making of a copy at `to` has left behind. */
export function clearCopy(to: string): void {
  for (const ending of ["", "-journal"]) rmSync(`${stageCopy(to)}${ending}`, { force: true });
}

/** How far a copy of the index has come. */
export interface IndexPosition {
  /** Of the last start that had it open. */
  generation: number;
  /** Of the start that has committed its last group; with the number of that group it names one state of the index. */
  commitGeneration: number;
  /** Number of its last group; 0 where there never was one. */
  commit: number;
}

/** How far an index has come; undefined where there is none, or it cannot be read. */
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
    // Missing or damaged: it is made anew from another.
    return undefined;
  }
}

/** Whether nothing was ever committed to an index, if there is one at all: its making was cut short. */
export function isUnusedIndex(path: string): boolean {
  if (!existsSync(path)) return true;
  const position = readPosition(path);
  if (position !== undefined) return position.commit === 0;
  try {
    // For writing, so that what was cut short is rolled back.
    const database = new DatabaseSync(path);
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
