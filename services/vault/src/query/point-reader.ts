// Lookups of single objects on the event loop: reading a few cached pages costs less than a message to a thread.
import type { SQLInputValue } from "node:sqlite";
import { type BlobRow, decodeKey, encodeKey, type VersionRow } from "../index/records.ts";
import { type IndexConnection, VERSION_COLUMNS } from "../index/schema.ts";
import {
  damagedRow,
  DamagedRowError,
  matchesSeal,
  sealPart,
  sealVector,
  sealVersion,
  type VectorRow,
} from "../index/seal.ts";
import { BLOB_COLUMNS } from "../index/sealed-values.ts";
import { readUsage } from "../index/usage-rows.ts";
import type { BlobPart, BlobRecord } from "../model/blob.ts";
import { StoreError } from "../model/store-error.ts";
import type { BucketUsage } from "../model/usage.ts";
import type { VectorStatus } from "../model/vector.ts";
import type { BucketState } from "../transaction/writer-context.ts";
import type { RecentRows } from "./recent-rows.ts";
import { locateRemote, requireBlob } from "./remote-place.ts";
import type { FoundVersion, StoredVersion } from "./stored-version.ts";

/** A part of a composite blob, with its own blob. */
export interface FoundPart extends BlobPart {
  record: BlobRecord;
  etag: string;
  modified: number;
  checksum: string | null;
}

/** Queries of `current` and `versions` for one version; rows are `VersionColumns`. */
interface VersionQuery {
  current: string;
  version: string;
}

/** Columns of a version other than its bucket and key, and, with its blob, the other columns of the blob. */
type VersionColumns = [
  seq: number,
  version: string,
  size: number,
  etag: string,
  modified: number,
  blob: number | null,
  storageClass: string,
  checksum: string | null,
  owner: string | null,
  tags: string | null,
  retainMode: VersionRow["retain_mode"],
  retainUntil: number | null,
  hold: number,
  detail: string,
  seal: number | null,
  marker: number,
  blobSize?: number | null,
  kind?: BlobRow["kind"] | null,
  stored?: number,
  segment?: number | null,
  position?: number | null,
  extent?: number,
  cipher?: string | null,
  data?: Uint8Array | null,
  blobSeal?: number | null,
];

const VERSION_ALONE = buildQuery("", "");
const VERSION_WITH_BLOB = buildQuery(
  ", b.size, b.kind, b.stored, b.segment, b.position, b.extent, b.cipher, b.data, b.seal",
  "left join blobs b on b.id = v.blob ",
);

/** Finds versions and blobs. */
export class PointReader {
  readonly #index: IndexConnection;
  readonly #recent: RecentRows;
  // The copy of the index that the recent rows were read from.
  #source: IndexConnection["database"];
  /** Rows that did not match their seal. */
  damagedRows = 0;

  /** `recent` must follow all groups that are written to the index. */
  constructor(index: IndexConnection, recent: RecentRows) {
    this.#index = index;
    this.#recent = recent;
    this.#source = index.database;
  }

  /** The version. Throws `NoSuchKey`, `NoSuchVersion`, or `MethodNotAllowed` for a delete marker. */
  requireVersion(bucket: BucketState, key: string, versionId?: string): FoundVersion {
    return this.#require(VERSION_ALONE, bucket, key, versionId);
  }

  /** As `requireVersion`, with its blob: cheaper than two lookups. */
  requireStored(bucket: BucketState, key: string, versionId?: string): StoredVersion {
    return this.#require(VERSION_WITH_BLOB, bucket, key, versionId);
  }

