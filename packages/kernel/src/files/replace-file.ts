// Files that are replaced as a whole, so that a crash or power loss leaves the old or the new content: a draft in the same
// folder, synced, renamed, and the folder synced. Only their owner may read them.
import {
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { lstat, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

const MODE = 0o600;
let drafts = 0;

/** The next content of a file, not visible at its path until it is committed. */
export interface FileDraft {
  /** Writes the content to disk, for files that are replaced together: on a full disk none of them changes. */
  write(content: string | Uint8Array): void;
  /** Replaces the file by what was written, or by `content`. On disk when it returns. */
  commit(content?: string | Uint8Array): void;
  /** Keeps the file as it was. */
  discard(): void;
}

/**
 * Begins to replace a file, so that a caller learns early that it cannot be written. Throws the system's error, and an
 * error if the path is not that of a regular file: a device or a link must not be replaced.
 */
export function createFileDraft(path: string): FileDraft {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile()) throw createKindError(path);
  const draft = `${path}.${process.pid}.new`;
  // Left by a killed process with this number.
  rmSync(draft, { force: true });
  const descriptor = openSync(draft, "wx", MODE);
  let isOpen = true;
  const close = (): void => {
    if (isOpen) closeSync(descriptor);
    isOpen = false;
  };
  const discard = (): void => {
    close();
    rmSync(draft, { force: true });
  };
  const write = (content: string | Uint8Array): void => {
    try {
      writeFileSync(descriptor, content);
      // A rename may reach the disk before the data of its file does.
      fsyncSync(descriptor);
      close();
    } catch (error) {
      discard();
      throw error;
    }
  };
  const commit = (content?: string | Uint8Array): void => {
    if (content !== undefined) write(content);
    try {
      renameSync(draft, path);
    } catch (error) {
      discard();
      throw error;
    }
    syncFolderSync(dirname(path));
  };
  return { write, commit, discard };
}

/** Replaces a file, with mode 0600. On disk when it returns. Throws as {@link createFileDraft}; the file is then unchanged. */
export function replaceFileSync(path: string, content: string | Uint8Array): void {
  createFileDraft(path).commit(content);
}

/** Replaces a file like {@link replaceFileSync}, without blocking the process. */
export async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (found !== undefined && !found.isFile()) throw createKindError(path);
  drafts += 1;
  const draft = `${path}.${process.pid}-${drafts}.new`;
  await rm(draft, { force: true });
  const file = await open(draft, "wx", MODE);
  try {
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Writes the entries of a folder to disk: names of new, renamed and removed files. */
export function syncFolderSync(folder: string): void {
  // Windows cannot open a folder; a rename is durable there without this.
  if (process.platform === "win32") return;
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Writes the entries of a folder to disk like {@link syncFolderSync}. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function createKindError(path: string): Error {
  return new Error(`${path} is not a regular file`);
}
