// Failures of the disk as errors of the log.
import { LogError } from "../errors.ts";

/** Whether a failure means that the disk is full, and nothing worse. */
export function isDiskFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ENOSPC" || code === "EDQUOT" || code === "disk-full";
}

/** A failed write as `disk-full` or `disk-failed`. */
export function ioError(error: Error): LogError {
  const full = isDiskFull(error);
  const text = full ? "no space left on the disk" : "writing to the disk failed";
  return new LogError(full ? "disk-full" : "disk-failed", text, { cause: error });
}
