// The reason that health checks show for a full disk.
import { statfsSync } from "node:fs";
import { dirname } from "node:path";

/** Less than a change of state needs. */
const FREE_BYTES_MIN = 1024 * 1024;

/** The reason, of all services alike. */
export const FULL_DISK = "disk_full: changes are refused until space is free";

/** Returns the reason if the disk of a folder, or of its parent if it is missing, has less than 1 MiB free. */
export function describeFullDisk(folder: string): string | undefined {
  const space = readSpace(folder) ?? readSpace(dirname(folder));
  return space !== undefined && space < FREE_BYTES_MIN ? FULL_DISK : undefined;
}

function readSpace(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}
