// Lookups of single objects, on the event loop: a few pages out of the cache cost less than a message to a thread.
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

type FoundBlob = Omit<BlobRow, "refs">;
/** A version beside the columns of its blob; they are null where there is none. */
type StoredRow = VersionRow & Omit<FoundBlob, "id" | "kind"> & { kind: BlobRow["kind"] | null };

const BLOB_COLUMNS = "id, kind, size, stored, segment, position, extent, cipher, data";

/** What is asked of `current` and `versions` about one version. */
interface VersionQuery {
  current: string;
  version: string;
}

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

  /** As `requireVersion`, with where its bytes are: one look-up less than one after the other. */
  requireStored(bucket: BucketState, key: string, versionId?: string): StoredVersion {
    const { row, isLatest } = this.#require(VERSION_WITH_BLOB, bucket, key, versionId);
    const {
      blob: id,
      size,
      kind,
      stored,
      segment,
      position,
      extent,
      cipher,
      data,
    } = row as StoredRow;
    if (id === null || kind === null) return { row, isLatest, blob: undefined };
    const blob = { id, size, kind, stored, segment, position, extent, cipher, data };
    return { row, isLatest, blob: buildBlobRecord(blob) };
  }

  #require(
    query: VersionQuery,
    { id, bucket }: BucketState,
    key: string,
    versionId: string | undefined,
  ): FoundVersion {
    const keyBytes = encodeKey(key);
    const current = this.#index.sql(query.current).get(id, keyBytes) as unknown as
      | VersionRow
      | undefined;
    if (current !== undefined && (versionId === undefined || versionId === current.version)) {
      return { row: current, isLatest: true };
    }
    const where = { bucket: bucket.name, key };
    if (versionId === undefined) throw this.#noSuchKey(id, keyBytes, where);
    const row = this.#index.sql(query.version).get(id, keyBytes, versionId) as unknown as
      | VersionRow
      | undefined;
    if (row === undefined) {
      throw new StoreError("NoSuchVersion", "The specified version does not exist.", {
        ...where,
        versionId,
      });
    }
    if (row.marker === 1) {
      throw new StoreError(
        "MethodNotAllowed",
        "The specified method is not allowed against this resource.",
        { ...where, versionId, deleteMarker: true, modifiedMs: row.modified },
      );
    }
    return { row, isLatest: false };
  }

  /** A blob by its number; undefined where it was released meanwhile. */
  findBlob(id: number): BlobRecord | undefined {
    const row = this.#index.sql(`select ${BLOB_COLUMNS} from blobs where id = ?`).get(id);
    return row === undefined ? undefined : buildBlobRecord(row as unknown as FoundBlob);
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
  const all = VERSION_COLUMNS.replaceAll(/\w+/g, "v.$&") + columns;
  const where = "where v.bucket = ? and v.key = ?";
  return {
    current: `select ${all} from current v ${join}${where}`,
    version: `select ${all}, v.marker from versions v ${join}${where} and v.version = ?`,
  };
}
