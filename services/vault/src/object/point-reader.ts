// Lookups of single objects, on the event loop: a few pages out of the cache cost less than a message to a thread.
import type { SQLInputValue } from "node:sqlite";
import { buildBlobRecord, encodeKey, type BlobRow, type VersionRow } from "../index/records.ts";
import type { IndexConnection } from "../index/schema.ts";
import { VERSION_COLUMNS } from "../index/schema.ts";
import type { BlobPart, BlobRecord } from "../blob/types.ts";
import { StoreError } from "../store-error.ts";
import type { BucketState } from "../index/writer-context.ts";

/** A version as found. */
export interface FoundVersion {
  row: VersionRow;
  isLatest: boolean;
}

/** A version with the blob that holds its bytes; undefined where there is none. */
export interface StoredVersion extends FoundVersion {
  blob: BlobRecord | undefined;
}

/** A part of a blob of parts with the blob that it is. */
export interface FoundPart extends BlobPart {
  record: BlobRecord;
}

const BLOB_COLUMNS = "id, kind, size, stored, segment, position, extent, cipher, data";

/** What is asked of `current` and `versions` about one version; rows are `VersionColumns`. */
interface VersionQuery {
  current: string;
  version: string;
}

/** Those of a version, and where its blob is asked for, what that has beside its number and size. */
type VersionColumns = [
  bucket: number,
  key: Uint8Array,
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
  marker: number,
  kind?: BlobRow["kind"] | null,
  stored?: number,
  segment?: number | null,
  position?: number | null,
  extent?: number,
  cipher?: string | null,
  data?: Uint8Array | null,
];

const VERSION_ALONE = buildQuery("", "");
const VERSION_WITH_BLOB = buildQuery(
  ", b.kind, b.stored, b.segment, b.position, b.extent, b.cipher, b.data",
  "left join blobs b on b.id = v.blob ",
);

/** Finds versions and blobs. */
export class PointReader {
  readonly #index: IndexConnection;

  constructor(index: IndexConnection) {
    this.#index = index;
  }

  /** The version, or why there is none: `NoSuchKey`, `NoSuchVersion`, or `MethodNotAllowed` for a delete marker. */
  requireVersion(bucket: BucketState, key: string, versionId?: string): FoundVersion {
    return this.#require(VERSION_ALONE, bucket, key, versionId);
  }

  /** As `requireVersion`, with where its bytes are: cheaper than one after the other. */
  requireStored(bucket: BucketState, key: string, versionId?: string): StoredVersion {
    return this.#require(VERSION_WITH_BLOB, bucket, key, versionId);
  }

  #require(
    query: VersionQuery,
    { id, bucket }: BucketState,
    key: string,
    versionId: string | undefined,
  ): StoredVersion {
    const keyBytes = encodeKey(key);
    const current = this.#find(query.current, id, keyBytes);
    if (current !== undefined && (versionId === undefined || versionId === current.row.version)) {
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

  #find(sql: string, ...values: SQLInputValue[]): StoredVersion | undefined {
    const columns = this.#index.sql(sql, true).get(...values) as unknown as
      | VersionColumns
      | undefined;
    return columns === undefined ? undefined : readColumns(columns);
  }

  /** A blob by its number; undefined where it was released meanwhile. */
  findBlob(id: number): BlobRecord | undefined {
    const row = this.#index.sql(`select ${BLOB_COLUMNS} from blobs where id = ?`).get(id);
    return row === undefined ? undefined : buildBlobRecord(row as unknown as BlobRow);
  }

  /** The parts of a blob that hold the bytes `start` up to `end`, in order. */
  findParts(blob: number, start: number, end: number): FoundPart[] {
    const rows = this.#index
      .sql(
        `select p.number as part_number, p.start as part_start, p.size as part_size, ` +
          `${BLOB_COLUMNS.replaceAll(/\w+/g, "b.$&")} from blob_parts p join blobs b on b.id = p.part ` +
          "where p.blob = ? and p.start < ? and p.start + p.size > ? order by p.number",
      )
      .all(blob, end, start) as unknown as (BlobRow & {
      part_number: number;
      part_start: number;
      part_size: number;
    })[];
    return rows.map((row) => ({
      number: row.part_number,
      start: row.part_start,
      size: row.part_size,
      blob: row.id,
      record: buildBlobRecord(row),
    }));
  }

  /** Where a part of a blob of parts lies in it, and its checksums as the index has them. */
  findPart(
    blob: number,
    number: number,
  ): { start: number; size: number; checksum: string | null } | undefined {
    return this.#index
      .sql("select start, size, checksum from blob_parts where blob = ? and number = ?")
      .get(blob, number) as { start: number; size: number; checksum: string | null } | undefined;
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
  const all = VERSION_COLUMNS.replaceAll(/\w+/g, "v.$&");
  const where = `${join}where v.bucket = ? and v.key = ?`;
  return {
    current: `select ${all}, 0${columns} from current v ${where}`,
    version: `select ${all}, v.marker${columns} from versions v ${where} and v.version = ?`,
  };
}

function readColumns(columns: VersionColumns): StoredVersion {
  const [
    bucket,
    key,
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
    marker,
    kind = null,
    stored = 0,
    segment = null,
    position = null,
    extent = 0,
    cipher = null,
    data = null,
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
    marker,
  };
  const blob =
    id === null || kind === null
      ? undefined
      : buildBlobRecord({ id, size, kind, stored, segment, position, extent, cipher, data });
  return { row, isLatest: true, blob };
}
