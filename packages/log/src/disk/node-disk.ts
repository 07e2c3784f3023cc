// The disk and clock ports on Node.js.
import {
  close,
  constants,
  fdatasync,
  fstat,
  fsync,
  ftruncate,
  open,
  read,
  writev,
  type WriteVResult,
} from "node:fs";
import { mkdir, readdir, rename, rmdir, stat, statfs, unlink } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { LogError } from "../errors.ts";
import type { Clock, Disk, DiskFile } from "./port.ts";

/** Maximum number of buffers of one writev (IOV_MAX of Linux and macOS). */
const VECTOR_BUFFERS_MAX = 1024;

/** The system clock; its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** The files below the folder `root`, which is created if it is missing. */
export function openNodeDisk(root: string): Disk {
  const full = (path: string) => join(root, path);
  return {
    async open(path, mode) {
      const flags = { read: "r", write: "r+", create: "w+" }[mode];
      const fd = await settle<number>((done) => open(full(path), flags, 0o640, done));
      return new NodeFile(fd, full(path));
    },
    async makeFolder(path) {
      await mkdir(full(path), { recursive: true, mode: 0o750 });
    },
    async list(path) {
      try {
        return await readdir(full(path));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
        throw error;
      }
    },
    async size(path) {
      try {
        return (await stat(full(path))).size;
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code;
        if (code === "ENOENT" || code === "ENOTDIR") return undefined;
        throw error;
      }
    },
    rename: (from, to) => rename(full(from), full(to)),
    remove: (path) => removeFile(full(path)),
    async removeFolder(path) {
      try {
        await rmdir(full(path));
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code;
        if (code !== "ENOENT" && code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
      }
    },
    async syncFolder(path) {
      // Windows cannot sync a folder; NTFS journals names.
      if (process.platform === "win32") return;
      const fd = await settle<number>((done) => open(full(path), "r", done));
      try {
        await settle<void>((done) => fsync(fd, done));
      } finally {
        await settle<void>((done) => close(fd, done));
      }
    },
    async space() {
      const { bavail, blocks, bsize } = await statfs(root);
      return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
    },
    async lock() {
      await mkdir(root, { recursive: true, mode: 0o750 });
      return lockFolder(full("lock.db"));
    },
  };
}

/**
 * Node.js has no file locks. SQLite's exclusive transaction is one on every platform, and the operating system releases
 * it when the process dies, so a crash never leaves a stale lock behind.
 */
function lockFolder(path: string): () => Promise<void> {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // Nothing is ever written, so that the folder can be locked on a full disk: not even a journal.
    database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    throw explainLockError(path, error as Error);
  }
  return async () => database.close();
}

function explainLockError(path: string, cause: Error): LogError {
  // The low byte is SQLite's primary result code: https://sqlite.org/rescode.html
  const code = ((cause as { errcode?: number }).errcode ?? 0) & 0xff;
  switch (code) {
    case 5: // SQLITE_BUSY
    case 6: // SQLITE_LOCKED
      return new LogError("locked", `another process has the log open (${path})`, { cause });
    case 13: // SQLITE_FULL
      return new LogError("disk-full", `no space left on the disk for ${path}`, { cause });
    default:
      return new LogError("disk-failed", `cannot lock ${path}: ${cause.message}`, { cause });
  }
}

// `rm` asks for the kind of the path first, on the calling thread.
async function removeFile(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

class NodeFile implements DiskFile {
  readonly #fd: number;
  readonly #path: string;
  /** Opened with O_DSYNC by the first durable write. */
  #durableFd: number | undefined;

  constructor(fd: number, path: string) {
    this.#fd = fd;
    this.#path = path;
  }

  async read(into: Buffer, at: number, length: number, position: number): Promise<number> {
    let done = 0;
    while (done < length) {
      const count = await settle<number>((next) =>
        read(this.#fd, into, at + done, length - done, position + done, next),
      );
      if (count === 0) break;
      done += count;
    }
    return done;
  }

  async write(buffers: readonly Buffer[], position: number): Promise<void> {
    for (let first = 0; first < buffers.length; first += VECTOR_BUFFERS_MAX) {
      position += await this.#writeVector(
        this.#fd,
        buffers.slice(first, first + VECTOR_BUFFERS_MAX),
        position,
      );
    }
  }

  // One system call, so one turn of a pool thread instead of two.
  async writeDurably(buffers: readonly Buffer[], position: number): Promise<void> {
    // Windows has no such flag.
    if (constants.O_DSYNC === undefined || buffers.length > VECTOR_BUFFERS_MAX) {
      await this.write(buffers, position);
      return this.sync();
    }
    const flags = constants.O_WRONLY | constants.O_DSYNC;
    this.#durableFd ??= await settle<number>((done) => open(this.#path, flags, done));
    await this.#writeVector(this.#durableFd, [...buffers], position);
  }

  sync(): Promise<void> {
    return settle<void>((done) => fdatasync(this.#fd, done));
  }

  truncate(length: number): Promise<void> {
    return settle<void>((done) => ftruncate(this.#fd, length, done));
  }

  async size(): Promise<number> {
    return (await settle<{ size: number }>((done) => fstat(this.#fd, done))).size;
  }

  async close(): Promise<void> {
    if (this.#durableFd !== undefined) {
      const fd = this.#durableFd;
      await settle<void>((done) => close(fd, done));
    }
    await settle<void>((done) => close(this.#fd, done));
  }

  async #writeVector(fd: number, buffers: Buffer[], start: number): Promise<number> {
    let left = buffers;
    let written = 0;
    while (left.length > 0) {
      const count = await settle<WriteVResult["bytesWritten"]>((done) =>
        writev(fd, left, start + written, done),
      );
      if (count === 0) throw Object.assign(new Error("write made no progress"), { code: "EIO" });
      written += count;
      left = dropBytes(left, count);
    }
    return written;
  }
}

// Short writes are legal; the rest goes out with the next call.
function dropBytes(buffers: Buffer[], count: number): Buffer[] {
  let left = count;
  for (let index = 0; index < buffers.length; index++) {
    const buffer = buffers[index]!;
    if (left < buffer.length) return [buffer.subarray(left), ...buffers.slice(index + 1)];
    left -= buffer.length;
  }
  return [];
}

function settle<T>(start: (done: (error: Error | null, value?: unknown) => void) => void) {
  return new Promise<T>((resolve, reject) => {
    start((error, value) => (error ? reject(error) : resolve(value as T)));
  });
}