  #require(
    query: VersionQuery,
    state: BucketState,
    key: string,
    versionId: string | undefined,
  ): StoredVersion {
    const recent = this.#findRecent(state, key);
    if (recent !== undefined && (versionId === undefined || versionId === recent.row.version)) {
      return recent;
    }
    const { id, bucket } = state;
    const keyBytes = encodeKey(key);
    const current = recent ?? this.#find(query.current, id, keyBytes);
    if (current !== undefined && (versionId === undefined || versionId === current.row.version)) {
      if (query === VERSION_WITH_BLOB) this.#recent.keep(state, key, current);
      return current;
    }
    const where = { bucket: bucket.name, key };
    if (versionId === undefined) throw this.#noSuchKey(id, keyBytes, where);
    const found = this.#find(query.version, id, keyBytes, versionId);
    if (found === undefined) {
      throw new StoreError("NoSuchVersion", "The specified version does not exist.", {
        ...where,
        versionId,
      });
    }
    if (found.row.marker === 1) {
      throw new StoreError(
        "MethodNotAllowed",
        "The specified method is not allowed against this resource.",
        { ...where, versionId, deleteMarker: true, modifiedMs: found.row.modified },
      );
    }
    return { ...found, isLatest: false };
  }

  /** Drops the rows that were read recently: a key that their ciphers name is about to be forgotten. */
  forgetRecent(): void {
    this.#recent.clear();
  }

  // Another copy of the index may lack a group that was never acknowledged.
  #findRecent(state: BucketState, key: string): StoredVersion | undefined {
    const { database } = this.#index;
    if (database === this.#source) return this.#recent.find(state, key);
    this.#source = database;
    this.#recent.clear();
    return undefined;
  }

  #find(
    sql: string,
    bucket: number,
    key: Uint8Array,
    ...version: SQLInputValue[]
  ): StoredVersion | undefined {
    return this.#readSealed(() => {
      const columns = this.#index.sql(sql, true).get(bucket, key, ...version) as unknown as
        | VersionColumns
        | undefined;
      return columns === undefined ? undefined : this.#place(readColumns(bucket, key, columns));
    });
  }

  // If there is another copy of the index, it is used, and the damaged one is replaced.
  #readSealed<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof DamagedRowError)) throw error;
      this.damagedRows += 1;
      if (!this.#index.leaveDamaged()) throw error;
      return work();
    }
  }

  /** A blob by its id; `undefined` if it was released meanwhile. */
  findBlob(id: number): BlobRecord | undefined {
    return this.#readSealed(() => {
      const row = this.#index.sql(`select ${BLOB_COLUMNS} from blobs where id = ?`).get(id);
      return row === undefined
        ? undefined
        : locateRemote(this.#index, requireBlob(row as unknown as BlobRow));
    });
  }

  #place(found: StoredVersion): StoredVersion {
    return found.blob?.place.kind === "remote"
      ? { ...found, blob: locateRemote(this.#index, found.blob) }
      : found;
  }

  /** True if a body, or a part of it, is in a remote. */
  isRemote({ id, place }: BlobRecord): boolean {
    if (place.kind !== "parts") return place.kind === "remote";
    return (
      this.#index
        .sql(
          "select 1 from blob_parts p join blobs b on b.id = p.part where p.blob = ? and b.kind = 'remote' limit 1",
        )
        .get(id) !== undefined
    );
  }

  /** The vector of a version: little-endian floats. `undefined` if it has none. */
  findVector(bucket: number, { key, version }: VersionRow): Uint8Array | undefined {
    return this.#readSealed(() => {
      const row = this.#index
        .sql("select * from vectors where bucket = ? and key = ? and version = ?")
        .get(bucket, key, version) as unknown as (VectorRow & { seal: number }) | undefined;
      if (row === undefined) return undefined;
      if (!matchesSeal(row.seal, sealVector(row))) throw damagedRow("a vector");
      return row.data;
    });
  }

  /** The state of the vector of a version. */
  findVectorStatus(bucket: number, { key, version }: VersionRow): VectorStatus | undefined {
    const values = [bucket, key, version] as const;
    const vector = this.#index
      .sql("select 1 from vectors where bucket = ? and key = ? and version = ?")
      .get(...values);
    if (vector !== undefined) return "stored";
    const task = this.#index
      .sql(
        "select state from tasks where kind = 'embed' and rule = '' and bucket = ? and key = ? and version = ?",
      )
      .get(...values);
    if (task === undefined) return undefined;
    return task["state"] === "dead" ? "failed" : "pending";
  }

  /** The parts of a blob that contain the bytes `start` up to `end`, in order. */
  findParts(blob: number, start: number, end: number): FoundPart[] {
    return this.#readSealed(() => this.#findParts(blob, start, end));
  }

  #findParts(blob: number, start: number, end: number): FoundPart[] {
    const rows = this.#index
      .sql(
        `select p.number as part_number, p.start as part_start, p.size as part_size, ` +
          "p.part, p.etag, p.modified, p.checksum, p.seal as part_seal, " +
          `${BLOB_COLUMNS.replaceAll(/\w+/g, "b.$&")} from blob_parts p join blobs b on b.id = p.part ` +
          "where p.blob = ? and p.start < ? and p.start + p.size > ? order by p.number",
      )
      .all(blob, end, start) as unknown as (BlobRow & {
      part_number: number;
      part_start: number;
      part_size: number;
      part: number;
      etag: string;
      modified: number;
      checksum: string | null;
      part_seal: number | null;
    })[];
    return rows.map((row) => {
      const { part_number: number, part_start: partStart, part_size: size, part } = row;
      const { etag, modified, checksum } = row;
      const sealed = { ...row, owner: blob, start: partStart, number, size, blob: part };
      if (!matchesSeal(row.part_seal, sealPart(sealed))) throw damagedRow(`part ${number}`);
      const record = locateRemote(this.#index, requireBlob(row));
      return { number, start: partStart, size, blob: row.id, record, etag, modified, checksum };
    });
  }

  /** The position of a part in its blob, and its checksums as stored in the index. */
  findPart(
    blob: number,
    number: number,
  ): { start: number; size: number; checksum: string | null } | undefined {
    return this.#index
      .sql("select start, size, checksum from blob_parts where blob = ? and number = ?")
      .get(blob, number) as { start: number; size: number; checksum: string | null } | undefined;
  }

  /** The usage of a bucket as of the last commit. */
  readUsage(bucket: number): BucketUsage {
    return this.#readSealed(() => readUsage(this.#index, bucket));
  }

  /** Size of the null version of a key, which a put without versioning replaces; `undefined` if there is none. */
  measureNullVersion(bucket: number, key: string): number | undefined {
    const keyBytes = encodeKey(key);
    const row = this.#index
      .sql(
        "select size from current where bucket = ? and key = ? and version = 'null' union all " +
          "select size from versions where bucket = ? and key = ? and version = 'null' and marker = 0",
      )
      .get(bucket, keyBytes, bucket, keyBytes);
    return row === undefined ? undefined : Number(row["size"]);
  }

  /** Size of a part of an upload in progress; 0 if it does not exist. */
  measurePart(uploadId: string, number: number): number {
    const row = this.#index
      .sql(
        "select p.size from parts p join uploads u on u.id = p.upload where u.upload_id = ? and p.number = ?",
      )
      .get(uploadId, number);
    return Number(row?.["size"] ?? 0);
  }

  #noSuchKey(id: number, key: Uint8Array, where: { bucket: string; key: string }): StoreError {
    const newest = this.#index
      .sql(
        "select version, modified from versions where bucket = ? and key = ? order by seq desc limit 1",
      )
      .get(id, key);
    const marker =
      newest === undefined
        ? {}
        : {
            deleteMarker: true,
            versionId: String(newest["version"]),
            modifiedMs: Number(newest["modified"]),
          };
    return new StoreError("NoSuchKey", "The specified key does not exist.", {
      ...where,
      ...marker,
    });
  }
}

