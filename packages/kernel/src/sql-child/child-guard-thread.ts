// A thread of the child: ends the process when it has too much memory, and when the service has gone, also in the middle of a
// statement. SQLite's own limit of its memory has no effect in Node, which builds it without statistics of memory.
import { parentPort, workerData } from "node:worker_threads";
import { MEMORY_SIGNAL } from "./messages.ts";

/** Statements fill about 1 GB/s. */
const CHECK_MEMORY_EVERY_MS = 25;
const CHECK_SERVICE_EVERY_MS = 500;

/** Data that the thread starts with: the process id of the service. */
export interface GuardData {
  readonly parent: number;
}

const { parent } = workerData as GuardData;
let bytesMax = Number.POSITIVE_INFINITY;
parentPort?.on("message", (bytes: number) => {
  bytesMax = bytes;
});
setInterval(() => {
  if (process.memoryUsage.rss() > bytesMax) process.kill(process.pid, MEMORY_SIGNAL);
}, CHECK_MEMORY_EVERY_MS);
setInterval(() => {
  if (!isAlive(parent)) process.kill(process.pid, "SIGKILL");
}, CHECK_SERVICE_EVERY_MS);

function isAlive(pid: number): boolean {
  // Orphans get another parent, except on Windows.
  if (process.platform !== "win32") return process.ppid === pid;
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

parentPort?.postMessage("ready");
