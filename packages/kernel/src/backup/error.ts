// The error of backup and restore.

/** A backup cannot be written, used or restored. The message names folder and file. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}
