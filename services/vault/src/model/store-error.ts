// What the store refuses, in the object API's own terms: one class, a closed list of codes.

/**
 * Codes as the object API's error reference names them
 * (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html), and `QuotaExceeded` as Ceph's does. Two are not errors on the wire: `NotModified` is
 * the answer 304, and a `MethodNotAllowed` or `NoSuchKey` with `details.deleteMarker` tells of a delete marker.
 */
export type StoreErrorCode =
  | "AccessDenied"
  | "BadDigest"
  | "BucketAlreadyExists"
  | "BucketAlreadyOwnedByYou"
  | "BucketNotEmpty"
  | "EntityTooLarge"
  | "EntityTooSmall"
  | "IncompleteBody"
  | "InsufficientStorage"
  | "InternalError"
  | "InvalidArgument"
  | "InvalidBucketName"
  | "InvalidBucketState"
  | "InvalidEncryptionKey"
  | "InvalidPart"
  | "InvalidPartNumber"
  | "InvalidPartOrder"
  | "InvalidRange"
  | "InvalidRequest"
  | "InvalidTag"
  | "KeyTooLongError"
  | "MethodNotAllowed"
  | "NoSuchBucket"
  | "NoSuchBucketSetting"
  | "NoSuchKey"
  | "NoSuchObjectLockConfiguration"
  | "NoSuchUpload"
  | "NoSuchVersion"
  | "NotModified"
  | "ObjectLockConfigurationNotFoundError"
  | "PreconditionFailed"
  | "QuotaExceeded"
  | "ServiceUnavailable"
  | "SlowDown"
  | "TooManyBuckets"
  | "TooManyParts";

/** What a caller may need to answer with, beside the code. */
export interface StoreErrorDetails {
  bucket?: string;
  key?: string;
  /** Which configuration a `NoSuchBucketSetting` misses. */
  setting?: string;
  /** The version that the error speaks of, `null` for the null version. */
  versionId?: string;
  /** The version is a delete marker. */
  deleteMarker?: boolean;
  /** Of the object or marker, ms since 1970. */
  modifiedMs?: number;
  /** Without quotes; with `NotModified` and `PreconditionFailed`. */
  etag?: string;
  /** What the object says of how long it may be kept, with `NotModified`. */
  freshness?: { cacheControl?: string; expires?: string };
  /** The object's size, with `InvalidRange`. */
  sizeBytes?: number;
  /** Which of an upload's parts is meant, as the request or the index has it; `bytesMin` with `EntityTooSmall`. */
  part?: { number: number; etag: string; sizeBytes?: number; bytesMin?: number };
  /** Which condition failed, by its header's name, with `PreconditionFailed`. */
  condition?: string;
}

/** An answer of the store that is not success. The message is fit for the caller and tells nothing of the machine. */
export class StoreError extends Error {
  readonly code: StoreErrorCode;
  readonly details: StoreErrorDetails;

  constructor(
    code: StoreErrorCode,
    message: string,
    details: StoreErrorDetails = {},
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "StoreError";
    this.code = code;
    this.details = details;
  }
}
