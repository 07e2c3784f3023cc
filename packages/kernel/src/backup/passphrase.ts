// Passphrases of encrypted backups, read from files: arguments and environments of processes are visible to others.
import { readBytes } from "./files.ts";
import { BackupError } from "./error.ts";

const FILE_BYTES_MAX = 4096;

/** Reads a passphrase: the contents of a file without the final line break. Rejects with BackupError if it is empty. */
export async function readPassphrase(path: string): Promise<string> {
  const bytes = await readBytes(path, FILE_BYTES_MAX).catch((cause: unknown) => {
    if (cause instanceof BackupError) throw cause;
    const { message } = cause as Error;
    throw new BackupError(`the passphrase file cannot be read: ${message}`, { cause });
  });
  const passphrase = bytes.toString("utf8").replace(/\r?\n$/, "");
  if (passphrase === "") throw new BackupError(`${path} is empty`);
  return passphrase;
}
