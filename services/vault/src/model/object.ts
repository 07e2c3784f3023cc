// Objects as the store's callers see them: requests, bodies, what is known of an object.
import type { Acl } from "./acl.ts";
import type { Owner } from "./bucket.ts";
import type { Actor, ObjectEventName } from "./event.ts";
import type { Retention } from "./lock.ts";
import type { ReadWindow } from "./read-window.ts";

/** Additional checksums of the object API. */
export type ChecksumAlgorithm = "CRC32" | "CRC32C" | "CRC64NVME" | "SHA1" | "SHA256";

/** A checksum as it is answered: base64, with `-<parts>` behind it if it is composite. */
export interface ObjectChecksum {
  algorithm: ChecksumAlgorithm;
  value: string;
  type: "FULL_OBJECT" | "COMPOSITE";
}

/** What was computed over a body. Digests are raw bytes, big-endian where they are CRCs. */
export interface BodyDigests {
  bytes: number;
  md5: Buffer;
  checksums: Readonly<Partial<Record<ChecksumAlgorithm, Buffer>>>;
}

/** Headers that are kept with an object and given back as they came. */
export interface ContentHeaders {
  contentType?: string;
  cacheControl?: string;
  contentDisposition?: string;
  contentEncoding?: string;
  contentLanguage?: string;
  expires?: string;
}

/** How a body is encrypted at rest; the keys of `SSE-C` (32 bytes) come with each request and are not kept. */
export type EncryptionRequest = { type: "SSE-S3" } | { type: "SSE-C"; key: Buffer };

/** How an object is encrypted; `keyMd5` (base64) says which key it wants. */
export type ObjectEncryption = { type: "SSE-S3" } | { type: "SSE-C"; keyMd5: string };

/** Everything that an object is given when it is made. */
export interface ObjectAttributes {
  headers?: ContentHeaders;
  /** User metadata, names in lower case; names and values together at most 8 KiB. */
  metadata?: Readonly<Record<string, string>>;
  tags?: Readonly<Record<string, string>>;
  storageClass?: string;
  websiteRedirect?: string;
  acl?: Acl;
  owner?: Owner;
  retention?: Retention;
  legalHold?: boolean;
  encryption?: EncryptionRequest;
}

/** Conditions on the live object under a key. ETags are without quotes; `*` stands for any object. */
export interface WriteConditions {
  ifMatch?: string;
  ifNoneMatch?: string;
}

/** Conditions on the object that is read (RFC 9110 section 13). Several ETags may be named; times are whole seconds. */
export interface ReadConditions {
  ifMatch?: readonly string[];
  ifNoneMatch?: readonly string[];
  ifModifiedSinceMs?: number;
  ifUnmodifiedSinceMs?: number;
}

/** A body that is to become an object. */
export interface PutRequest extends ObjectAttributes {
  bucket: string;
  key: string;
  /** How long the body will be; a body that is longer or shorter is refused. */
  contentLength: number;
  /** Checksum to keep with the object. */
  checksum?: ChecksumAlgorithm;
  /** Checksums to compute beside, for the caller's eyes only. */
  digests?: readonly ChecksumAlgorithm[];
  conditions?: WriteConditions;
  actor?: Actor;
  /** Whose memory the body takes on its way in. */
  tenant?: string;
  /** Default `ObjectCreated:Put`. */
  event?: ObjectEventName;
}

/** What became of a body. */
export interface PutResult {
  etag: string;
  /** `null` unless versioning is enabled. */
  versionId: string;
  sizeBytes: number;
  modifiedMs: number;
  checksum?: ObjectChecksum;
  encryption?: ObjectEncryption;
}

/**
 * A body on its way in. `write` any number of times, `finish` once, compare the digests with what the client sent, then
 * `commit` or `abort`. Nothing is visible before `commit` resolves, and by then it is durable.
 */
export interface Upload<Result> {
  /**
   * Takes a part of the body; the buffer may be reused when it returns. A promise means that the store has fallen
   * behind: wait for it before the next call. Throws `EntityTooLarge` past the declared length.
   */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** The body is complete: its digests. Throws `IncompleteBody` if it is shorter than declared. */
  finish(): Promise<BodyDigests>;
  /** Makes the body an object, or rejects and forgets it. Conditions and locks are decided here. */
  commit(): Promise<Result>;
  /** Forgets the body. Harmless at any time, also after `commit`. */
  abort(): Promise<void>;
}

/** Which version: `null` for the null version, the live one if it is left out. */
export interface ObjectAddress {
  bucket: string;
  key: string;
  versionId?: string;
}

