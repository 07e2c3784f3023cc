// Finds processes that inherited an environment variable, by /proc; returns nothing on other systems.
import { existsSync, readFileSync, readdirSync } from "node:fs";

/** A running process. */
export interface ProcessEntry {
  pid: number;
  /** Its command line, truncated. */
  command: string;
}

const COMMAND_CHARACTERS_MAX = 160;

/** A variable, and the session of the first process that has it. */
export interface ProcessMark {
  name: string;
  value: string;
  session: number | undefined;
}

/**
 * Finds the live processes that have the mark, and their descendants. Programs that overwrite their environment with a
 * title (nginx, PostgreSQL) are found by their session or parent.
 */
export function findMarkedProcesses({ name, value, session }: ProcessMark): ProcessEntry[] {
  if (!existsSync("/proc/self/environ")) return [];
  const parents = new Map<number, number>();
  const marked = new Set<number>();
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const stat = readStat(pid);
    if (stat === undefined) continue;
    parents.set(pid, stat.parent);
    if (
      stat.session === session ||
      readText(`/proc/${pid}/environ`).split("\0").includes(`${name}=${value}`)
    )
      marked.add(pid);
  }
  for (let before = -1; before !== marked.size;) {
    before = marked.size;
    for (const [pid, parent] of parents) if (marked.has(parent)) marked.add(pid);
  }
  return [...marked].map((pid) => ({ pid, command: readCommand(pid) }));
}

/** True if a process is running; false for zombies. */
export function isRunning(pid: number): boolean {
  return readStat(pid) !== undefined;
}

/** Kills a process, if it still exists. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has already exited.
  }
}

/** Returns undefined for processes that have ended, including zombies. */
function readStat(pid: number): { parent: number; session: number } | undefined {
  const stat = readText(`/proc/${pid}/stat`);
  // The name in parentheses may itself contain spaces and parentheses.
  const [state, parent, , session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (state === undefined || state === "" || state === "Z") return undefined;
  return { parent: Number(parent), session: Number(session) };
}

function readCommand(pid: number): string {
  const command = readText(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
  return command.slice(0, COMMAND_CHARACTERS_MAX);
}

function readText(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
