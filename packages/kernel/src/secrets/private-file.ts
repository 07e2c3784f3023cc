// Small files that only their owner may read, replaced so that a crash or power loss leaves the old or the new content.
import {
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

/** The next content of a file, not visible at its path until it is committed. */
export interface PrivateDraft {
  /** Replaces the file, with mode 0600. On disk when it returns. */
  commit(content: string | Uint8Array): void;
  /** Keeps the file as it was. */
  discard(): void;
}

/**
 * Begins to replace a file, so that a caller learns early that it cannot be written. Throws the system's error, and an
 * error if the path is not that of a regular file: a device or a link must not be replaced.
 */
export function createPrivateDraft(path: string): PrivateDraft {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) throw new Error(`${path} is not a regular file`);
  const draft = `${path}.${process.pid}.new`;
  // Left by a killed process with this number.
  rmSync(draft, { force: true });
  const descriptor = openSync(draft, "wx", 0o600);
  let isOpen = true;
  const close = (): void => {
    if (isOpen) closeSync(descriptor);
    isOpen = false;
  };
  const discard = (): void => {
    close();
    rmSync(draft, { force: true });
  };
  const commit = (content: string | Uint8Array): void => {
    try {
      writeFileSync(descriptor, content);
      // A rename may reach the disk before the data of its file does.
      fsyncSync(descriptor);
      close();
      renameSync(draft, path);
    } catch (error) {
      discard();
      throw error;
    }
    syncFolder(dirname(path));
  };
  return { commit, discard };
}

/** Replaces a file, with mode 0600. On disk when it returns. */
export function replacePrivateFile(path: string, content: string | Uint8Array): void {
  createPrivateDraft(path).commit(content);
}

/** Writes the entries of a folder to disk: names of new, renamed and removed files. */
export function syncFolder(folder: string): void {
  // Windows cannot open a folder; a rename is durable there without this.
  if (process.platform === "win32") return;
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
