// `platform down`: stops the platform that runs with a data folder.
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { quoteShell } from "@platform/kernel/config";
import { explainStopped } from "../client/target.ts";
import {
  findLockHolder,
  formatCommand,
  formatFolder,
  isLocked,
  isLockedBy,
} from "../data-folder/data-folder.ts";
import { readRunning } from "../data-folder/running-file.ts";
import { findStopCommand, readProcess } from "../data-folder/running-process.ts";

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
  const state = readRunning(dataDir);
  const isKnown = state !== undefined && (await isLockedBy(dataDir, state.pid)) !== false;
  if (!isKnown) throw await explainUnknown(dataDir, state?.pid);
  const { pid } = state;
  const manager = describeManager(pid);
  process.stderr.write(`stopping the platform, process ${pid}\n`);
  signal(pid, dataDir);
  await waitUntilStopped(dataDir, pid, timeoutMs);
  if (manager !== undefined) process.stderr.write(`${manager}\n`);
}

async function waitUntilStopped(dataDir: string, pid: number, timeoutMs: number): Promise<void> {
  const beganMs = performance.now();
  let reportedMs = beganMs;
  // After its end, another process may have the lock: that of a command, or of a platform that was started again.
  while (isLocked(dataDir) && isAlive(pid)) {
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

// The state file may be older than the process that has the folder now; its process number may be that of any program.
async function explainUnknown(dataDir: string, pid: number | undefined): Promise<Error> {
  const locked = await findLockHolder(dataDir);
  if (locked === undefined) return explainStopped(dataDir);
  const { holder } = locked;
  const shown = quoteShell(formatFolder(dataDir));
  const by = holder === undefined ? "another process" : `process ${holder.pid} (${holder.name})`;
  const other = pid === undefined ? undefined : readProcess(pid);
  const reused =
    other === undefined
      ? ""
      : `; process ${pid}, the number of its last platform, is now ${other.name} and was left alone`;
  const remedy =
    holder === undefined
      ? "if it does not, end the process that has the folder open"
      : `if it does not, end it with kill ${holder.pid}`;
  return new Error(
    `the data folder ${shown} is in use by ${by}, which is not a running platform yet${reused}: if it is starting, try again when it runs; ${remedy}`,
  );
}

function signal(pid: number, dataDir: string): void {
  try {
    process.kill(pid, "SIGTERM");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // It has just ended.
    if (code === "ESRCH") return;
    if (code !== "EPERM") throw error;
    const facts = readProcess(pid);
    const owner =
      facts === undefined ? "another user" : `the user with the id ${facts.uid} (${facts.name})`;
    const command = formatCommand(dataDir, "down");
    const remedy =
      facts === undefined ? `run ${command} as that user` : `sudo -u '#${facts.uid}' ${command}`;
    throw new Error(`process ${pid} belongs to ${owner}, and you may not stop it: ${remedy}`, {
      cause: error,
    });
  }
}

// A service manager may start again what was stopped without it.
function describeManager(pid: number): string | undefined {
  if (pid === 1)
    return "it was the main process of a container, which may start again: stop the container to keep it stopped";
  const command = findStopCommand(pid);
  return command === undefined
    ? undefined
    : `systemd manages this platform and may start it again: ${command} keeps it stopped`;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function describeLeft(dataDir: string): string {
  const services = readRunning(dataDir)?.services ?? [];
  const left = services.filter(({ state }) => state !== "stopped").map(({ label }) => label);
  return left.length === 0 ? "" : ` for ${left.join(", ")}`;
}
