// Copies, syncs and lists the files of a backup in constant memory.
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readdir, statfs, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncFolder } from "../files/replace-file.ts";
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
  phase: "copying" | "verifying" | "restoring";
}

/** Receives the number of bytes processed since the last call. */
export type CountBytes = (bytes: number) => void;

/** Size and SHA-256 (hex) of the bytes read. */
export interface Digest {
  size: number;
  sha256: string;
}

/** Transforms the contents of a file, for encryption. */
export type Transform = (contents: AsyncIterable<Buffer>) => AsyncIterable<Uint8Array>;

/**
 * Copies the first `bytesMax` bytes of a file into a new one and syncs it. Symbolic links are not followed. The
 * target's folders must exist. Returns the digest of the bytes read.
 */
export async function copyFile(
  from: string,
  to: string,
  bytesMax: number,
  count: CountBytes,
  transform: Transform = (contents) => contents,
): Promise<Digest> {
  const meter = new Meter(count);
  await writeStream(to, transform(meter.read(readChunks(from, bytesMax))));
  return meter.digest();
}

/** Writes a new file from a stream and syncs it. */
export async function writeStream(
  path: string,
  contents: AsyncIterable<Uint8Array>,
): Promise<void> {
  const target = await open(path, "wx", FILE_MODE);
  try {
    for await (const chunk of contents) await writeAll(target, chunk);
    await target.sync();
  } finally {
    await target.close();
  }
}

/** Measures the bytes that pass through. */
export class Meter {
  readonly #hash = createHash("sha256");
  readonly #count: CountBytes;
  #size = 0;

  constructor(count: CountBytes) {
    this.#count = count;
  }

  async *read<Chunk extends Uint8Array>(chunks: AsyncIterable<Chunk>): AsyncGenerator<Chunk> {
    for await (const chunk of chunks) {
      this.#hash.update(chunk);
      this.#size += chunk.length;
      yield chunk;
      this.#count(chunk.length);
    }
  }

  /** The digest of everything that has passed; call it once. */
  digest(): Digest {
    return { size: this.#size, sha256: this.#hash.digest("hex") };
  }
}

/** Reads at most one byte more than `size`, so that a longer file is detected. */
export async function digestFile(path: string, size: number, count: CountBytes): Promise<Digest> {
  const meter = new Meter(count);
  for await (const _ of meter.read(readChunks(path, size + 1)));
  return meter.digest();
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
  return collectBytes(readChunks(path, bytesMax + 1), bytesMax, path);
}

/** Collects a small stream; rejects with BackupError, which names `place`, if it is larger than `bytesMax`. */
export async function collectBytes(
  stream: AsyncIterable<Uint8Array>,
  bytesMax: number,
  place: string,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > bytesMax) throw new BackupError(`${place}: larger than ${bytesMax} bytes`);
    chunks.push(Buffer.from(chunk));
  }
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

/** Reads the first `bytesMax` bytes of a file. The buffer is used again for the next chunk. */
export async function* readChunks(path: string, bytesMax: number): AsyncGenerator<Buffer> {
  const noFollow = process.platform === "win32" ? 0 : constants.O_NOFOLLOW;
  const source = await open(path, constants.O_RDONLY | noFollow);
  try {
    const chunk = Buffer.allocUnsafe(Math.max(1, Math.min(CHUNK_BYTES, bytesMax)));
    for (let done = 0; done < bytesMax;) {
      const length = Math.min(chunk.length, bytesMax - done);
      const { bytesRead } = await source.read(chunk, 0, length, done);
      if (bytesRead === 0) break;
      yield chunk.subarray(0, bytesRead);
      done += bytesRead;
    }
  } finally {
    await source.close();
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done);
    done += bytesWritten;
  }
}

/** The difference of a file from its manifest in words; undefined if there is none. */
export function findDifference(file: Digest, digest: Digest): string | undefined {
  if (digest.size < file.size) return `${digest.size} bytes, expected ${file.size}`;
  if (digest.size > file.size) return `more than the expected ${file.size} bytes`;
  return digest.sha256 === file.sha256 ? undefined : "does not match its checksum";
}
