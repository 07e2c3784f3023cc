// Objects as the store's callers see them: requests, bodies, information.
import type { Acl } from "./acl.ts";
import type { Owner } from "./bucket.ts";
import type { Actor, ObjectEventName } from "./event.ts";
import type { GeoMark } from "./geo.ts";
import type { GuestMark } from "./guest.ts";
import type { Retention } from "./lock.ts";
import type { ReadWindow } from "./read-window.ts";
import type { RestoreMark } from "./remote.ts";
import type { ReplicaSource, ReplicationMarks } from "./replication.ts";

/** Additional checksums of the object API. */
export const CHECKSUM_ALGORITHMS = ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"] as const;

/** An additional checksum. */
export type ChecksumAlgorithm = (typeof CHECKSUM_ALGORITHMS)[number];

/** A checksum as in answers: base64, with a suffix `-<parts>` if it is composite. */
export interface ObjectChecksum {
  algorithm: ChecksumAlgorithm;
  value: string;
  type: "FULL_OBJECT" | "COMPOSITE";
}

/** The digests of a body, as raw bytes; CRCs are big-endian. */
export interface BodyDigests {
  bytes: number;
  md5: Buffer;
  checksums: Readonly<Partial<Record<ChecksumAlgorithm, Buffer>>>;
}

/** Headers that are stored with an object and returned unchanged. */
export interface ContentHeaders {
  contentType?: string;
  cacheControl?: string;
  contentDisposition?: string;
  contentEncoding?: string;
  contentLanguage?: string;
  expires?: string;
}

/** Encryption with a named key of the store. */
export interface NamedEncryption {
  type: "SSE-KMS";
  /** Id of the key. */
  keyId: string;
  /** JSON of the encryption context, with sorted names: it is authenticated with the key of each blob. */
  context?: string;
  /** As requested; without effect here. */
  bucketKey?: boolean;
}

/** Encryption at rest; the keys of `SSE-C` (32 bytes) come with each request and are not stored. */
export type EncryptionRequest =
  | { type: "SSE-S3" }
  | NamedEncryption
  | { type: "SSE-C"; key: Buffer };

/** The encryption of an object; `keyMd5` (base64) identifies the required key. */
export type ObjectEncryption =
  | { type: "SSE-S3" }
  | NamedEncryption
  | { type: "SSE-C"; keyMd5: string };

/** Checks that the caller of a request may use a named key. Throws AccessDenied or InvalidArgument. */
export type CheckKeyUse = (keyId: string) => void;

/** All attributes of a new object. */
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
  /** Little-endian floats, as many as the vector index of the bucket has dimensions. */
  vector?: Uint8Array;
  /** Set if guests have written it. */
  guest?: GuestMark;
  /** Regions that its bytes may go to; the rule of its bucket is added when it is written. */
  geo?: GeoMark;
  /** Set for a replica: it keeps the id and the time of its source. */
  source?: ReplicaSource;
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
  /** The length of the body; longer and shorter bodies are refused. */
  contentLength: number;
  /** Checksum to store with the object. */
  checksum?: ChecksumAlgorithm;
  /** More digests to compute, for the caller only. */
  digests?: readonly ChecksumAlgorithm[];
  conditions?: WriteConditions;
  actor?: Actor;
  /** Tenant that the memory of the body is charged to. */
  tenant?: string;
  /** Default `ObjectCreated:Put`. */
  event?: ObjectEventName;
}

/** The result of a put. */
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
 * An incoming body. Call `write` any number of times, `finish` once, compare the digests with those of the client, then
 * call `commit` or `abort`. The object is invisible before `commit` resolves, and durable afterwards.
 */
export interface Upload<Result> {
  /**
   * Adds bytes; the buffer may be reused after the call. A promise means that the store has fallen behind: await it before
   * the next call. Throws `EntityTooLarge` past the declared length.
   */
  write(chunk: Uint8Array): Promise<void> | undefined;
  /** Completes the body and returns its digests. Throws `IncompleteBody` if it is shorter than declared. */
  finish(): Promise<BodyDigests>;
  /** Makes the body an object. Checks conditions and locks, and drops the body if it rejects. */
  commit(): Promise<Result>;
  /** Drops the body. Harmless at any time, even after `commit`. */
  abort(): Promise<void>;
}

/** The version: `null` for the null version, the live one if absent. */
export interface ObjectAddress {
  bucket: string;
  key: string;
  versionId?: string;
}

/** Information about an object version. */
export interface ObjectInfo extends Omit<ObjectAttributes, "encryption" | "vector" | "source"> {
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
  /** Set for objects of multipart uploads. */
  partsCount?: number;
  /** Set while an object of a cold class is being restored, or has a temporary copy. */
  restore?: RestoreMark;
  /** Set for a version that replication has brought here. */
  replica?: true;
  /** Its states under the replication rules of its bucket. */
  replication?: ReplicationMarks;
}

