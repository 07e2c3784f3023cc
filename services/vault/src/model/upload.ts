// Multipart uploads: requests and answers.
import type { Owner } from "./bucket.ts";
import type { Actor } from "./event.ts";
import type {
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

/** The checksum of an object to be. */
export interface UploadChecksum {
  algorithm: ChecksumAlgorithm;
  type: "FULL_OBJECT" | "COMPOSITE";
  /** Nobody asked for it: parts may bring checksums of other algorithms, which are checked and kept beside. */
  isDefault?: true;
}

/** Begins an upload; the attributes are those of the object to be. */
export interface CreateUploadRequest extends ObjectAttributes {
  bucket: string;
  key: string;
  checksum?: UploadChecksum;
  initiator?: Owner;
}

/** Names an upload. */
export interface UploadAddress {
  bucket: string;
  key: string;
  uploadId: string;
}

/** An upload under way. */
export interface UploadInfo extends UploadAddress {
  createdMs: number;
  storageClass: string;
  owner?: Owner;
  initiator?: Owner;
  checksum?: UploadChecksum;
  encryption?: ObjectEncryption;
}

/** A body that is to become a part. */
export interface PutPartRequest extends UploadAddress {
  /** 1 to 10 000. A part under a number that is taken replaces it. */
  partNumber: number;
  contentLength: number;
  checksum?: ChecksumAlgorithm;
  digests?: readonly ChecksumAlgorithm[];
  /** Whose memory the body takes on its way in. */
  tenant?: string;
  /** The key of an upload under SSE-C. */
  encryption?: Extract<EncryptionRequest, { type: "SSE-C" }>;
}

/** What became of a part. */
export interface PartResult {
  etag: string;
  sizeBytes: number;
  modifiedMs: number;
  checksum?: ObjectChecksum;
  encryption?: ObjectEncryption;
}

/** A part out of an object of the store. */
export interface CopyPartRequest extends UploadAddress {
  partNumber: number;
  source: ObjectAddress & { conditions?: ReadConditions; customerKey?: Buffer };
  range?: RangeRequest;
  encryption?: Extract<EncryptionRequest, { type: "SSE-C" }>;
}

/** Makes an object of parts. */
export interface CompleteUploadRequest extends UploadAddress {
  /** In rising order. ETags are without quotes; a checksum is base64 and must then be the part's. */
  parts: readonly { partNumber: number; etag: string; checksum?: string }[];
  /** Checksum (base64) over the whole object, or the composite one, that must come out. */
  checksum?: string;
  /** The type of checksum that the upload must have been begun with. */
  checksumType?: ObjectChecksum["type"];
  /** Size in bytes that must come out. */
  sizeBytes?: number;
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
  /** Give it as `afterPartNumber` for the next page. Set if truncated. */
  nextPartNumber?: number;
}

/** Which uploads to list, by key, then by the time they began. */
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
