// Child processes of a benchmark: pinned to cores, stopped by their own process ids.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { listTree } from "./usage.ts";

const OUTPUT_CHARS_MAX = 8_192;
const STOP_TIMEOUT_MS = 4_000;
const OPEN_FILES_MAX =
  /^Max open files\s+\d+\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? "1024";

/** The program to start. */
export interface Launch {
  /** Name in messages. */
  name: string;
  command: string;
  args: readonly string[];
  /** Cores in the format of `taskset -c`. */
  cores: string;
  /** Variables in addition to this process's environment. */
  env?: Record<string, string>;
}

/** A started child. */
export interface PinnedProcess {
  name: string;
  pid: number;
  /** The end of the output on stdout and stderr. */
  readOutput(): string;
  hasExited(): boolean;
  signal(signal: NodeJS.Signals): void;
  /** Sends SIGTERM to the child, and SIGKILL to the rest of its process tree after four seconds. */
  stop(): Promise<void>;
}

/** Starts a child on the given cores. */
export function startPinned(launch: Launch): PinnedProcess {
  // The file limit is raised to the hard limit, so that 10 000 connections fit.
  // The child gets SIGTERM when this process ends, even by SIGKILL.
  const limits = ["prlimit", `--nofile=${OPEN_FILES_MAX}`, "setpriv", "--pdeathsig", "TERM"];
  const args = ["-c", launch.cores, ...limits, launch.command];
  const child = spawn("taskset", [...args, ...launch.args], {
    env: { ...process.env, ...launch.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (text: string) => (output = (output + text).slice(-OUTPUT_CHARS_MAX)));
  }
  child.on("error", (error) => (output += String(error)));
  return {
    name: launch.name,
    pid: child.pid ?? -1,
    readOutput: () => output,
    hasExited: () =>
      child.exitCode !== null || child.signalCode !== null || child.pid === undefined,
    signal: (signal) => void child.kill(signal),
    stop: () => stopTree(child),
  };
}

/** Runs a program until it exits. Rejects on a non-zero exit code, with the end of the output. */
export async function runPinned(launch: Launch): Promise<string> {
  const child = spawn("taskset", ["-c", launch.cores, launch.command, ...launch.args], {
    env: { ...process.env, ...launch.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${launch.name} ended with ${code}: ${(stderr + stdout).trim()}`);
  return stdout;
}

async function stopTree(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const tree = listTree(child.pid);
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const inTime = await Promise.race([
    exited.then(() => true),
    sleep(STOP_TIMEOUT_MS, false, { ref: false }),
  ]);
  if (inTime) return;
  for (const pid of tree) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      continue; // it is gone, which is what was wanted
    }
  }
  await exited;
}
