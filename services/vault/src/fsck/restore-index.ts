// Builds a new index from the remains: rows of the damaged index, of its copy, and self-describing records.
import { existsSync } from "node:fs";
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { StoreFolders } from "../disk/files.ts";
import type { BlobPlace, BlobRecord, RemotePlace } from "../model/blob.ts";

import { isBefore, readMark, type IndexMark } from "../index/mark.ts";
import type { BlobRow, VersionRow } from "../index/records.ts";
import { FORMAT_VERSION, openIndexWriter, VERSION_COLUMNS } from "../index/schema.ts";
import { sealBucket, sealRemoteBlob, sealVector } from "../index/seal.ts";
import { BLOB_COLUMNS, listBlobPartValues, listBlobValues } from "../index/sealed-values.ts";
import { findLastGeneration } from "../index/start-check.ts";
import { recountUsage } from "../index/usage-rows.ts";
import {
  buildVersionRow,
  guessBucket,
  isObjectRecord,
  readBuckets,
  readRecords,
  type FoundRecord,
  type ObjectRecord,
} from "./records.ts";
import { countReferences, placeVersions, type FoundVersion } from "./place-rows.ts";
import { Salvage, type Row } from "./salvage.ts";
import { OTHER_TABLES, readText, VERSION_TABLES } from "./tables.ts";

/** Sources of the new index, and what it lacks. */
export interface RestoreReport {
  objects: number;
  /** Versions by their source. */
  fromIndex: number;
  fromCopy: number;
  fromRecords: number;
  /** Objects with a known name that could not be restored. */
  lost: { name: string; reason: string }[];
  /** Losses without a name, in sentences. */
  notes: string[];
}

const IDS_PER_GENERATION = 2 ** 32;
const SEQUENCE_RANGE = 100_000;

/** Builds a new index at `target`. The files of the old one are read and not changed. */
export async function restoreIndex(
  folders: StoreFolders,
  target: string,
  work: string,
): Promise<RestoreReport> {
  const restorer = new IndexRestorer(folders, target);
  try {
    restorer.addIndex(work);
    await restorer.addRecords();
    return restorer.finish();
  } finally {
    restorer.close();
  }
}

