// File operations with promises and bare descriptors, and the folders of a store.
import {
  close,
  fdatasync,
  fsync,
  mkdirSync,
  open,
  read,
  rename,
  unlink,
  write,
  writev,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { BlobId } from "../model/blob.ts";

/** Opens a file; flags as of `fs.open`. Files are for this user alone. */
export function openFile(path: string, flags: string): Promise<number> {
  return openWithMode(path, flags, 0o600);
}

const openWithMode = promisify(open) as (
  path: string,
  flags: string,
  mode: number,
) => Promise<number>;
/** Closes a descriptor. */
export const closeFile: (fd: number) => Promise<void> = promisify(close);
/** Brings a file's data, and its length, to the disk. */
export const syncData: (fd: number) => Promise<void> = promisify(fdatasync);
/** Renames a file. */
export const renameFile: (from: string, to: string) => Promise<void> = promisify(rename);
/** Removes a file. */
export const removeFile: (path: string) => Promise<void> = promisify(unlink);

const syncAll: (fd: number) => Promise<void> = promisify(fsync);

/** Writes all of the buffers from `position` on. */
export async function writeAll(
  fd: number,
  buffers: readonly Uint8Array[],
  position: number,
): Promise<void> {
  let left = buffers.filter((buffer) => buffer.length > 0);
  let at = position;
  while (left.length > 0) {
    const count = await writeSome(fd, left.slice(0, VECTOR_BUFFERS_MAX), at);
    if (count === 0) throw Object.assign(new Error("a write made no progress"), { code: "EIO" });
    at += count;
    left = dropBytes(left, count);
  }
}

// IOV_MAX of Linux and macOS.
const VECTOR_BUFFERS_MAX = 1024;

function writeSome(fd: number, buffers: readonly Uint8Array[], position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, count: number) => (error ? reject(error) : resolve(count));
    const [first] = buffers;
    if (buffers.length === 1 && first !== undefined) {
      write(fd, first, 0, first.length, position, done);
    } else {
      writev(fd, buffers, position, done);
    }
  });
}

function dropBytes(buffers: readonly Uint8Array[], count: number): Uint8Array[] {
  let left = count;
  for (const [index, buffer] of buffers.entries()) {
    if (left < buffer.length) return [buffer.subarray(left), ...buffers.slice(index + 1)];
    left -= buffer.length;
  }
  return [];
}

/** Reads up to `into.length` bytes; fewer only at the end of the file. */
export async function readAll(fd: number, into: Buffer, position: number): Promise<number> {
  let done = 0;
  while (done < into.length) {
    const count = await new Promise<number>((resolve, reject) => {
      read(fd, into, done, into.length - done, position + done, (error, bytes) =>
        error ? reject(error) : resolve(bytes),
      );
    });
    if (count === 0) break;
    done += count;
  }
  return done;
}

/** Where a store keeps what. */
export class StoreFolders {
  readonly root: string;
  readonly segments: string;
  readonly files: string;
  readonly staging: string;

  constructor(root: string) {
    this.root = root;
    this.segments = join(root, "segments");
    this.files = join(root, "files");
    this.staging = join(root, "staging");
  }

  get index(): string {
    return join(this.root, "index.sqlite");
  }

  /** The copy of the index that is made now and then. */
  get indexCopy(): string {
    return join(this.root, "index-copy.sqlite");
  }

  /** Files that nothing refers to, until somebody has looked at them. */
  get quarantine(): string {
    return join(this.root, "quarantine");
  }

  /** What the last complete scrub has found. */
  get scrub(): string {
    return join(this.root, "scrub.json");
  }

  get buckets(): string {
    return join(this.root, "buckets.json");
  }

  get lock(): string {
    return join(this.root, "lock.sqlite");
  }

  /** Makes what is missing. Returns the folders whose entries must be synced then. */
  make(): string[] {
    mkdirSync(this.segments, { recursive: true, mode: 0o700 });
    mkdirSync(this.staging, { recursive: true, mode: 0o700 });
    // Each time, and synced each time: the first start may have been cut short between any two of them.
    for (let index = 0; index < FILE_FOLDERS; index += 1) {
      mkdirSync(join(this.files, folderName(index)), { recursive: true, mode: 0o700 });
    }
    return [this.root, this.files];
  }

  segment(id: number): string {
    return join(this.segments, `${id.toString(16).padStart(14, "0")}.seg`);
  }

  fileFolder(id: BlobId): string {
    return join(this.files, folderName(id % FILE_FOLDERS));
  }

  file(id: BlobId): string {
    return join(this.fileFolder(id), `${id.toString(16).padStart(14, "0")}.blob`);
  }

  staged(id: BlobId): string {
    return join(this.staging, id.toString(16).padStart(14, "0"));
  }

  /** Where a body waits whose memory others need. */
  spilled(id: BlobId): string {
    return `${this.staged(id)}.spill`;
  }
}

const FILE_FOLDERS = 256;

function folderName(index: number): string {
  return index.toString(16).padStart(2, "0");
}

/** Syncs folders; whoever asks while a sync is under way shares the next one. */
export class FolderSync {
  readonly #next = new Map<string, Promise<void>>();
  readonly #running = new Map<string, Promise<void>>();

  /** Resolves when all entries that are there now are on the disk. */
  sync(folder: string): Promise<void> {
    const waiting = this.#next.get(folder);
    if (waiting !== undefined) return waiting;
    const before = this.#running.get(folder) ?? Promise.resolve();
    const run = before
      .catch(() => undefined)
      .then(() => {
        this.#next.delete(folder);
        this.#running.set(folder, run);
        return syncFolder(folder);
      })
      .finally(() => {
        if (this.#running.get(folder) === run) this.#running.delete(folder);
      });
    this.#next.set(folder, run);
    return run;
  }
}

/** Brings the entries of a folder to the disk. */
export async function syncFolder(folder: string): Promise<void> {
  const fd = await openFile(folder, "r");
  try {
    await syncAll(fd);
  } finally {
    await closeFile(fd);
  }
}
