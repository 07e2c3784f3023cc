// CPU time and memory of a process tree, read from /proc (proc(5)).
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** Totals over a process and all its descendants, threads included. */
export interface TreeUsage {
  pids: number[];
  /** User and system time since each process started, in ms; resolution: the kernel's clock tick. */
  cpuMs: number;
  /** The system time within `cpuMs`. */
  systemMs: number;
  /** Proportional set size: a shared page is divided among the processes that map it. */
  pssBytes: number;
  openFiles: number;
}

const TICKS_PER_S = Number(spawnSync("getconf", ["CLK_TCK"], { encoding: "utf8" }).stdout) || 100;

/** Processes of the tree below `rootPid`, the root first. */
export function listTree(rootPid: number): number[] {
  const children = new Map<number, number[]>();
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    const fields = Number.isInteger(pid) ? readStatFields(pid) : undefined;
    if (fields === undefined) continue;
    const parent = Number(fields[1]);
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const tree = [rootPid];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/** CPU time of the tree. Cheap enough to call directly before and after a round. */
export function readTreeCpu(rootPid: number): Pick<TreeUsage, "pids" | "cpuMs" | "systemMs"> {
  const pids: number[] = [];
  let userTicks = 0;
  let systemTicks = 0;
  for (const pid of listTree(rootPid)) {
    const fields = readStatFields(pid);
    if (fields === undefined) continue;
    pids.push(pid);
    userTicks += Number(fields[11]);
    systemTicks += Number(fields[12]);
  }
  const tickMs = 1000 / TICKS_PER_S;
  return { pids, cpuMs: (userTicks + systemTicks) * tickMs, systemMs: systemTicks * tickMs };
}

/** All totals of the tree. Reads the memory maps, which is too slow for the middle of a measurement. */
export function readTreeUsage(rootPid: number): TreeUsage {
  const cpu = readTreeCpu(rootPid);
  let pssBytes = 0;
  let openFiles = 0;
  for (const pid of cpu.pids) {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    pssBytes += Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) * 1024;
    openFiles += readdirSync(`/proc/${pid}/fd`).length;
  }
  return { ...cpu, pssBytes, openFiles };
}

// The fields of /proc/PID/stat after the command name, which may contain spaces: state is 0,
// the parent is 1, utime is 11, stime is 12. Undefined once the process is gone.
function readStatFields(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}
