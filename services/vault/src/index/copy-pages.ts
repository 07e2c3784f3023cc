// Copies a snapshot of an index in use, page by page, alongside readers and the writer.
import { rmSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { backup, DatabaseSync } from "node:sqlite";
import { openIndexReader } from "./schema.ts";

/** About 4 MiB: the copy can be ended after each step. */
const PAGES_PER_STEP = 256;
const ATTEMPTS_MAX = 3;
/** Time for the writer to restart its log before another attempt. */
const RESTART_MS = 5_000;
const LOOK_EVERY_MS = 20;

/** A copy of the index `from` into the new file `to`. */
export interface PageCopy {
  from: string;
  to: string;
  /** Size of the log of `from`, in bytes, at which the copy ends. */
  logBytesMax: number;
}

/**
 * Copies the index. The snapshot keeps the writer from restarting its log: if the log reaches its limit, the copy ends and
 * begins again with a newer snapshot, three times at most. The result is not synced.
 */
export async function copyPages(copy: PageCopy): Promise<void> {
  for (let attempt = 1; !(await copySnapshot(copy)); attempt += 1) {
    rmSync(copy.to, { force: true });
    if (attempt === ATTEMPTS_MAX) {
      throw new Error(
        "the index changes faster than it can be copied: raise index_log_limit, or repeat it when less is written",
      );
    }
    await waitForRestart(copy);
  }
  const database = new DatabaseSync(copy.to);
  try {
    // The first page says that the index has a log, which the copy has not.
    database.exec("pragma synchronous = off; pragma journal_mode = delete");
  } finally {
    database.close();
  }
}

// False if the log has grown too long.
async function copySnapshot({ from, to, logBytesMax }: PageCopy): Promise<boolean> {
  const index = openIndexReader(from);
  const ended = new Error("the log is too long");
  // Without writes, a long log stays as it is, and does no harm.
  const bytesMax = Math.max(logBytesMax, measureLog(from));
  const progress = (): void => {
    if (measureLog(from) > bytesMax) throw ended;
  };
  try {
    // Without a transaction of its own, the copy would begin again with every commit.
    index.database.exec("begin");
    index.sql("select count(*) from sqlite_schema").get();
    await backup(index.database, to, { rate: PAGES_PER_STEP, progress });
    return true;
  } catch (error) {
    if (error !== ended) throw error;
    return false;
  } finally {
    index.close();
  }
}

// The writer does so with its next commit.
async function waitForRestart({ from, logBytesMax }: PageCopy): Promise<void> {
  const end = performance.now() + RESTART_MS;
  while (measureLog(from) > logBytesMax / 2 && performance.now() < end) await sleep(LOOK_EVERY_MS);
}

function measureLog(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}