class IndexRestorer {
  readonly #folders: StoreFolders;
  readonly #database: DatabaseSync;
  readonly #report: RestoreReport = {
    objects: 0,
    fromIndex: 0,
    fromCopy: 0,
    fromRecords: 0,
    lost: [],
    notes: [],
  };
  readonly #mark: IndexMark | undefined;
  #position: IndexMark = { commitGeneration: 0, commit: 0 };
  #generation: number;
  // The index was read completely and is up to date.
  #isComplete = false;
  // It was read completely but is older: blobs with lower numbers than its newest blob that it lacks were deleted.
  #lastKnownBlob = 0;
  #seq = 0;

  constructor(folders: StoreFolders, target: string) {
    this.#folders = folders;
    this.#mark = readMark(folders.index).mark;
    this.#generation = Math.max(findLastGeneration(folders), this.#mark?.commitGeneration ?? 0);
    this.#database = openIndexWriter(target).database;
    this.#database.exec("pragma synchronous = off; pragma temp_store = file; begin");
    this.#database.exec(
      `create temp table found as select ${VERSION_COLUMNS}, marker, noncurrent_since from versions`,
    );
    this.#database.exec("create unique index temp.found_by_key on found (bucket, key, seq)");
  }

  close(): void {
    this.#database.close();
  }

  /** Adds the rows of the index, and of its copy if the index is incomplete. */
  addIndex(work: string): void {
    const { index, indexCopy } = this.#folders;
    const isThere = existsSync(index) || existsSync(`${index}-wal`);
    const salvage = isThere ? Salvage.open(index, work) : undefined;
    if (salvage !== undefined) {
      this.#report.fromIndex = this.#addRows(salvage);
      this.#findBlobs(salvage);
      const isRolledBack = this.#mark !== undefined && isBefore(this.#position, this.#mark);
      this.#isComplete = salvage.isComplete && !isRolledBack;
      if (salvage.isComplete) this.#lastKnownBlob = this.#count("select max(id) as n from blobs");
      salvage.close();
    }
    if (this.#isComplete) return;
    this.#tellGap(salvage !== undefined);
    const copy = existsSync(indexCopy) ? Salvage.open(indexCopy, work) : undefined;
    if (copy === undefined) return;
    const before = this.#position;
    this.#report.fromCopy = this.#addRows(copy);
    if (isBefore(this.#position, before)) this.#position = before;
    copy.close();
  }

  /** Adds objects and bodies that only records describe. */
  async addRecords(): Promise<void> {
    if (this.#isComplete && this.#run(MISSING_BLOBS).length === 0) return;
    const records = await readRecords(this.#folders);
    for (const row of this.#run(MISSING_BLOBS)) {
      const record = records.get(Number(row["id"]));
      if (record !== undefined) this.#addBlob(record.blob, records);
    }
    if (this.#isComplete) return;
    const objects = [...records.values()].filter(isObjectRecord);
    objects.sort((a, b) => a.description.at - b.description.at || a.blob.id - b.blob.id);
    for (const bucket of readBuckets(this.#folders)) this.#addBucket(bucket.name, () => bucket);
    for (const record of objects) this.#addObject(record, records);
  }

  /** Moves everything to its table, and counts it. */
  finish(): RestoreReport {
    this.#nameBuckets();
    this.#dropLost();
    placeVersions(this.#database);
    this.#database.exec(DROP_LOST_VECTORS);
    countReferences(this.#database);
    recountUsage(this.#database, FORMAT_VERSION);
    this.#writeMeta();
    this.#database.exec("drop table temp.found; commit; pragma wal_checkpoint(truncate)");
    return this.#report;
  }

  #addRows(salvage: Salvage): number {
    for (const table of OTHER_TABLES) {
      const { name, columns, seal } = table;
      const all = seal === undefined ? columns : [...columns, "seal"];
      const insert = this.#database.prepare(
        `insert or ignore into ${name} (${all.join(", ")}) values (${all.map(() => "?").join(", ")})`,
      );
      for (const row of salvage.readRows(table)) {
        const values = columns.map((column) => row[column] ?? null);
        insert.run(...values, ...(seal === undefined ? [] : [seal(row)]));
      }
    }
    let added = 0;
    for (const table of VERSION_TABLES) {
      for (const row of salvage.readRows(table)) {
        added += this.#addVersion({ marker: 0, noncurrent_since: null, ...row } as never);
      }
    }
    const meta = new Map(
      salvage.find("select * from meta").map((row) => [row["name"], Number(row["value"])]),
    );
    this.#seq = Math.max(this.#seq, this.#count("select max(id) as n from vectors"));
    this.#generation = Math.max(this.#generation, meta.get("generation") ?? 0);
    this.#position = {
      commitGeneration: meta.get("commit_generation") ?? 0,
      commit: meta.get("commit") ?? 0,
    };
    return added;
  }

  // Rows of a damaged tree that a scan misses may be found by their keys.
  #findBlobs(salvage: Salvage): void {
    const blobs = OTHER_TABLES.find(({ name }) => name === "blobs")!;
    for (const { id } of this.#run(MISSING_BLOBS)) {
      for (const row of salvage.find("select * from blobs where id = ?", id!)) {
        if (blobs.isWhole(row)) this.#insertBlob(row as unknown as BlobRow);
      }
    }
  }

  #addVersion(row: FoundVersion): number {
    this.#seq = Math.max(this.#seq, row.seq);
    const columns = VERSION_COLUMNS.split(", ");
    const values = columns.map((column) => (row as unknown as Row)[column] ?? null);
    const marks = [...columns, "marker", "noncurrent_since"].map(() => "?").join(", ");
    const { changes } = this.#database
      .prepare(`insert or ignore into temp.found values (${marks})`)
      .run(...values, row.marker, row.noncurrent_since);
    return Number(changes);
  }

  #insertBlob(row: BlobRow): void {
    this.#database
      .prepare(
        `insert or ignore into blobs (refs, ${BLOB_COLUMNS}) values (0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      )
      .run(...listBlobValues(row));
  }

  // True if the body is complete.
  #addBlob(blob: BlobRecord, records: ReadonlyMap<number, FoundRecord>): boolean {
    const { place } = blob;
    const shared = findShared(place);
    this.#insertBlob({
      id: blob.id,
      kind: place.kind,
      size: blob.size,
      stored: blob.stored,
      segment: shared !== undefined && "segment" in shared ? shared.segment : null,
      position: shared !== undefined && "position" in shared ? shared.position : null,
      extent: blob.extent,
      cipher: blob.cipher === undefined ? null : JSON.stringify(blob.cipher),
      data: null,
    });
    if (place.kind === "remote" && place.at !== undefined) this.#addRemoteBlob(blob.id, place.at);
    const description = records.get(blob.id)?.description;
    if (description === undefined || !("parts" in description)) return true;
    let start = 0;
    for (const part of description.parts) {
      const record = records.get(part.blob);
      const isThere = this.#run("select 1 from blobs where id = ?", part.blob).length > 0;
      if (record === undefined && !isThere) return false;
      if (record !== undefined) this.#addBlob(record.blob, records);
      this.#database
        .prepare("insert or ignore into blob_parts values (?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .run(...listBlobPartValues({ ...part, owner: blob.id, start }));
      start += part.size;
    }
    return true;
  }

  #addRemoteBlob(blob: number, { remote, bucket, key, bytes, position }: RemotePlace): void {
    const row = { blob, remote, bucket, key, bytes, position, copy: null };
    this.#run(
      "insert or ignore into remote_blobs values (?, ?, ?, ?, ?, ?, ?, ?)",
      ...Object.values(row),
      sealRemoteBlob(row),
    );
  }

  #addObject(record: ObjectRecord, records: ReadonlyMap<number, FoundRecord>): void {
    const { description, blob } = record;
    if (blob.id <= this.#lastKnownBlob) return;
    if (this.#run("select 1 from temp.found where blob = ?", blob.id).length > 0) return;
    const bucket = this.#addBucket(description.bucket, () => guessBucket(description));
    const row = buildVersionRow(record, bucket, 0);
    const others = this.#run(
      "select * from temp.found where bucket = ? and key = ? order by seq",
      bucket,
      row.key,
    ) as unknown as FoundVersion[];
    if (others.some((other) => other.version === row.version && other.modified >= row.modified)) {
      return;
    }
    if (!this.#addBlob(blob, records)) {
      const name = `${description.bucket}/${description.key}`;
      this.#report.lost.push({ name, reason: "some of its parts are missing" });
      return;
    }
    const all = [...others, { ...row, marker: 0, noncurrent_since: null }];
    const isNewest = others.every(({ modified }) => modified <= row.modified);
    if (!isNewest) all.sort((a, b) => a.modified - b.modified || a.seq - b.seq);
    // Versions of a key are ordered by their numbers.
    if (!isNewest)
      this.#run("delete from temp.found where bucket = ? and key = ?", bucket, row.key);
    for (const version of isNewest ? all.slice(-1) : all)
      this.#addVersion({ ...version, seq: this.#seq + 1 });
    this.#addVector(row, description.columns.vector);
    this.#report.fromRecords += 1;
  }

  // A vector that was set later is in the index or its copy only.
  #addVector({ bucket, key, version }: VersionRow, vector: string | undefined): void {
    if (vector === undefined) return;
    this.#seq += 1;
    const row = { id: this.#seq, bucket, key, version, data: Buffer.from(vector, "base64") };
    this.#run(
      "insert or ignore into vectors values (?, ?, ?, ?, ?, ?)",
      row.id,
      bucket,
      key,
      version,
      row.data,
      sealVector(row),
    );
  }

  #addBucket(name: string, make: () => unknown): number {
    const [known] = this.#run("select id from buckets where name = ?", name);
    if (known !== undefined) return Number(known["id"]);
    const document = JSON.stringify(make());
    const { lastInsertRowid } = this.#database
      .prepare("insert into buckets (name, document, seal) values (?, ?, ?)")
      .run(name, document, sealBucket(name, document));
    return Number(lastInsertRowid);
  }

  // Objects of an unknown bucket are put into a new bucket.
  #nameBuckets(): void {
    const orphans = this.#run(
      "select distinct bucket from temp.found where bucket not in (select id from buckets)",
    );
    const known = readBuckets(this.#folders).filter(
      ({ name }) => this.#run("select 1 from buckets where name = ?", name).length === 0,
    );
    for (const { bucket } of orphans) {
      const id = Number(bucket);
      const [only] = orphans.length === 1 && known.length === 1 ? known : [];
      const name = only?.name ?? `restored-${id}`;
      const guess = {
        name,
        createdMs: 0,
        owner: { id: "", displayName: "" },
        region: "us-east-1",
        versioning: "Suspended",
        objectLockEnabled: true,
        settings: {},
      };
      const document = JSON.stringify(only ?? guess);
      this.#database
        .prepare("insert into buckets (id, name, document, seal) values (?, ?, ?, ?)")
        .run(id, name, document, sealBucket(name, document));
      if (only === undefined)
        this.#report.notes.push(`The name of a bucket is lost: its objects are in ${name}.`);
    }
  }

  #dropLost(): void {
    const isGone =
      "blob is not null and (blob not in (select id from blobs) or blob in " +
      "(select blob from blob_parts where part not in (select id from blobs)))";
    for (const row of this.#run(
      `select b.name, f.key from temp.found f join buckets b on b.id = f.bucket where ${isGone}`,
    )) {
      const key = Buffer.from(row["key"] as Uint8Array).toString("utf8");
      this.#report.lost.push({
        name: `${readText(row, "name")}/${key}`,
        reason: "its body is lost",
      });
    }
    this.#database.exec(`delete from temp.found where ${isGone}`);
    this.#database.exec(
      "delete from temp.found where exists (select 1 from temp.found other where " +
        "other.bucket = found.bucket and other.key = found.key and other.version = found.version " +
        "and other.seq > found.seq)",
    );
    this.#database.exec("delete from uploads where bucket not in (select id from buckets)");
    this.#database.exec(
      "delete from parts where upload not in (select id from uploads) or blob not in (select id from blobs)",
    );
  }

  #writeMeta(): void {
    this.#report.objects = this.#count("select count(*) as n from current");
    const lastBlob = this.#count("select max(id) as n from blobs");
    const generation = Math.max(this.#generation, Math.floor(lastBlob / IDS_PER_GENERATION));
    const position = this.#position;
    const commit = Math.max(position.commit, this.#mark?.commit ?? 0) + 1;
    const meta = {
      generation,
      commit,
      commit_generation: generation,
      sequence: this.#seq + SEQUENCE_RANGE,
    };
    for (const [name, value] of Object.entries(meta)) {
      this.#database.prepare("insert or replace into meta values (?, ?)").run(name, value);
    }
  }

  #tellGap(isReadable: boolean): void {
    const { notes } = this.#report;
    const mark = this.#mark;
    if (!isReadable) {
      notes.push(
        "The index cannot be read: objects of up to 16 KiB that are not in its copy are lost.",
      );
    } else if (mark !== undefined && isBefore(this.#position, mark)) {
      notes.push(
        `Commit ${mark.commit} was acknowledged, but the index ends at ${this.#position.commit}: objects of up to 16 KiB, deletions and changes of attributes since then are lost, except for what its copy has.`,
      );
    } else {
      notes.push(
        "Some rows of the index cannot be read: the objects of up to 16 KiB in them are lost, except for what its copy has.",
      );
    }
  }

  #run(text: string, ...values: SQLInputValue[]): Row[] {
    return this.#database.prepare(text).all(...values);
  }

  #count = (text: string): number => Number(this.#run(text)[0]?.["n"] ?? 0);
}

function findShared(place: BlobPlace) {
  if (place.kind === "parts") return place.manifest;
  return place.kind === "remote" ? place.stub : place;
}

const DROP_LOST_VECTORS =
  "delete from vectors where not exists (select 1 from current c where c.bucket = vectors.bucket " +
  "and c.key = vectors.key and c.version = vectors.version) and not exists (select 1 from versions o " +
  "where o.bucket = vectors.bucket and o.key = vectors.key and o.version = vectors.version and o.marker = 0)";
const MISSING_BLOBS =
  "select distinct id from (select blob as id from temp.found union all select part from blob_parts " +
  "union all select blob from parts union all select copy from remote_blobs) " +
  "where id is not null and id not in (select id from blobs)";
