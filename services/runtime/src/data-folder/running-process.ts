// The process of a platform as Linux describes it in /proc. On other systems everything here is undefined.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** `npm` and a shell may be between the service manager and the platform. */
const ANCESTORS_MAX = 4;

export interface ProcessFacts {
  /** Short name of the program. */
  name: string;
  /** Numeric id of its user. */
  uid: number;
}

/** Describes a process; undefined if it has ended. */
export function readProcess(pid: number): ProcessFacts | undefined {
  const name = readText("/proc", pid, "comm")?.trim();
  return name === undefined ? undefined : { name, uid: statSync(`/proc/${pid}`).uid };
}

/**
 * The command that stops the systemd unit of a process; undefined if systemd did not start it. A process of a terminal or
 * of cron is in the unit of these programs, and not a unit of its own (SYSTEMD_EXEC_PID, systemd.exec(5)).
 */
export function findStopCommand(pid: number, proc = "/proc"): string | undefined {
  const main = /^SYSTEMD_EXEC_PID=(\d+)$/m.exec(
    readText(proc, pid, "environ")?.replaceAll("\0", "\n") ?? "",
  )?.[1];
  if (main === undefined || !isBelow(pid, Number(main), proc)) return undefined;
  const group = readText(proc, pid, "cgroup") ?? "";
  const unit = /\/([^/\n]+\.service)$/m.exec(group)?.[1];
  if (unit === undefined) return undefined;
  return `systemctl ${/\/user@\d+\.service\//.test(group) ? "--user " : ""}stop ${unit}`;
}

// True for the process itself and its nearest descendants.
function isBelow(pid: number, ancestor: number, proc: string): boolean {
  let current = pid;
  for (let steps = 0; steps <= ANCESTORS_MAX; steps += 1) {
    if (current === ancestor) return true;
    const parent = /^PPid:\s+(\d+)$/m.exec(readText(proc, current, "status") ?? "")?.[1];
    if (parent === undefined) return false;
    current = Number(parent);
  }
  return false;
}

function readText(proc: string, pid: number, file: string): string | undefined {
  try {
    return readFileSync(join(proc, String(pid), file), "utf8");
  } catch {
    return undefined;
  }
}
