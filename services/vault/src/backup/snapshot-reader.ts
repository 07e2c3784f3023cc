// Reads a snapshot of a repository: its index is staged at once, its segments and files when they are needed.
import { mkdirSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import {
  BackupError,
  type FileEntry,
  type Repository,
  restoreFile,
  type SavedSnapshot,
} from "@platform/kernel/backup";
import type { OpenBlob } from "../blob/blob-reader.ts";
import { openCopy } from "../blob/copy-reader.ts";
import { Drive } from "../blob/drive/drive.ts";
import { DriveSet } from "../blob/drive/drive-set.ts";
import { readIdentity } from "../blob/drive/identity.ts";
import { ReedSolomon } from "../blob/erasure/reed-solomon.ts";
import { FrameMemory } from "../blob/frame-memory.ts";
import { ShardBlob } from "../blob/shard-reader.ts";
import { StoreFolders } from "../disk/files.ts";
import { type BlobRow, buildBlobRecord, type VersionRow } from "../index/records.ts";
import { locateRemote } from "../query/remote-place.ts";
import {
  type IndexConnection,
  openIndexReader,
  openIndexWriter,
  VERSION_COLUMNS,
} from "../index/schema.ts";
import {
  damagedRow,
  matchesSeal,
  sealBlob,
  type SealedPart,
  sealPart,
  sealVersion,
} from "../index/seal.ts";
import type { BlobRecord } from "../model/blob.ts";
import { type Bucket, isHiddenBucket } from "../model/bucket.ts";
import { type DrivesMark, nameDriveFolder } from "../upkeep/store-snapshot.ts";

const INDEX_NAME = "index.sqlite";
const OPEN_FILES_MAX = 64;

/** A version of a key in the snapshot; `noncurrent_since` is null for the newest one. */
export interface SnapshotVersion extends VersionRow {
  marker: number;
  noncurrent_since: number | null;
  live: number;
}

/** A place among the versions of a bucket: behind a key, or behind one of its versions. */
export interface SnapshotPosition {
  /** In base64. */
  readonly key?: string;
  readonly seq?: number;
}

/** Options of the reader. */
export interface SnapshotReaderOptions {
  repository: Repository;
  snapshot: SavedSnapshot;
  /** Folder for staged files, which is emptied first. */
  folder: string;
  /** Throws if the disk has no room for so many bytes. */
  requireSpace: (bytes: number) => void;
  /** Opens a body that is in a remote, as far as this store has the remote. */
  openRemote: (blob: BlobRecord) => Promise<OpenBlob>;
}

/** An open snapshot. */
export class SnapshotReader {
  readonly #options: SnapshotReaderOptions;
  readonly #catalogue: DatabaseSync;
  readonly #findEntry: StatementSync;
  readonly #staged = new Map<string, Promise<boolean>>();
  readonly #memory = new FrameMemory();
  #index: IndexConnection | undefined;
  #drives: DriveSet | undefined;
  #code: ReedSolomon | undefined;

  private constructor(options: SnapshotReaderOptions) {
    const { folder } = options;
    this.#options = options;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#catalogue = new DatabaseSync(join(folder, "files.sqlite"));
    this.#catalogue.exec("pragma journal_mode = off; pragma synchronous = off");
    this.#catalogue.exec("create table files (path text primary key, entry text) without rowid");
    this.#findEntry = this.#catalogue.prepare("select entry from files where path = ?");
  }

  /** Lists the files of a snapshot that was verified, and stages its index. */
  static async open(options: SnapshotReaderOptions, signal: AbortSignal): Promise<SnapshotReader> {
    const reader = new SnapshotReader(options);
    try {
      await reader.#list(signal);
      await reader.#openIndex();
      await reader.#openDrives();
      return reader;
    } catch (error) {
      await reader.close();
      throw error;
    }
  }

  /** The buckets in the order of their names, with their numbers. */
  listBuckets(): { id: number; bucket: Bucket }[] {
    return this.#require()
      .sql("select id, document from buckets order by name")
      .all()
      .map((row) => ({
        id: Number(row["id"]),
        bucket: JSON.parse(String(row["document"])) as Bucket,
      }))
      .filter(({ bucket }) => !isHiddenBucket(bucket.name));
  }

  /** Versions of one key behind a position, the oldest first; undefined at the end of the bucket. */
  readKey(
    bucket: number,
    { key, seq }: SnapshotPosition,
    rowsMax: number,
  ): { key: Buffer; rows: SnapshotVersion[] } | undefined {
    const found =
      key !== undefined && seq !== undefined
        ? Buffer.from(key, "base64")
        : this.#findNextKey(bucket, key);
    if (found === undefined) return undefined;
    const rows = this.#require()
      .sql(
        `select * from (select ${VERSION_COLUMNS}, 0 as marker, null as noncurrent_since, 1 as live from current where bucket = ?1 and key = ?2 ` +
          `union all select ${VERSION_COLUMNS}, marker, noncurrent_since, 0 as live from versions where bucket = ?1 and key = ?2) ` +
          "where seq > ?3 order by seq limit ?4",
      )
      .all(bucket, found, seq ?? 0, rowsMax) as unknown as SnapshotVersion[];
    for (const row of rows) {
      if (!matchesSeal(row.seal, sealVersion(row))) throw damagedRow("a version of the snapshot");
    }
    return { key: found, rows };
  }

  /** A body with the number of its references. */
  findBlob(id: number): { blob: BlobRecord; refs: number } {
    const row = this.#require().sql("select * from blobs where id = ?").get(id) as unknown as
      | (BlobRow & { refs: number })
      | undefined;
    if (row === undefined || !matchesSeal(row.seal, sealBlob(row))) {
      throw damagedRow("a body of the snapshot");
    }
    return { blob: locateRemote(this.#require(), buildBlobRecord(row)), refs: row.refs };
  }

  /** True if a body, or a part of it, is in a remote. */
  isRemote(id: number): boolean {
    return (
      this.#require()
        .sql(
          "select 1 from remote_blobs where blob = ?1 or blob in (select part from blob_parts where blob = ?1) limit 1",
        )
        .get(id) !== undefined
    );
  }

  /** The parts of a body in their order. */
  listParts(id: number): SealedPart[] {
    const rows = this.#require()
      .sql(
        "select blob as owner, start, number, part as blob, size, etag, modified, checksum, seal from blob_parts where blob = ? order by number",
      )
      .all(id) as unknown as (SealedPart & { seal: number | null })[];
    for (const row of rows) {
      if (!matchesSeal(row.seal, sealPart(row))) throw damagedRow("a part of the snapshot");
    }
    return rows;
  }

  /** The vector of a version. */
  findVector(bucket: number, key: Uint8Array, version: string): Uint8Array | undefined {
    const row = this.#require()
      .sql("select data from vectors where bucket = ? and key = ? and version = ?")
      .get(bucket, key, version);
    return row?.["data"] as Uint8Array | undefined;
  }

  /** The stored bytes of a body that is not composite. */
  async *readStored(blob: BlobRecord): AsyncGenerator<Buffer, void, undefined> {
    const open = await this.#open(blob);
    try {
      yield* open.read(0, blob.stored);
    } finally {
      open.close();
      // Nothing else is in it.
      if (blob.place.kind === "file") this.#forget(this.#locateFiles(blob));
    }
  }

  /** A small file of the snapshot. */
  async readSmall(path: string): Promise<Buffer | undefined> {
    return (await this.#stage(path)) ? readFile(this.#locate(path)) : undefined;
  }

  /** Removes the staged segments and files. */
  async clear(): Promise<void> {
    const drives = this.#drives?.all ?? [];
    await Promise.all(drives.map(({ files }) => files.close()));
    for (const path of this.#staged.keys()) {
      if (path !== INDEX_NAME) rmSync(this.#locate(path), { force: true });
    }
    this.#staged.clear();
    await this.#openDrives();
  }

  /** Closes all files, and removes the folder. */
  async close(): Promise<void> {
    this.#index?.close();
    await Promise.all((this.#drives?.all ?? []).map(({ files }) => files.close()));
    this.#catalogue.close();
    rmSync(this.#options.folder, { recursive: true, force: true });
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { repository, snapshot } = this.#options;
    const insert = this.#catalogue.prepare("insert into files values (?, ?)");
    for await (const entries of repository.readLists(snapshot)) {
      signal.throwIfAborted();
      this.#catalogue.exec("begin");
      for (const entry of entries) insert.run(entry.path, JSON.stringify(entry));
      this.#catalogue.exec("commit");
    }
  }

  // An index of an older version gets the tables of this one.
  async #openIndex(): Promise<void> {
    if (!(await this.#stage(INDEX_NAME))) throw new BackupError("the snapshot has no index");
    const path = this.#locate(INDEX_NAME);
    openIndexWriter(path).close();
    this.#index = openIndexReader(path);
  }

  async #openDrives(): Promise<void> {
    const { several } = this.#options.snapshot.mark.point as { several?: DrivesMark };
    const open = (slot: number, folder: string): Drive => {
      const root = join(this.#options.folder, folder);
      return new Drive(slot, new StoreFolders(root), OPEN_FILES_MAX, this.#memory);
    };
    if (several === undefined) {
      this.#drives = new DriveSet([open(0, "")], 1, 0);
      return;
    }
    const drives = Array.from({ length: several.drives }, (_, slot) =>
      open(slot, nameDriveFolder(slot)),
    );
    for (const drive of drives) {
      if (!several.slots.includes(drive.slot)) drive.absence = "it is not in the snapshot";
    }
    const [slot = 0] = several.slots;
    await this.#stage(`${nameDriveFolder(slot)}/drive.json`);
    const identity = readIdentity(drives[slot]!.folders.root);
    if (identity === undefined) throw new BackupError("the snapshot has no identity of its drives");
    this.#drives = new DriveSet(drives, identity.data, identity.parity);
    this.#code = new ReedSolomon(identity.data, identity.parity);
  }

  #findNextKey(bucket: number, after: string | undefined): Buffer | undefined {
    const from = after === undefined ? Buffer.alloc(0) : Buffer.from(after, "base64");
    const compare = after === undefined ? ">=" : ">";
    const keys = ["current", "versions"].flatMap((table) => {
      const row = this.#require()
        .sql(`select key from ${table} where bucket = ? and key ${compare} ? order by key limit 1`)
        .get(bucket, from);
      return row === undefined ? [] : [Buffer.from(row["key"] as Uint8Array)];
    });
    return keys.toSorted((a, b) => Buffer.compare(a, b))[0];
  }

  async #open(blob: BlobRecord): Promise<OpenBlob> {
    const drives = this.#drives!;
    const { place } = blob;
    const [first] = drives.all;
    if (place.kind === "remote") {
      const copy = place.at?.copy;
      return copy === undefined ? this.#options.openRemote(blob) : this.#open(copy);
    }
    if (place.kind === "inline") return first!.reader.open(blob);
    for (const path of this.#locateFiles(blob)) await this.#stage(path);
    if (!drives.isErasureCoded) return first!.reader.open(blob);
    // Damage is reported by the error of the read.
    const onDamage = (): undefined => undefined;
    if (place.kind === "segment") return openCopy(drives, { ...blob, place }, onDamage);
    return new ShardBlob(blob, drives, this.#code!, onDamage).open();
  }

  // The files of the snapshot that may have bytes of a body.
  #locateFiles(blob: BlobRecord): string[] {
    const drives = this.#drives!;
    const { place } = blob;
    const isSegment = place.kind === "segment";
    const holders = isSegment ? drives.rankCopies(place.segment) : drives.rankShards(blob.id);
    return holders.map(({ slot, folders }) => {
      const path = isSegment ? folders.segment(place.segment) : folders.file(blob.id);
      const below = path.slice(folders.root.length + 1).replaceAll("\\", "/");
      return drives.isErasureCoded ? `${nameDriveFolder(slot)}/${below}` : below;
    });
  }

  #forget(paths: readonly string[]): void {
    for (const path of paths) {
      rmSync(this.#locate(path), { force: true });
      this.#staged.delete(path);
    }
  }

  // False if the snapshot has no such file.
  #stage(path: string): Promise<boolean> {
    let staging = this.#staged.get(path);
    if (staging === undefined) {
      staging = this.#restore(path);
      this.#staged.set(path, staging);
      staging.catch(() => this.#staged.delete(path));
    }
    return staging;
  }

  async #restore(path: string): Promise<boolean> {
    const row = this.#findEntry.get(path);
    if (row === undefined) return false;
    const { repository, requireSpace } = this.#options;
    const entry = JSON.parse(String(row["entry"])) as FileEntry;
    requireSpace(entry.bytes);
    const to = this.#locate(path);
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    rmSync(to, { force: true });
    await restoreFile(repository, entry, to);
    return true;
  }

  #locate(path: string): string {
    return join(this.#options.folder, path);
  }

  #require(): IndexConnection {
    if (this.#index === undefined) throw new TypeError("the snapshot is not open");
    return this.#index;
  }
}
