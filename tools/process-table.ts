// Finds the processes that inherited a variable, by /proc; where there is none, nothing is found.
import { existsSync, readFileSync, readdirSync } from "node:fs";

/** A running process. */
export interface ProcessEntry {
  pid: number;
  /** Its command line, shortened. */
  command: string;
}

const COMMAND_CHARACTERS_MAX = 160;

/** A variable, and the session in which the first process that has it was started. */
export interface ProcessMark {
  name: string;
  value: string;
  session: number | undefined;
}

/**
 * The live processes that have the mark, and their descendants. Programs that write a title over their environment
 * (nginx, PostgreSQL) are found by their session or their parent.
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

/** True for a process that runs; false once it has ended, even if its parent has not collected it. */
export function isRunning(pid: number): boolean {
  return readStat(pid) !== undefined;
}

/** Kills a process that may already be gone. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself.
  }
}

/** Undefined for a process that has ended, a zombie included. */
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
