// The temporary folders of test files: in memory if it is large enough, because most tests only write what they soon remove.
import { readFileSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { DATA_SUITES } from "./rerun.ts";

const MEMORY = "/dev/shm";
/** Of the file system and of the machine: eight files at the same time, some of which write gigabytes. */
const FREE_BYTES_MIN = 8 * 2 ** 30;
/** Tests of what disks do keep a disk, and so do those of an index whose writer is as fast as its disk. */
const OF_DISKS = /disk|drive|backup|vault\/test\/index/;

/** Memory and mounts of a machine, and its user's choice. */
export interface Machine {
  /** Content of /proc/mounts and /proc/meminfo; empty elsewhere. */
  mounts: string;
  memory: string;
  /** Free bytes of the file system in memory. */
  freeBytes: number;
  /** TMPDIR, the user's choice. */
  chosen: string | undefined;
}

/**
 * Returns the folder for those of a test file or of a group's members: in memory, if programs may run there, or else that of
 * the system. Suites about data and disks keep a disk, whose faults they are about.
 */
export function chooseTestRoot(files: readonly string[], machine = readMachine()): string {
  const { mounts, memory, freeBytes, chosen } = machine;
  if (chosen !== undefined) return chosen;
  if (files.some((file) => DATA_SUITES.test(file) || OF_DISKS.test(file))) return tmpdir();
  const mount = mounts.split("\n").findLast((line) => line.split(" ")[1] === MEMORY);
  const [, , type, options = ""] = mount?.split(" ") ?? [];
  const isUsable = type === "tmpfs" && !options.split(",").includes("noexec");
  const availableBytes = Number(/^MemAvailable: +(\d+) kB$/m.exec(memory)?.[1] ?? 0) * 1024;
  return isUsable && Math.min(freeBytes, availableBytes) >= FREE_BYTES_MIN ? MEMORY : tmpdir();
}

function readMachine(): Machine {
  const chosen = process.env["TMPDIR"] || undefined;
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return {
      mounts: readFileSync("/proc/mounts", "utf8"),
      memory: readFileSync("/proc/meminfo", "utf8"),
      freeBytes: bavail * bsize,
      chosen,
    };
  } catch {
    return { mounts: "", memory: "", freeBytes: 0, chosen };
  }
}
