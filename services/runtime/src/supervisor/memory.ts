// Memory that the services may use: of the machine, or of the control group that limits them
// (https://docs.kernel.org/admin-guide/cgroup-v2.html#memory, https://docs.kernel.org/admin-guide/cgroup-v1/memory.html).
import { readFileSync } from "node:fs";
import { freemem, totalmem } from "node:os";
import { join } from "node:path";

const STREAK_MS = 60_000;
const STREAK_KILLS = 3;
/** The outcome of a process that the kernel has killed. */
export const MEMORY_KILL = "killed for lack of memory";
/** The reason why a process is not started again, with the remedy. */
export const TOO_MANY_KILLS = `${MEMORY_KILL} ${STREAK_KILLS} times in a minute: give the platform more memory (MemoryMax= of systemd, --memory of docker), or run fewer services with --only; then restart it`;

/** Folders of the kernel's files, and what the runtime knows of the limit. */
export interface MemorySources {
  /** Default /proc. */
  proc?: string;
  /** Default /sys/fs/cgroup. */
  groups?: string;
  /** Default: that of the process, which is above all memory where there is no limit. */
  limitBytes?: number;
}

/** Memory of the machine, or of the group. */
export interface Memory {
  availableBytes: number;
  /** The limit of the group; undefined without one. */
  limitBytes: number | undefined;
}

/** Returns the memory that can be used, with what the system can reclaim. */
export function readMemory(sources: MemorySources = {}): Memory {
  const { proc = "/proc", limitBytes = process.constrainedMemory() } = sources;
  const machine = readMachine(proc);
  const isLimited = limitBytes > 0 && limitBytes < totalmem();
  if (!isLimited) return { availableBytes: machine, limitBytes: undefined };
  const used = readUsage(sources);
  const left = used === undefined ? limitBytes : Math.max(0, limitBytes - used);
  return { availableBytes: Math.min(machine, left), limitBytes };
}

/** Returns how many processes of the group the kernel has killed for lack of memory; undefined if it does not say. */
export function readMemoryKills(sources: MemorySources = {}): number | undefined {
  const text = readGroupFile(sources, "memory.events", "memory.oom_control");
  const [, count] = /^oom_kill (\d+)$/m.exec(text ?? "") ?? [];
  return count === undefined ? undefined : Number(count);
}

/** Tells which processes of the group the kernel has killed for lack of memory. */
export class MemoryKills {
  readonly #read: () => number | undefined;
  #known: number;

  constructor(read: () => number | undefined = readMemoryKills) {
    this.#read = read;
    this.#known = read() ?? 0;
  }

  /** Returns the outcome of a process that has ended: {@link MEMORY_KILL} in place of SIGKILL, once for each such kill. */
  explain(outcome: string): string {
    if (outcome !== "SIGKILL" || (this.#read() ?? 0) <= this.#known) return outcome;
    this.#known += 1;
    return MEMORY_KILL;
  }
}

/** Kills of one process: after some within a minute, another start would only take memory from the others. */
export class KillStreak {
  /** Monotonic ms. */
  #times: number[] = [];

  /** Adds a kill; true if it is one too many, and the next one is the first again. */
  add(nowMs: number): boolean {
    this.#times = [...this.#times.filter((at) => nowMs - at < STREAK_MS), nowMs];
    if (this.#times.length < STREAK_KILLS) return false;
    this.#times = [];
    return true;
  }
}

// `freemem` counts memory as used that the system can reclaim.
function readMachine(proc: string): number {
  const [, kibibytes] =
    /^MemAvailable: +(\d+) kB/m.exec(tryRead(join(proc, "meminfo")) ?? "") ?? [];
  return kibibytes === undefined ? freemem() : Number(kibibytes) * 1024;
}

// Pages of files that are not in use are given up before anything is killed.
function readUsage(sources: MemorySources): number | undefined {
  const used = Number(readGroupFile(sources, "memory.current", "memory.usage_in_bytes") ?? NaN);
  if (Number.isNaN(used)) return undefined;
  const stat = readGroupFile(sources, "memory.stat", "memory.stat") ?? "";
  // Version 1 has the sum of the groups below apart.
  const found = /^total_inactive_file (\d+)$/m.exec(stat) ?? /^inactive_file (\d+)$/m.exec(stat);
  const [, files = "0"] = found ?? [];
  return Math.max(0, used - Number(files));
}

// A container sees its own group as the root, though /proc names it by its path outside.
function readGroupFile(
  { proc = "/proc", groups = "/sys/fs/cgroup" }: MemorySources,
  second: string,
  first: string,
): string | undefined {
  for (const line of (tryRead(join(proc, "self/cgroup")) ?? "").split("\n")) {
    const [, controllers = "", path = "/"] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    const isFirst = controllers.split(",").includes("memory");
    if (!isFirst && controllers !== "") continue;
    const root = isFirst ? join(groups, "memory") : groups;
    const name = isFirst ? first : second;
    const text = tryRead(join(root, path, name)) ?? tryRead(join(root, name));
    if (text !== undefined) return text;
  }
  return undefined;
}

function tryRead(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
