// The checkpoint thread: moves commits from the WAL to the index without blocking the writer.
import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import { locateExclusively } from "@platform/kernel/files";
import { findRestartBytes } from "./schema.ts";

const CHECK_EVERY_MS = 200;
/** Checkpoints start at this size of the WAL, in bytes, or when the writer would restart it, if that is less. */
const WAL_BYTES_MIN = 8 * 1024 * 1024;

/** The data that the thread starts with. */
export interface CheckpointData {
  path: string;
  logBytesMax: number;
}

const port = parentPort;
if (port !== null) {
  const { path, logBytesMax } = workerData as CheckpointData;
  const bytesMin = Math.min(WAL_BYTES_MIN, findRestartBytes(logBytesMax));
  const database = new DatabaseSync(locateExclusively(path), { timeout: 1_000 });
  database.exec("pragma synchronous = full");
  const checkpoint = database.prepare("pragma wal_checkpoint(passive)");
  const timer = setInterval(() => {
    const { size } = statSync(`${path}-wal`, { throwIfNoEntry: false }) ?? { size: 0 };
    if (size < bytesMin) return;
    try {
      checkpoint.get();
    } catch {
      // The disk is full or fails: commits stay in the WAL for the next round, and the writer gets the errors itself.
    }
  }, CHECK_EVERY_MS);
  port.on("message", () => {
    clearInterval(timer);
    database.close();
    port.close();
  });
}
