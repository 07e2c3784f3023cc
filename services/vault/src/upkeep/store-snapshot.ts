// Snapshots of a store in use: a consistent copy of the index, and the files that it refers to.
import { rmSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import {
  openSnapshotFile,
  readSnapshotFile,
  type Snapshot,
  type SnapshotFile,
} from "@platform/kernel/backup";
import { PlatformError } from "@platform/kernel/errors";
import type { StoreFolders } from "../disk/files.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import { measureIndex } from "../index/inspect.ts";
import { openIndexReader, type IndexConnection } from "../index/schema.ts";
import { readPosition } from "../index/snapshot.ts";
import type { ServiceEnvironment } from "../store/object-service.ts";
import { copyInThread } from "./index-copier.ts";

const PAGE = 500;
/** Files of the data folder besides the store: configuration, keys, users, events that could not be delivered. */
const OTHER_FILES = [
  "config.json",
  "access/master.key",
  "access/directory.json",
  "buckets.json",
  "events/dead.jsonl",
  "events/dead.jsonl.1",
  "scrub.json",
];

/** Options of `takeStoreSnapshot`. */
export interface StoreSnapshotOptions {
  environment: Pick<ServiceEnvironment, "blobs" | "bodies">;
  /** The data folder of a single drive. */
  folders: StoreFolders;
  freeSpace: FreeSpace;
  stopping: AbortSignal;
}

/**
 * Takes a snapshot. Segments and files are never rewritten, so the copy of the index determines their contents. A lease,
 * taken before the copy, keeps the collector from removing files that become garbage later.
 */
export async function takeStoreSnapshot(options: StoreSnapshotOptions): Promise<Snapshot> {
  const { environment, folders } = options;
  if (environment.blobs.drives.isErasureCoded) {
    throw new PlatformError(
      "not_available_yet",
      "Backups of a store on several drives are not available yet: copy its buckets with an S3 client.",
    );
  }
  const copy = join(folders.root, "index-backup.sqlite");
  const endLease = environment.bodies.leases.begin();
  let index: IndexConnection | undefined;
  const release = (): Promise<void> => {
    index?.close();
    removeCopy(copy);
    endLease();
    return Promise.resolve();
  };
  try {
    await copyIndex(options, copy);
    index = openIndexReader(copy);
    return {
      mark: { ...readPosition(copy)!, objects: countObjects(index) },
      bytes: measureSnapshot(index, copy),
      files: listFiles(folders, index, copy),
      release,
    };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Removes the copy of an interrupted backup. */
export function clearSnapshot(folders: StoreFolders): void {
  removeCopy(join(folders.root, "index-backup.sqlite"));
}

async function copyIndex(options: StoreSnapshotOptions, copy: string): Promise<void> {
  const { folders, freeSpace, stopping } = options;
  removeCopy(copy);
  freeSpace.require(measureIndex(folders.index));
  const findings = await copyInThread({ from: folders.index, to: copy }, stopping);
  if (findings.length === 0) return;
  throw new PlatformError(
    "unavailable",
    `The index is damaged (${findings.slice(0, 3).join("; ")}): stop storage and run platform-vaultd fsck.`,
  );
}

function removeCopy(copy: string): void {
  for (const ending of ["", "-journal", "-wal", "-shm"])
    rmSync(`${copy}${ending}`, { force: true });
}

function countObjects(index: IndexConnection): number {
  return Number(index.sql("select count(*) as n from current").get()?.["n"]);
}

function measureSnapshot(index: IndexConnection, copy: string): number {
  const files = index.sql("select sum(extent) as bytes from blobs where kind = 'file'").get();
  const segments = index.sql("select sum(bytes) as bytes from segments where live > 0").get();
  return statSync(copy).size + Number(files?.["bytes"] ?? 0) + Number(segments?.["bytes"] ?? 0);
}

async function* listFiles(
  folders: StoreFolders,
  index: IndexConnection,
  copy: string,
): AsyncGenerator<SnapshotFile> {
  yield openSnapshotFile("index.sqlite", copy);
  for (const path of OTHER_FILES) {
    const file = await readSnapshotFile(path, join(folders.root, path));
    if (file !== undefined) yield file;
  }
  for (const { id, bytes } of listSegments(index)) {
    yield openStoreFile(folders, folders.segment(id), bytes);
  }
  let after = -1;
  for (;;) {
    const rows = index
      .sql("select id from blobs where id > ? and kind = 'file' order by id limit ?")
      .all(after, PAGE);
    for (const row of rows) {
      after = Number(row["id"]);
      yield openStoreFile(folders, folders.file(after));
    }
    if (rows.length < PAGE) return;
  }
}

// The index knows the end of the last record of each segment, with up to its head too much.
function listSegments(index: IndexConnection): { id: number; bytes: number }[] {
  return index
    .sql("select id, bytes from segments where live > 0 order by id")
    .all()
    .map((row) => ({ id: Number(row["id"]), bytes: Number(row["bytes"]) }));
}

async function openStoreFile(
  folders: StoreFolders,
  source: string,
  bytesMax = Infinity,
): Promise<SnapshotFile> {
  const path = relative(folders.root, source).replaceAll("\\", "/");
  const size = statSync(source, { throwIfNoEntry: false })?.size;
  if (size === undefined) {
    throw new Error(`${path} is missing: run a scrub, which lists the objects that it belongs to`);
  }
  return openSnapshotFile(path, source, Math.min(size, bytesMax));
}