/** Attributes of a version as a caller has read them: a change of one is refused if they are no longer these. */
export type KnownAttributes = Pick<ObjectInfo, "versionId" | "tags" | "retention" | "legalHold">;

/** The caller of a change of attributes, and the attributes that it has read, if the change depends on them. */
export interface ChangeOrigin {
  actor?: Actor;
  expected?: KnownAttributes;
  /** Replication brings the change, which is not sent back. */
  isReplica?: boolean;
}

/** A requested range: from `start` on, `start` to `end` (both included), or the last `suffix` bytes. */
export type RangeRequest = { start: number; end?: number } | { suffix: number };

/** The object, or the part of it, to read. */
export interface GetRequest extends ObjectAddress {
  range?: RangeRequest;
  /** From 1; instead of a range. */
  partNumber?: number;
  conditions?: ReadConditions;
  /** The customer's key of an object with SSE-C, 32 bytes. */
  customerKey?: Buffer;
  /** Limits the memory for this reader; without it whole frames are read, one ahead. */
  window?: ReadWindow;
  /** Called before an object under a named key is opened. */
  checkKey?: CheckKeyUse;
}

/** A resolved range: `start` to `end`, both included, of `ObjectInfo.sizeBytes`. */
export interface ByteRange {
  start: number;
  end: number;
}

/** The metadata of an object, with the requested range resolved against its size. */
export interface HeadResult {
  /** With a range or a part, `checksum` covers the returned bytes; it is absent if unknown. */
  object: ObjectInfo;
  /** Set if a range or a part was requested. */
  range?: ByteRange;
  /** Size of the response body. */
  contentLength: number;
}

/** A body that is open for reading. */
export interface ObjectBody {
  /** The whole body if it is already in memory, otherwise `undefined`; `chunks` yields the same bytes. */
  readonly whole: Buffer | undefined;
  /** The bytes in order, verified against their checksums at rest. Throws `InternalError` on a mismatch. */
  chunks(): AsyncGenerator<Buffer, void, undefined>;
  /** Gives a chunk back so that its memory can be reused. Calling this is optional. */
  recycle(chunk: Buffer): void;
  /** Releases the open files. Required unless `chunks` was iterated to the end. */
  close(): void;
}

/** An object with its open body. */
export interface OpenObject extends HeadResult {
  readonly body: ObjectBody;
}

/** The version to delete. */
export interface DeleteRequest extends ObjectAddress {
  conditions?: { ifMatch?: string; ifModifiedMs?: number; ifSizeBytes?: number };
  /** The request asked to bypass governance retention, and the caller may do so. */
  bypassGovernance?: boolean;
  actor?: Actor;
  /** Set for the replica of a delete marker: it keeps the id and the time of its source. */
  source?: ReplicaSource;
}

/** The result of a deletion. Deleting a missing object succeeds. */
export interface DeleteResult {
  /** The deleted version, or the new delete marker. Unset in buckets without versions. */
  versionId?: string;
  /** A delete marker was created or deleted. */
  deleteMarker: boolean;
}

/** A copy within the store. Bytes are shared if possible. */
export interface CopyRequest {
  source: ObjectAddress & {
    conditions?: ReadConditions;
    customerKey?: Buffer;
    /** Called before a source under a named key is opened. */
    checkKey?: CheckKeyUse;
  };
  bucket: string;
  key: string;
  /** Default `COPY`: headers, metadata and redirect of the source. `REPLACE` uses those of `attributes`. */
  metadataDirective?: "COPY" | "REPLACE";
  /** Default `COPY`. */
  taggingDirective?: "COPY" | "REPLACE";
  attributes: ObjectAttributes;
  checksum?: ChecksumAlgorithm;
  conditions?: WriteConditions;
  actor?: Actor;
  /** `ObjectCreated:Copy` by default. */
  event?: ObjectEventName;
}

/** The result of a copy. */
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

/** The position to continue from: after a key, or after all keys of a common prefix. */
export interface ListPosition {
  value: string;
  isPrefix: boolean;
}

/** A listing in the binary order of the keys' UTF-8. */
export interface ListRequest {
  bucket: string;
  prefix?: string;
  delimiter?: string;
  after?: ListPosition;
  /** Objects and common prefixes together, 0 to 1 000. Default 1 000. */
  maxKeys?: number;
}

export interface ListResult {
  objects: ListedObject[];
  commonPrefixes: string[];
  isTruncated: boolean;
  /** The last object or common prefix of the page, to pass as `after`. Set if truncated. */
  next?: ListPosition;
}