/** What is known of an object version. */
export interface ObjectInfo extends Omit<ObjectAttributes, "encryption"> {
  bucket: string;
  key: string;
  /** `null` for the null version. */
  versionId: string;
  isLatest: boolean;
  sizeBytes: number;
  /** Without quotes. */
  etag: string;
  modifiedMs: number;
  storageClass: string;
  headers: ContentHeaders;
  metadata: Readonly<Record<string, string>>;
  tags: Readonly<Record<string, string>>;
  checksum?: ObjectChecksum;
  encryption?: ObjectEncryption;
  /** Set for what multipart uploads have made. */
  partsCount?: number;
}

/** A range as asked for: from `start` on, `start` to `end` (both included), or the last `suffix` bytes. */
export type RangeRequest = { start: number; end?: number } | { suffix: number };

/** Which object, or which part of it, is to be read. */
export interface GetRequest extends ObjectAddress {
  range?: RangeRequest;
  /** From 1 on; instead of a range. */
  partNumber?: number;
  conditions?: ReadConditions;
  /** The customer's key of an object under SSE-C, 32 bytes. */
  customerKey?: Buffer;
  /** How much of the body may be in memory for the reader; without it whole frames, one ahead. */
  window?: ReadWindow;
}

/** What is read: `start` to `end`, both included, of `ObjectInfo.sizeBytes`. */
export interface ByteRange {
  start: number;
  end: number;
}

/** An object's metadata, with the range that was asked for resolved against its size. */
export interface HeadResult {
  /** Where a range or a part was asked for, its checksum is that of the bytes that are read, if one is known of them. */
  object: ObjectInfo;
  /** Set when a range or a part was asked for. */
  range?: ByteRange;
  /** Bytes of the answer's body. */
  contentLength: number;
}

/** An open object. Either iterate to the end or `close`; both are fine. */
export interface ObjectReader extends HeadResult {
  /** The whole answer, where it was in memory anyway; `chunks` gives the same. */
  readonly whole: Buffer | undefined;
  /** The bytes in order, verified against their checksums at rest. Throws `InternalError` where those do not match. */
  chunks(): AsyncGenerator<Buffer, void, undefined>;
  /** Gives back a chunk that nobody looks at any more, so that its memory is used again. Nobody has to. */
  recycle(chunk: Buffer): void;
  close(): void;
}

/** What is to be deleted. */
export interface DeleteRequest extends ObjectAddress {
  conditions?: { ifMatch?: string; ifModifiedMs?: number; ifSizeBytes?: number };
  /** The caller may bypass governance retention, and asked to. */
  bypassGovernance?: boolean;
  actor?: Actor;
}

/** What deleting did. Deleting what is not there succeeds. */
export interface DeleteResult {
  /** The version that was deleted, or the delete marker that was made. Unset in buckets without versions. */
  versionId?: string;
  /** A delete marker was made, or was what got deleted. */
  deleteMarker: boolean;
}

/** A copy within the store. Bytes are shared where they can be, not copied. */
export interface CopyRequest {
  source: ObjectAddress & { conditions?: ReadConditions; customerKey?: Buffer };
  bucket: string;
  key: string;
  /** Default `COPY`: headers, metadata and redirect of the source; `REPLACE` takes those of `attributes`. */
  metadataDirective?: "COPY" | "REPLACE";
  /** Default `COPY`. */
  taggingDirective?: "COPY" | "REPLACE";
  attributes: ObjectAttributes;
  checksum?: ChecksumAlgorithm;
  conditions?: WriteConditions;
  actor?: Actor;
}

/** What a copy made. */
export interface CopyResult extends PutResult {
  sourceVersionId: string;
}

/** One row of a listing. */
export interface ListedObject {
  key: string;
  etag: string;
  sizeBytes: number;
  modifiedMs: number;
  storageClass: string;
  checksum?: ObjectChecksum;
}

/** Where a listing goes on: behind a key, or behind everything under a common prefix. */
export interface ListPosition {
  value: string;
  isPrefix: boolean;
}

/** What to list, in the binary order of the keys' UTF-8. */
export interface ListRequest {
  bucket: string;
  prefix?: string;
  delimiter?: string;
  after?: ListPosition;
  /** Objects and common prefixes together, 0 to 1 000. Default 1 000. */
  maxKeys?: number;
}

/** One page. */
export interface ListResult {
  objects: ListedObject[];
  commonPrefixes: string[];
  isTruncated: boolean;
  /** The last object or common prefix of the page; give it as `after` for the next one. Set if truncated. */
  next?: ListPosition;
}
