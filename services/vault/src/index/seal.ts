// Checksums of index rows: SQLite has none of its own, and a flipped bit in a page reads like any other value.
import { crc32c } from "@node-rs/crc32";
import { StoreError } from "../store-error.ts";
import type { BucketUsage } from "../usage/types.ts";
import type { BlobRow, VersionRow } from "./records.ts";

/**
 * The columns of a part that its seal covers; `owner` is the blob or the upload that the part belongs to, `start` 0 in an
 * upload.
 */
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

/** The seal of a row of `current` or `versions`. */
export function sealVersion(row: VersionRow): number {
  return crc32c(
    `${row.bucket}\0${row.seq}\0${row.version}\0${row.size}\0${row.etag}\0${row.modified}\0${row.blob}\0${row.class}\0${row.checksum}\0${row.owner}\0${row.tags}\0${row.retain_mode}\0${row.retain_until}\0${row.hold}\0${row.detail}`,
    crc32c(viewBuffer(row.key)),
  );
}

/** The seal of a row of `blobs`, with the body where the row holds it. The count of references is not covered. */
export function sealBlob(row: BlobRow): number {
  const seed = row.data === null ? 0 : crc32c(viewBuffer(row.data));
  return crc32c(
    `${row.id}\0${row.kind}\0${row.size}\0${row.stored}\0${row.segment}\0${row.position}\0${row.extent}\0${row.cipher}`,
    seed,
  );
}

/** The seal of a row of `blob_parts` or `parts`. */
export function sealPart(part: SealedPart): number {
  return crc32c(
    `${part.owner}\0${part.start}\0${part.number}\0${part.blob}\0${part.size}\0${part.etag}\0${part.modified}\0${part.checksum}`,
  );
}

/** The seal of a row of `buckets`. */
export function sealBucket(name: string, document: string): number {
  return crc32c(`${name}\0${document}`);
}

/** The seal of a row of `usage`. */
export function sealUsage(bucket: number, usage: BucketUsage): number {
  const { objects, versions, deleteMarkers, bytes, uploads, uploadBytes } = usage;
  return crc32c(
    `${bucket}\0${objects}\0${versions}\0${deleteMarkers}\0${bytes}\0${uploads}\0${uploadBytes}`,
  );
}

/** Whether a seal matches. Rows of format 1 have none, and pass until they are written the next time. */
export function matchesSeal(found: number | null | undefined, computed: number): boolean {
  return found === null || found === undefined || found === computed;
}

/** A row does not match its seal: nothing is answered from it. */
export class DamagedRowError extends StoreError {
  constructor(what: string) {
    super("InternalError", `The index is damaged (${what})`);
  }
}

/** The error for a row that does not match its seal. */
export function damagedRow(what: string): DamagedRowError {
  return new DamagedRowError(what);
}

function viewBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
