// The exception of the store.
import type { ErrorCode } from "./errors.ts";

/** Details for the answer. */
export interface StoreErrorDetails {
  bucket?: string;
  key?: string;
  /** The affected version, `null` for the null version. */
  versionId?: string;
  /** The version is a delete marker. */
  deleteMarker?: boolean;
  /** Of the object or marker, ms since 1970. */
  modifiedMs?: number;
  /** Without quotes; with `NotModified` and `PreconditionFailed`. */
  etag?: string;
  /** The caching headers of the object, with `NotModified`. */
  freshness?: { cacheControl?: string; expires?: string };
  /** The object's size, with `InvalidRange`. */
  sizeBytes?: number;
  /** The affected part of an upload, as in the request or the index; `bytesMin` with `EntityTooSmall`. */
  part?: { number: number; etag: string; sizeBytes?: number; bytesMin?: number };
  /** The header of the condition that failed, with `PreconditionFailed`. */
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

/** True if it is unknown whether a commit that has failed with this error is on disk. */
export function isOutcomeUnknown(error: unknown): boolean {
  if (!(error instanceof StoreError)) return true;
  return error.code === "InternalError" || error.code === "ServiceUnavailable";
}
