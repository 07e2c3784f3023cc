// Error of backup and restore.

/** A backup cannot be written, read or restored. The message contains folder and file. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}
