// The exception of the store.
import type { ErrorCode } from "./errors.ts";

/** Details for the answer. */
export interface StoreErrorDetails {
  bucket?: string;
  key?: string;
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

/**
 * A refusal of the store. The message is fit for clients and reveals nothing about the machine. `NotModified` is not an error
 * on the wire but the answer 304. A `MethodNotAllowed` or `NoSuchKey` with `details.deleteMarker` means a delete marker.
 */
export class StoreError extends Error {
  readonly code: ErrorCode;
  readonly details: StoreErrorDetails;

  constructor(
    code: ErrorCode,
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
