// A thread of the child: ends the process when it has too much memory, and when the service has gone, and lowers its priority
// when a statement takes long, also in the middle of one. SQLite's own limit of its memory has no effect in Node, which builds it without statistics of memory.
import { constants, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { MEMORY_SIGNAL } from "./messages.ts";

/** Statements fill about 1 GB/s. */
const CHECK_MEMORY_EVERY_MS = 25;
const CHECK_SERVICE_EVERY_MS = 500;

/**
 * Time of the processor after which a statement gives way to all other work. Short ones do not: on a busy machine, at the lowest
 * priority, they would reach their limit of time before they have begun.
 */
const SHORT_US = 250_000;

/** Data that the thread starts with. */
export interface GuardData {
  /** Process id of the service. */
  readonly parent: number;
  /** One Int32: not 0 once the process has the lowest priority, which it cannot leave. */
  readonly isLow: SharedArrayBuffer;
}

/** A question that begins. */
export interface GuardedQuestion {
  readonly bytesMax: number;
}

const { parent, isLow } = workerData as GuardData;
const low = new Int32Array(isLow);
let bytesMax = Number.POSITIVE_INFINITY;
let lowFromUs = Number.POSITIVE_INFINITY;
parentPort?.on("message", (question: GuardedQuestion) => {
  bytesMax = question.bytesMax;
  lowFromUs = readProcessorUs() + SHORT_US;
});
setInterval(() => {
  if (process.memoryUsage.rss() > bytesMax) process.kill(process.pid, MEMORY_SIGNAL);
  if (low[0] !== 0 || readProcessorUs() < lowFromUs) return;
  setPriority(process.pid, constants.priority.PRIORITY_LOW);
  low[0] = 1;
}, CHECK_MEMORY_EVERY_MS);
setInterval(() => {
  if (!isAlive(parent)) process.kill(process.pid, "SIGKILL");
}, CHECK_SERVICE_EVERY_MS);

function readProcessorUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

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
