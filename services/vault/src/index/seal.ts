// Checksums of index rows: SQLite has none, and a flipped bit in a page is indistinguishable from a valid value.
import { StoreError } from "../model/store-error.ts";
import type { BucketUsage } from "../model/usage.ts";
import type { BlobRow, VersionRow } from "./records.ts";
import { addColumn, RecurringText, type ColumnValue } from "./row-hash.ts";

/** The columns of a part that its seal covers. `owner` is the blob or the upload of the part; `start` is 0 in an upload. */
export interface SealedPart {
  owner: number;
  start: number;
  number: number;
  blob: number;
  size: number;
  etag: string;
  modified: number;
  checksum: string | null;
}

const RECURRING = {
  version: new RecurringText(),
  class: new RecurringText(),
  checksum: new RecurringText(),
  owner: new RecurringText(),
  tags: new RecurringText(),
  detail: new RecurringText(),
  kind: new RecurringText(),
};

/** The seal of a row of `current` or `versions`. */
export function sealVersion(row: VersionRow): number {
  let hash = addColumn(0, row.bucket);
  hash = addColumn(hash, row.key);
  hash = addColumn(hash, row.seq);
  hash = RECURRING.version.add(hash, row.version);
  hash = addColumn(hash, row.size);
  hash = addColumn(hash, row.etag);
  hash = addColumn(hash, row.modified);
  hash = addColumn(hash, row.blob);
  hash = RECURRING.class.add(hash, row.class);
  hash = RECURRING.checksum.add(hash, row.checksum);
  hash = RECURRING.owner.add(hash, row.owner);
  hash = RECURRING.tags.add(hash, row.tags);
  hash = addColumn(hash, row.retain_mode);
  hash = addColumn(hash, row.retain_until);
  hash = addColumn(hash, row.hold);
  return RECURRING.detail.add(hash, row.detail) >>> 0;
}

/** The seal of a row of `blobs`, with the body if the row contains it. The reference count is not covered. */
export function sealBlob(row: BlobRow): number {
  let hash = addColumn(0, row.id);
  hash = RECURRING.kind.add(hash, row.kind);
  hash = addColumn(hash, row.size);
  hash = addColumn(hash, row.stored);
  hash = addColumn(hash, row.segment);
  hash = addColumn(hash, row.position);
  hash = addColumn(hash, row.extent);
  hash = addColumn(hash, row.cipher);
  return addColumn(hash, row.data) >>> 0;
}

/** The seal of a row of `blob_parts` or `parts`. */
export function sealPart(part: SealedPart): number {
  const { owner, start, number, blob, size, etag, modified, checksum } = part;
  return sealColumns(owner, start, number, blob, size, etag, modified, checksum);
}

/** The seal of a row of `buckets`. */
export function sealBucket(name: string, document: string): number {
  return sealColumns(name, document);
}

/** The seal of a row of `usage`. */
export function sealUsage(bucket: number, usage: BucketUsage): number {
  const { objects, versions, deleteMarkers, bytes, uploads, uploadBytes } = usage;
  return sealColumns(bucket, objects, versions, deleteMarkers, bytes, uploads, uploadBytes);
}

/** The columns of a row of `vectors` that its seal covers. */
export interface VectorRow {
  id: number;
  bucket: number;
  key: Uint8Array;
  version: string;
  data: Uint8Array;
}

/** The seal of a row of `vectors`. */
export function sealVector({ id, bucket, key, version, data }: VectorRow): number {
  return sealColumns(id, bucket, key, version, data);
}

/** The columns of a row of `remote_blobs`, all of which its seal covers. */
export interface RemoteBlobRow {
  blob: number;
  remote: string;
  bucket: string;
  key: string;
  bytes: number;
  position: number;
  copy: number | null;
}

/** The seal of a row of `remote_blobs`. */
export function sealRemoteBlob(row: RemoteBlobRow): number {
  const { blob, remote, bucket, key, bytes, position, copy } = row;
  return sealColumns(blob, remote, bucket, key, bytes, position, copy);
}

/** The seal of a row of `remotes`; its counts are not covered. */
export function sealRemote(name: string, document: string): number {
  return sealColumns(name, document);
}

function sealColumns(...columns: ColumnValue[]): number {
  return columns.reduce<number>(addColumn, 0) >>> 0;
}

/** True if a seal matches. Rows of format 1 have none, and pass until they are rewritten. */
export function matchesSeal(found: number | null | undefined, computed: number): boolean {
  return found === null || found === undefined || found === computed;
}

/** A row does not match its seal and must not be used. */
export class DamagedRowError extends StoreError {
  constructor(what: string) {
    super("InternalError", `The index is damaged (${what})`);
  }
}

/** The error for a row that does not match its seal. */
export function damagedRow(what: string): DamagedRowError {
  return new DamagedRowError(what);
}
