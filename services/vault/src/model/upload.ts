// Multipart uploads: requests and results.
import type { GeoMark } from "./geo.ts";
import type { Owner } from "./bucket.ts";
import type { Actor } from "./event.ts";
import type {
  CheckKeyUse,
  ChecksumAlgorithm,
  EncryptionRequest,
  ListPosition,
  ObjectAddress,
  ObjectAttributes,
  ObjectChecksum,
  ObjectEncryption,
  RangeRequest,
  ReadConditions,
  WriteConditions,
} from "./object.ts";

/** The checksum of the future object. */
export interface UploadChecksum {
  algorithm: ChecksumAlgorithm;
  type: "FULL_OBJECT" | "COMPOSITE";
  /**
   * A default that the client did not request: parts may have checksums of other algorithms, which are verified and stored
   * as well.
   */
  isDefault?: true;
}

/** The caller that started an upload, as listings name it. */
export interface Initiator extends Owner {
  /** The user behind the caller, whichever key or session it had; absent for anonymous callers. */
  user?: string;
}

/** Creates an upload with the attributes of the future object. */
export interface CreateUploadRequest extends ObjectAttributes {
  bucket: string;
  key: string;
  checksum?: UploadChecksum;
  initiator?: Initiator;
}

/** The address of an upload. */
export interface UploadAddress {
  bucket: string;
  key: string;
  uploadId: string;
}

/** An upload in progress. */
export interface UploadInfo extends UploadAddress {
  createdMs: number;
  storageClass: string;
  owner?: Owner;
  initiator?: Initiator;
  checksum?: UploadChecksum;
  encryption?: ObjectEncryption;
}

/** A body that is to become a part. */
export interface PutPartRequest extends UploadAddress {
  /** 1 to 10 000. An existing part with the same number is replaced. */
  partNumber: number;
  contentLength: number;
  checksum?: ChecksumAlgorithm;
  digests?: readonly ChecksumAlgorithm[];
  /** Tenant that the memory of the body is charged to. */
  tenant?: string;
  /** The key of an upload with SSE-C. */
  encryption?: Extract<EncryptionRequest, { type: "SSE-C" }>;
  /** Called before a part is encrypted with the named key of its upload. */
  checkKey?: CheckKeyUse;
  /** The mark of the source that it is copied from. */
  geo?: GeoMark;
}

/** The result of a part. */
export interface PartResult {
  etag: string;
  sizeBytes: number;
  modifiedMs: number;
  checksum?: ObjectChecksum;
  encryption?: ObjectEncryption;
}

/** Copies a part from an object of the store. */
export interface CopyPartRequest extends UploadAddress {
  partNumber: number;
  source: ObjectAddress & {
    conditions?: ReadConditions;
    customerKey?: Buffer;
    checkKey?: CheckKeyUse;
  };
  range?: RangeRequest;
  encryption?: Extract<EncryptionRequest, { type: "SSE-C" }>;
  /** Called before the part is encrypted with the named key of its upload. */
  checkKey?: CheckKeyUse;
}

export interface CompleteUploadRequest extends UploadAddress {
  /** In ascending order. ETags are without quotes; a checksum is base64 and must match the part's. */
  parts: readonly { partNumber: number; etag: string; checksum?: string }[];
  /** Expected checksum (base64) of the whole object, or the composite one. */
  checksum?: string;
  /** The checksum type that the upload must have. */
  checksumType?: ObjectChecksum["type"];
  /** Expected size in bytes. */
  sizeBytes?: number;
  /** Vector of the object instead of the upload's: little-endian floats in base64. */
  vector?: string;
  conditions?: WriteConditions;
  actor?: Actor;
}

/** One part in a listing. */
export interface ListedPart {
  partNumber: number;
  sizeBytes: number;
  etag: string;
  modifiedMs: number;
  checksum?: ObjectChecksum;
}

/** A page of parts. */
export interface ListPartsResult {
  upload: UploadInfo;
  parts: ListedPart[];
  isTruncated: boolean;
  /** To pass as `afterPartNumber` for the next page. Set if truncated. */
  nextPartNumber?: number;
}

/** A listing of uploads, by key, then by start time. */
export interface ListUploadsRequest {
  bucket: string;
  prefix?: string;
  delimiter?: string;
  after?: ListPosition & { uploadId?: string };
  /** 0 to 1 000. Default 1 000. */
  maxUploads?: number;
}

/** A page of uploads. */
export interface ListUploadsResult {
  uploads: UploadInfo[];
  commonPrefixes: string[];
  isTruncated: boolean;
  next?: ListPosition & { uploadId?: string };
}

/** A page of the parts that an object was completed from. */
export interface ObjectPartsResult {
  parts: ListedPart[];
  partsCount: number;
  isTruncated: boolean;
  nextPartNumber?: number;
}
