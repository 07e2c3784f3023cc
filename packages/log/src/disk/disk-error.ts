// Disk errors as errors of the log.
import { LogError } from "../errors.ts";

/** True if the disk is full; false for any worse failure. */
export function isDiskFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ENOSPC" || code === "EDQUOT" || code === "disk-full";
}

/** Converts a failed write to `disk-full` or `disk-failed`. */
export function ioError(error: Error): LogError {
  const full = isDiskFull(error);
  const text = full ? "no space left on the disk" : "writing to the disk failed";
  return new LogError(full ? "disk-full" : "disk-failed", text, { cause: error });
}
