// A snapshot of an open log: the files of one moment, readable while writing continues.
import type { Catalogue } from "../catalogue/catalogue.ts";
import { listManifests } from "../catalogue/manifest-files.ts";
import type { Manifest } from "../catalogue/manifest.ts";
import type { Committer } from "../commit/committer.ts";
import type { Disk, DiskFile } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import type { Journal } from "../journal/journal.ts";
import { encodeMark, MARK_PATH } from "../journal/mark.ts";
import type { LogSnapshot, SnapshotFile } from "../types.ts";
import type { Checkpointer } from "../upkeep/checkpoint.ts";

/** Bytes per read. */
const CHUNK_BYTES = 1024 * 1024;

/** Options of `takeSnapshot`. */
export interface SnapshotOptions {
  disk: Disk;
  catalogue: Catalogue;
  committer: Committer;
  checkpointer: Checkpointer;
  journal: Journal;
  manifest: Manifest;
}

/*
 * All files are append-only, so the first bytes of each are the snapshot:
 *
 *   manifest   both copies      complete at the last checkpoint; no checkpoint runs while this is prepared
 *   journal    from the checkpoint up to the applied place P
 *   segments   everything that manifest and journal refer to, at least up to P; a recovery ignores the rest
 *   mark       written for P: a copy that lost a part of the journal is reported as damaged
 *
 * Manifest and journal are kept open, so later checkpoints may remove their names. Segments may be many; their removal
 * is postponed instead (`Checkpointer.hold`).
 */

/** Prepares a snapshot. Must run while no checkpoint can start. */
export async function takeSnapshot(options: SnapshotOptions): Promise<LogSnapshot> {
  const { disk, catalogue, committer, checkpointer, journal, manifest } = options;
  // In one step with the hold: what is applied later is above P.
  const place = committer.appliedPlace;
  const { topicCount: topics, partitionCount: partitions } = catalogue;
  const journals = journal.listFiles(place);
  const mark = { file: place.file, end: place.position, generation: manifest.generation };
  const { ends, release } = checkpointer.hold();
  const open: DiskFile[] = [];
  const releaseAll = async () => {
    release();
    await Promise.all(open.splice(0).map((file) => file.close()));
  };
  try {
    const files: SnapshotFile[] = [];
    for (const { path } of await listManifests(disk)) {
      files.push(await openNow(disk, path, (await disk.size(path)) ?? 0, open));
    }
    for (const { path, bytes } of journals) files.push(await openNow(disk, path, bytes, open));
    files.push(...(await listSegments(disk, ends)));
    files.push(fromBytes(MARK_PATH, encodeMark(mark)));
    return { topics, partitions, journal: place, files, release: releaseAll };
  } catch (error) {
    await releaseAll();
    throw error;
  }
}

async function openNow(
  disk: Disk,
  path: string,
  bytes: number,
  open: DiskFile[],
): Promise<SnapshotFile> {
  const file = await disk.open(path, "read");
  open.push(file);
  return { path, bytes, read: () => readFirst(file, path, bytes) };
}

async function listSegments(
  disk: Disk,
  ends: ReadonlyMap<string, number | undefined>,
): Promise<SnapshotFile[]> {
  const files: SnapshotFile[] = [];
  for (const [path, end] of [...ends].sort(([a], [b]) => (a < b ? -1 : 1))) {
    // A dropped file of a failed compaction may never have been created.
    const bytes = end ?? (await disk.size(path));
    if (bytes !== undefined)
      files.push({ path, bytes, read: () => readSegment(disk, path, bytes) });
  }
  return files;
}

async function* readSegment(disk: Disk, path: string, bytes: number): AsyncGenerator<Buffer> {
  const file = await disk.open(path, "read");
  try {
    yield* readFirst(file, path, bytes);
  } finally {
    await file.close();
  }
}

async function* readFirst(file: DiskFile, path: string, bytes: number): AsyncGenerator<Buffer> {
  for (let done = 0; done < bytes;) {
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, bytes - done));
    const count = await file.read(chunk, 0, chunk.length, done);
    if (count === 0) throw new LogError("corrupt", `${path} ends at ${done}, not at ${bytes}`);
    yield chunk.subarray(0, count);
    done += count;
  }
}

function fromBytes(path: string, contents: Buffer): SnapshotFile {
  return {
    path,
    bytes: contents.length,
    // oxlint-disable-next-line require-await -- the other files are read asynchronously
    async *read() {
      yield contents;
    },
  };
}
