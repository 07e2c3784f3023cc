// Converts rows of the index to objects and back.
import type { Acl } from "../model/acl.ts";
import type { Owner } from "../model/bucket.ts";
import type { GeoMark } from "../model/geo.ts";
import type { GuestMark } from "../model/guest.ts";
import type { RestoreMark } from "../model/remote.ts";
import type { ReplicationMarks } from "../model/replication.ts";
import type { BlobCipher, BlobRecord } from "../model/blob.ts";
import type { RetentionMode } from "../model/lock.ts";
import type {
  ChecksumAlgorithm,
  ContentHeaders,
  ObjectChecksum,
  ObjectEncryption,
  ObjectInfo,
} from "../model/object.ts";

/** The JSON in `detail` of an object. */
export interface ObjectDetail {
  headers?: ContentHeaders;
  metadata?: Readonly<Record<string, string>>;
  redirect?: string;
  acl?: Acl;
  encryption?: ObjectEncryption;
  parts?: number;
  guest?: GuestMark;
  restore?: RestoreMark;
  geo?: GeoMark;
  replica?: true;
  replication?: ReplicationMarks;
}

/** A row of `current` or `versions`. */
export interface VersionRow {
  bucket: number;
  key: Uint8Array;
  seq: number;
  version: string;
  size: number;
  etag: string;
  modified: number;
  blob: number | null;
  class: string;
  checksum: string | null;
  owner: string | null;
  tags: string | null;
  retain_mode: RetentionMode | null;
  retain_until: number | null;
  /** Legal hold: 0 never set, 1 on, 2 off. */
  hold: number;
  detail: string;
  /** See `seal.ts`; null in rows of format 1. */
  seal?: number | null;
  marker?: number;
}

/** A row of `blobs` without its reference count, which only the writer uses. */
export interface BlobRow {
  id: number;
  kind: "inline" | "segment" | "file" | "parts" | "remote";
  size: number;
  stored: number;
  segment: number | null;
  position: number | null;
  extent: number;
  cipher: string | null;
  data: Uint8Array | null;
  seal?: number | null;
}

/** Keys are stored as UTF-8, so that SQLite's byte order is the order of listings. */
export function encodeKey(key: string): Uint8Array {
  return Buffer.from(key, "utf8");
}

/** The text of a stored key. */
export function decodeKey(key: Uint8Array): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("utf8");
}

/** `CRC32C:F:<base64>` for the whole object, `:C:` for a composite one. */
export function formatChecksum(checksum: ObjectChecksum | undefined): string | null {
  if (checksum === undefined) return null;
  return `${checksum.algorithm}:${checksum.type === "COMPOSITE" ? "C" : "F"}:${checksum.value}`;
}

/** The inverse of `formatChecksum`. */
export function parseChecksum(text: string): ObjectChecksum {
  const at = text.indexOf(":");
  return {
    algorithm: text.slice(0, at) as ChecksumAlgorithm,
    type: text[at + 1] === "C" ? "COMPOSITE" : "FULL_OBJECT",
    value: text.slice(at + 3),
  };
}

/**
 * As `formatChecksum`, for a part: the checksum of the upload's algorithm, and after a semicolon one of another algorithm
 * that the client sent.
 */
export function formatPartChecksums(
  computed: ObjectChecksum | undefined,
  given: ObjectChecksum | undefined,
): string | null {
  const first = formatChecksum(computed);
  const second = formatChecksum(given);
  return first === null || second === null ? first : `${first};${second}`;
}

/** The inverse of `formatPartChecksums`; the upload's checksum comes first. */
export function parsePartChecksums(text: string): readonly [ObjectChecksum, ...ObjectChecksum[]] {
  const [first, ...rest] = text.split(";");
  return [parseChecksum(first!), ...rest.map(parseChecksum)];
}

/** A legal hold as a column; null if it was never set. */
export function encodeHold(on: boolean | null): number {
  if (on === null) return 0;
  return on ? 1 : 2;
}

/** Converts a row to an object's information. */
export function buildObjectInfo(
  bucket: string,
  row: VersionRow,
  isLatest: boolean,
  owners: OwnerReader,
): ObjectInfo {
  const detail: ObjectDetail = row.detail === "{}" ? {} : (JSON.parse(row.detail) as ObjectDetail);
  const info: ObjectInfo = {
    bucket,
    key: decodeKey(row.key),
    versionId: row.version,
    isLatest,
    sizeBytes: row.size,
    etag: row.etag,
    modifiedMs: row.modified,
    storageClass: row.class,
    headers: detail.headers ?? {},
    metadata: detail.metadata ?? {},
    tags: row.tags === null ? {} : (JSON.parse(row.tags) as Record<string, string>),
  };
  if (row.hold !== 0) info.legalHold = row.hold === 1;
  if (row.checksum !== null) info.checksum = parseChecksum(row.checksum);
  if (row.owner !== null) info.owner = owners.read(row.owner);
  if (row.retain_mode !== null && row.retain_until !== null) {
    info.retention = { mode: row.retain_mode, untilMs: row.retain_until };
  }
  if (detail.redirect !== undefined) info.websiteRedirect = detail.redirect;
  if (detail.acl !== undefined) info.acl = detail.acl;
  if (detail.encryption !== undefined) info.encryption = detail.encryption;
  if (detail.parts !== undefined) info.partsCount = detail.parts;
  if (detail.guest !== undefined) info.guest = detail.guest;
  if (detail.restore !== undefined) info.restore = detail.restore;
  if (detail.geo !== undefined) info.geo = detail.geo;
  if (detail.replica !== undefined) info.replica = detail.replica;
  if (detail.replication !== undefined) info.replication = detail.replication;
  return info;
}

/** Parses the JSON of owners, with a cache: almost all objects have the same owner. */
export class OwnerReader {
  #text = "";
  #owner: Owner | undefined;

  read(text: string): Owner {
    if (this.#owner === undefined || text !== this.#text) {
      this.#owner = Object.freeze(parseOwner(text));
      this.#text = text;
    }
    return this.#owner;
  }
}

/** Parses the JSON of an owner. */
export function parseOwner(text: string): Owner {
  return JSON.parse(text) as Owner;
}

/** Converts the location columns of a row. */
export function buildBlobRecord(row: BlobRow): BlobRecord {
  const blob: BlobRecord = {
    id: row.id,
    size: row.size,
    stored: row.stored,
    extent: row.extent,
    place: buildPlace(row),
  };
  if (row.cipher !== null) blob.cipher = JSON.parse(row.cipher) as BlobCipher;
  return blob;
}

function buildPlace(row: BlobRow): BlobRecord["place"] {
  switch (row.kind) {
    case "inline":
      return { kind: "inline", data: row.data ?? new Uint8Array(0) };
    case "segment":
      return { kind: "segment", segment: row.segment ?? 0, position: row.position ?? 0 };
    case "file":
      return { kind: "file", position: row.position ?? 0 };
    case "parts":
      return { kind: "parts" };
    case "remote":
      return {
        kind: "remote",
        stub: { segment: row.segment ?? 0, position: row.position ?? 0 },
        at: undefined,
      };
    default:
      return row.kind satisfies never;
  }
}
