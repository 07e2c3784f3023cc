// File operations with promises and plain descriptors, and the folders of a store.
import { close, fdatasync, mkdirSync, open, read, rename, unlink, write, writev } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { syncFolder } from "@platform/kernel/files";
import type { BlobId } from "../model/blob.ts";

/** Opens a file with the flags of `fs.open`. New files are accessible to this user only. */
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
/** Syncs the data and the length of a file to disk. */
export const syncData: (fd: number) => Promise<void> = promisify(fdatasync);
/** Renames a file. */
export const renameFile: (from: string, to: string) => Promise<void> = promisify(rename);
/** Removes a file. */
export const removeFile: (path: string) => Promise<void> = promisify(unlink);

/** Writes all buffers, starting at `position`. */
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

/** The paths of a store. */
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

  /** The periodic copy of the index. */
  get indexCopy(): string {
    return join(this.root, "index-copy.sqlite");
  }

  /** Unreferenced files, kept for inspection. */
  get quarantine(): string {
    return join(this.root, "quarantine");
  }

  /** The result of the last complete scrub. */
  get scrub(): string {
    return join(this.root, "scrub.json");
  }

  get buckets(): string {
    return join(this.root, "buckets.json");
  }

  get lock(): string {
    return join(this.root, "lock.sqlite");
  }

  /** Creates missing folders. Returns the folders whose entries must be synced afterwards. */
  make(): string[] {
    mkdirSync(this.segments, { recursive: true, mode: 0o700 });
    mkdirSync(this.staging, { recursive: true, mode: 0o700 });
    // On every start, and synced every time: the first start may have been interrupted anywhere.
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

  /** The file of a body whose memory is needed by others. */
  spilled(id: BlobId): string {
    return `${this.staged(id)}.spill`;
  }
}

const FILE_FOLDERS = 256;

function folderName(index: number): string {
  return index.toString(16).padStart(2, "0");
}

/** Syncs folders. Calls during a sync share the next one. */
export class FolderSync {
  readonly #next = new Map<string, Promise<void>>();
  readonly #running = new Map<string, Promise<void>>();

  /** Resolves when all current entries are on disk. */
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