function buildQuery(columns: string, join: string): VersionQuery {
  // The bucket and the key are known: each column that is read costs.
  const all = VERSION_COLUMNS.replace("bucket, key, ", "").replaceAll(/\w+/g, "v.$&");
  const where = `${join}where v.bucket = ? and v.key = ?`;
  return {
    current: `select ${all}, 0${columns} from current v ${where}`,
    version: `select ${all}, v.marker${columns} from versions v ${where} and v.version = ?`,
  };
}

function readColumns(bucket: number, key: Uint8Array, columns: VersionColumns): StoredVersion {
  const [
    seq,
    version,
    size,
    etag,
    modified,
    id,
    storageClass,
    checksum,
    owner,
    tags,
    retainMode,
    retainUntil,
    hold,
    detail,
    seal,
    marker,
    blobSize = null,
    kind = null,
    stored = 0,
    segment = null,
    position = null,
    extent = 0,
    cipher = null,
    data = null,
    blobSeal = null,
  ] = columns;
  const row: VersionRow = {
    bucket,
    key,
    seq,
    version,
    size,
    etag,
    modified,
    blob: id,
    class: storageClass,
    checksum,
    owner,
    tags,
    retain_mode: retainMode,
    retain_until: retainUntil,
    hold,
    detail,
    seal,
    marker,
  };
  if (!matchesSeal(seal, sealVersion(row))) throw damagedRow(`a version of ${decodeKey(key)}`);
  if (id === null || kind === null || blobSize === null) {
    return { row, isLatest: true, blob: undefined };
  }
  const blob = requireBlob({
    id,
    size: blobSize,
    kind,
    stored,
    segment,
    position,
    extent,
    cipher,
    data,
    seal: blobSeal,
  });
  return { row, isLatest: true, blob };
}
