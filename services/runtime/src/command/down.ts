// `platform down`: stops the platform that runs with a data folder.
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { explainStopped } from "../client/target.ts";
import { explainFileError, isLocked, isLockedBy } from "../data-folder/data-folder.ts";
import { readRunning, type RunningState } from "../data-folder/running-file.ts";

const POLL_MS = 100;
const REPORT_MS = 2_000;

/** Options of {@link runDown}. */
export interface DownOptions {
  data: string;
  /** Time after which the command gives up waiting. */
  timeoutMs: number;
}

/** Asks the platform to stop, and waits until its services have ended. */
export async function runDown({ data, timeoutMs }: DownOptions): Promise<void> {
  const dataDir = resolve(data);
  const state = readState(dataDir);
  if (state === undefined) throw explainStopped(dataDir);
  const { pid } = state;
  // The file may be older than the process that has the folder now; its number may be that of any process.
  if (!(await isLockedBy(dataDir, pid))) {
    throw new Error("the platform is starting: try again when it runs");
  }
  process.stderr.write(`stopping the platform, process ${pid}\n`);
  process.kill(pid, "SIGTERM");
  const beganMs = performance.now();
  let reportedMs = beganMs;
  while (isLocked(dataDir)) {
    const nowMs = performance.now();
    if (nowMs - beganMs > timeoutMs) {
      throw new Error(
        `process ${pid} still runs after ${Math.round(timeoutMs / 1_000)} s${describeLeft(dataDir)}; kill -9 ${pid} ends it at once, and its services within seconds`,
      );
    }
    if (nowMs - reportedMs > REPORT_MS) {
      reportedMs = nowMs;
      process.stderr.write(`waiting${describeLeft(dataDir)}\n`);
    }
    await sleep(POLL_MS);
  }
  process.stderr.write(`stopped after ${((performance.now() - beganMs) / 1_000).toFixed(1)} s\n`);
}

function readState(dataDir: string): RunningState | undefined {
  try {
    return readRunning(dataDir);
  } catch (error) {
    throw explainFileError(error, dataDir);
  }
}

function describeLeft(dataDir: string): string {
  const services = readState(dataDir)?.services ?? [];
  const left = services.filter(({ state }) => state !== "stopped").map(({ label }) => label);
  return left.length === 0 ? "" : ` for ${left.join(", ")}`;
}
