// Snapshots of a store in use: a consistent copy of the index, and the files that it refers to.
import { readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import {
  openSnapshotFile,
  readSnapshotFile,
  type Snapshot,
  type SnapshotFile,
} from "@platform/kernel/backup";
import { PlatformError } from "@platform/kernel/errors";
import type { Drive } from "../blob/drive/drive.ts";
import type { DriveSet } from "../blob/drive/drive-set.ts";
import type { StoreFolders } from "../disk/files.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import { measureIndex } from "../index/inspect.ts";
import { openIndexReader, PAGE_BYTES, type IndexConnection } from "../index/schema.ts";
import { readPosition } from "../index/snapshot.ts";
import type { ServiceEnvironment } from "../store/object-service.ts";
import { copyInThread } from "./index-copier.ts";

const PAGE = 500;
/** Files of the data folder besides the store: configuration, keys, users, events that could not be delivered. */
const OTHER_FILES = [
  "config.json",
  "access/master.key",
  "access/directory.json",
  // Behind all that its keys seal, so that it has them all.
  "access/encryption-keys.json",
  "buckets.json",
  "events/dead.jsonl",
  "events/dead.jsonl.1",
  "scrub.json",
];
/** Copies of the index, one for each snapshot that is held. */
const COPY_NAME = /^index-backup(?:-\d+)?\.sqlite/;
let copies = 0;

/** The part of a snapshot's mark that describes its drives; missing for a single folder. */
export interface DrivesMark {
  /** Number of slots, and of drives that may be lost. */
  drives: number;
  parity: number;
  /** Slots whose files are contained; the others were absent and are rebuilt after a restore. */
  slots: number[];
}

export interface StoreSnapshotOptions {
  environment: Pick<ServiceEnvironment, "blobs" | "bodies">;
  /** The data folder. */
  folders: StoreFolders;
  /** Path of the index that has every acknowledged commit. */
  index: string;
  freeSpace: FreeSpace;
  /** Keeps all keys that the copy of the index may name, until the returned function is called. */
  holdKeys: () => (() => void) | undefined;
  /** Limit of the index's log while it is copied. */
  logBytesMax: number;
  stopping: AbortSignal;
}

/**
 * Takes a snapshot. Segments and files are never rewritten, so the copy of the index determines their contents. A lease,
 * taken before the copy, keeps the collector from removing files that become garbage later. Of several drives, each
 * contributes its own shards and copies of segments: a restored store is as redundant as this one.
 */
export async function takeStoreSnapshot(options: StoreSnapshotOptions): Promise<Snapshot> {
  const { environment } = options;
  const { drives } = environment.blobs;
  copies += 1;
  const copy = join(dirname(options.index), `index-backup-${copies}.sqlite`);
  const endLease = environment.bodies.leases.begin();
  const endHold = options.holdKeys();
  let index: IndexConnection | undefined;
  const release = (): Promise<void> => {
    index?.close();
    removeCopy(copy);
    endLease();
    endHold?.();
    return Promise.resolve();
  };
  try {
    await copyIndex(options, copy);
    index = openIndexReader(copy);
    const slots = drives.present.map(({ slot }) => slot);
    const { parity, all } = drives;
    const several: DrivesMark = { drives: all.length, parity, slots };
    return {
      mark: {
        ...readPosition(copy)!,
        objects: countObjects(index),
        ...(drives.isErasureCoded ? { several: { ...several } } : {}),
      },
      bytes: measureSnapshot(drives, index, copy),
      files: listFiles(options, index, copy, slots),
      release,
    };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Removes the copies of interrupted backups. */
export function clearSnapshot(folders: readonly StoreFolders[]): void {
  for (const { root } of folders) {
    for (const name of readdirSync(root)) {
      if (COPY_NAME.test(name)) rmSync(join(root, name), { force: true });
    }
  }
}

/** Folder of a drive's files in a snapshot of several drives. */
export function nameDriveFolder(slot: number): string {
  return `drives/${slot}`;
}

async function copyIndex(options: StoreSnapshotOptions, copy: string): Promise<void> {
  const { index, freeSpace, logBytesMax, stopping } = options;
  removeCopy(copy);
  freeSpace.require(measureIndex(index));
  const findings = await copyInThread({ from: index, to: copy, logBytesMax }, stopping);
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

// With several drives an estimate: shards have the size of the body and its parity, segments one copy for each lost drive.
function measureSnapshot({ data, parity }: DriveSet, index: IndexConnection, copy: string): number {
  const sum = (query: string): number => Number(index.sql(query).get()?.["bytes"] ?? 0);
  const files = sum("select sum(extent) as bytes from blobs where kind = 'file'");
  const segments = sum("select sum(bytes) as bytes from segments where live > 0");
  const shards = Math.ceil((files * (data + parity)) / data);
  return statSync(copy).size + shards + segments * (parity + 1);
}

async function* listFiles(
  { folders, environment }: StoreSnapshotOptions,
  index: IndexConnection,
  copy: string,
  slots: readonly number[],
): AsyncGenerator<SnapshotFile> {
  const { drives } = environment.blobs;
  yield { ...(await openSnapshotFile("index.sqlite", copy)), pageBytes: PAGE_BYTES };
  for (const path of OTHER_FILES) {
    const file = await readSnapshotFile(path, join(folders.root, path));
    if (file !== undefined) yield file;
  }
  const isIncluded = ({ slot }: Drive): boolean => slots.includes(slot);
  if (drives.isErasureCoded) {
    for (const drive of drives.all.filter(isIncluded)) {
      const source = join(drive.folders.root, "drive.json");
      yield openSnapshotFile(`${nameDriveFolder(drive.slot)}/drive.json`, source);
    }
  }
  for (const { id, bytes } of listSegments(index)) {
    const holders = drives.rankCopies(id).filter(isIncluded);
    yield* openCopies(drives, holders, 1, (each) => each.segment(id), bytes);
  }
  for (const id of listBodies(index)) {
    const holders = drives.rankShards(id).filter(isIncluded);
    yield* openCopies(drives, holders, drives.data, (each) => each.file(id), Infinity);
  }
}

// The index knows the end of the last record of each segment, with up to its head too much.
function listSegments(index: IndexConnection): { id: number; bytes: number }[] {
  return index
    .sql("select id, bytes from segments where live > 0 order by id")
    .all()
    .map((row) => ({ id: Number(row["id"]), bytes: Number(row["bytes"]) }));
}

function* listBodies(index: IndexConnection): Generator<number> {
  for (let after = -1; ;) {
    const rows = index
      .sql("select id from blobs where id > ? and kind = 'file' order by id limit ?")
      .all(after, PAGE);
    for (const row of rows) yield (after = Number(row["id"]));
    if (rows.length < PAGE) return;
  }
}

// A drive that is being healed may lack a file; it is healed after a restore as well. `needed` files are enough for that.
async function* openCopies(
  drives: DriveSet,
  holders: readonly Drive[],
  needed: number,
  locate: (folders: StoreFolders) => string,
  bytesMax: number,
): AsyncGenerator<SnapshotFile> {
  const found = holders.flatMap(({ slot, folders }) => {
    const source = locate(folders);
    const found = statSync(source, { throwIfNoEntry: false });
    if (found === undefined) return [];
    const below = relative(folders.root, source).replaceAll("\\", "/");
    const path = drives.isErasureCoded ? `${nameDriveFolder(slot)}/${below}` : below;
    const { ino, size, mtimeMs } = found;
    // A restored file of this name is another file.
    const stamp = `${ino}-${size}-${mtimeMs}`;
    return [{ path, source, bytes: Math.min(size, bytesMax), stamp }];
  });
  if (found.length < needed) {
    const [{ folders }] = drives.all as [Drive];
    const path = relative(folders.root, locate(folders));
    throw new Error(`${path} is missing: run a scrub, which lists the objects that it belongs to`);
  }
  for (const { path, source, bytes, stamp } of found) {
    yield { ...(await openSnapshotFile(path, source, bytes)), stamp };
  }
}
