// Snapshots: the files of a running service at one moment.
import { readFile, stat } from "node:fs/promises";
import { readChunks } from "./files.ts";
import { BackupError } from "./error.ts";
import type { BackupManifest } from "./manifest.ts";

/** A file of a snapshot: its path below `data/` in the backup, with `/` as separator, and its size in bytes. */
export interface SnapshotFile {
  path: string;
  bytes: number;
  /** At the same path, files of two snapshots with the same stamp are the same: a repository does not read them again. */
  stamp?: string;
  /** The file changes in pages of so many bytes, such as a database: a repository stores the changed ones. */
  pageBytes?: number;
  /** A file of the disk that begins with these bytes until the snapshot is released: threads may read it by themselves. */
  source?: string;
  /** Reads exactly `bytes` bytes, in pieces that are valid until the next one is requested. */
  read: () => AsyncIterable<Uint8Array>;
}

/** The files of a service at one moment, which do not change until `release`. */
export interface Snapshot {
  /** The service's description of the moment: everything acknowledged before it is in the files. */
  mark: BackupManifest["mark"];
  /** Total size of the files in bytes, for progress; may be approximate. */
  bytes: number;
  /** In the order in which they are sent. Each is read before the next one is requested. */
  files: Iterable<SnapshotFile> | AsyncIterable<SnapshotFile>;
  /** Frees everything that the snapshot holds. Called once. */
  release: () => Promise<void>;
}

/** A file that exists until the snapshot is released, or its first `bytes` bytes. Rejects if it does not exist. */
export async function openSnapshotFile(
  path: string,
  source: string,
  bytes?: number,
): Promise<SnapshotFile> {
  const size = bytes ?? (await stat(source)).size;
  return { path, bytes: size, source, read: () => readExactly(source, size) };
}

/** A small file as it is now; undefined if it does not exist. Files that are replaced must be read at once. */
export async function readSnapshotFile(
  path: string,
  source: string,
): Promise<SnapshotFile | undefined> {
  const bytes = await readFile(source).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  if (bytes === undefined) return undefined;
  return {
    path,
    bytes: bytes.length,
    // oxlint-disable-next-line require-await -- other files are read asynchronously
    async *read() {
      yield bytes;
    },
  };
}

async function* readExactly(source: string, bytes: number): AsyncGenerator<Buffer> {
  let done = 0;
  for await (const chunk of readChunks(source, bytes)) {
    done += chunk.length;
    // The receiver may hold several chunks.
    yield Buffer.from(chunk);
  }
  if (done < bytes) throw new BackupError(`${source} has ${done} bytes, expected ${bytes}`);
}
