// A copy of the index on another drive, made while the index is in use.
import { rmSync } from "node:fs";
import { dirname } from "node:path";
import { Worker } from "node:worker_threads";
import { renameFile, syncFolder } from "../blob/disk.ts";
import { openIndexReader } from "./schema.ts";

/** Copies the index `from`, as of one moment, over the one at `to`, which nobody may have open. Durable when it resolves. */
export async function copyIndex(from: string, to: string): Promise<void> {
  const staged = `${to}.new`;
  const worker = new Worker(new URL("./snapshot-thread.ts", import.meta.url), {
    workerData: { from, to: staged },
  });
  await new Promise<void>((resolve, reject) => {
    worker.once("error", reject);
    worker.once("exit", () => resolve());
  });
  // The old file goes before its WAL: without it, what is left is no index, and is copied anew.
  for (const ending of ["", "-wal", "-shm"]) rmSync(`${to}${ending}`, { force: true });
  await renameFile(staged, to);
  await syncFolder(dirname(to));
}

/** Number of the last group in an index; undefined where there is none, or it cannot be read. */
export function readCommitNumber(path: string): number | undefined {
  try {
    const index = openIndexReader(path);
    try {
      const row = index.sql("select value from meta where name = 'commit'").get();
      return Number(row?.["value"] ?? 0);
    } finally {
      index.close();
    }
  } catch {
    // Missing or damaged: it is made anew from another.
    return undefined;
  }
}
