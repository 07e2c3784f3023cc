// Copies, syncs and lists the files of a backup in constant memory.
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readdir, statfs, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BackupError } from "./error.ts";

const CHUNK_BYTES = 1024 * 1024;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** Maximum nesting of folders. */
const DEPTH_MAX = 32;

/** Progress of a backup, a verification or a restore. */
export interface BackupProgress {
  files: number;
  bytes: number;
  /** Undefined if the total is not known in advance. */
  bytesTotal: number | undefined;
}

/** Receives the number of bytes processed since the last call. */
export type CountBytes = (bytes: number) => void;

/** Size and SHA-256 (hex) of the bytes read. */
export interface Digest {
  size: number;
  sha256: string;
}

/**
 * Copies the first `bytesMax` bytes of a file into a new one and syncs it. Symbolic links are not followed. The
 * target's folders must exist.
 */
export async function copyFile(
  from: string,
  to: string,
  bytesMax: number,
  count: CountBytes,
): Promise<Digest> {
  const target = await open(to, "wx", FILE_MODE);
  try {
    const digest = await readChunks(from, bytesMax, async (chunk) => {
      await writeAll(target, chunk);
      count(chunk.length);
    });
    await target.sync();
    return digest;
  } finally {
    await target.close();
  }
}

/** Reads at most one byte more than `size`, so that a longer file is detected. */
export function digestFile(path: string, size: number, count: CountBytes): Promise<Digest> {
  return readChunks(path, size + 1, (chunk) => {
    count(chunk.length);
    return Promise.resolve();
  });
}

/** Writes a new file and syncs it. */
export async function writeBytes(path: string, bytes: Buffer): Promise<void> {
  const target = await open(path, "wx", FILE_MODE);
  try {
    await writeAll(target, bytes);
    await target.sync();
  } finally {
    await target.close();
  }
}

/** Reads a small file; rejects with BackupError if it is larger than `bytesMax`. */
export async function readBytes(path: string, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const { size } = await readChunks(path, bytesMax + 1, (chunk) => {
    chunks.push(Buffer.from(chunk));
    return Promise.resolve();
  });
  if (size > bytesMax) throw new BackupError(`${path}: larger than ${bytesMax} bytes`);
  return Buffer.concat(chunks);
}

/** Creates folders below one root and syncs them together. */
export class FolderTree {
  readonly #root: string;
  readonly #made = new Set<string>();

  constructor(root: string) {
    this.#root = root;
    this.#made.add(root);
  }

  /** Creates the folders of a file's path; returns the full path. */
  async prepare(path: string): Promise<string> {
    const full = join(this.#root, path);
    for (let folder = dirname(full); !this.#made.has(folder); folder = dirname(folder)) {
      await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
      this.#made.add(folder);
    }
    return full;
  }

  /** Syncs all folders. */
  async sync(): Promise<void> {
    for (const folder of this.#made) await syncFolder(folder);
  }
}

/** Syncs a folder, so that creations and renames in it are durable. */
export async function syncFolder(folder: string): Promise<void> {
  // Windows cannot sync a folder; NTFS journals names itself.
  if (process.platform === "win32") return;
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Yields the paths of all files below a folder, `/` as separator. Rejects on links and special files. */
export async function* listFiles(root: string, below = "", depth = 0): AsyncGenerator<string> {
  if (depth > DEPTH_MAX) throw new BackupError(`${join(root, below)}: nested too deeply`);
  for (const entry of await readdir(join(root, below), { withFileTypes: true })) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) yield* listFiles(root, path, depth + 1);
    else if (entry.isFile()) yield path;
    else throw new BackupError(`${join(root, path)}: neither a file nor a folder`);
  }
}

/** True if a folder is missing or empty. Rejects with BackupError if the path is a file. */
export async function isVacant(folder: string): Promise<boolean> {
  try {
    return (await readdir(folder)).length === 0;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return true;
    if (code === "ENOTDIR") throw new BackupError(`${folder} is not a folder`);
    throw error;
  }
}

/** Rejects with BackupError if a file system has less than `bytes` free. */
export async function requireRoom(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (free >= bytes) return;
  throw new BackupError(`${folder} has ${free} bytes free, but ${bytes} bytes are needed`);
}

async function readChunks(
  path: string,
  bytesMax: number,
  take: (chunk: Buffer) => Promise<void>,
): Promise<Digest> {
  const noFollow = process.platform === "win32" ? 0 : constants.O_NOFOLLOW;
  const source = await open(path, constants.O_RDONLY | noFollow);
  try {
    const hash = createHash("sha256");
    const chunk = Buffer.allocUnsafe(Math.max(1, Math.min(CHUNK_BYTES, bytesMax)));
    let size = 0;
    while (size < bytesMax) {
      const length = Math.min(chunk.length, bytesMax - size);
      const { bytesRead } = await source.read(chunk, 0, length, size);
      if (bytesRead === 0) break;
      const bytes = chunk.subarray(0, bytesRead);
      hash.update(bytes);
      await take(bytes);
      size += bytesRead;
    }
    return { size, sha256: hash.digest("hex") };
  } finally {
    await source.close();
  }
}

async function writeAll(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done);
    done += bytesWritten;
  }
}
