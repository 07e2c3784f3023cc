// Errors of the store, of operations and of policies as problems of the admin API.
import { type ErrorCode, PlatformError } from "@platform/kernel/errors";
import { S3Error } from "../model/s3-error.ts";
import { StoreError } from "../model/store-error.ts";
import { toS3Error } from "../s3/answer.ts";

/** Returns the result, or throws the refusal as a PlatformError. */
export async function asProblem<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof StoreError || error instanceof S3Error)) throw error;
    throw toPlatformError(toS3Error(error));
  }
}

/** The code of the platform for each status of S3; others are `validation_failed` or `unavailable`. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  403: "forbidden",
  404: "not_found",
  405: "method_not_allowed",
  409: "conflict",
  412: "precondition_failed",
  416: "range_not_satisfiable",
  429: "too_many_requests",
  500: "internal",
  501: "not_implemented",
  507: "insufficient_storage",
};
/** Headers of errors that mean the same in both APIs. */
const HEADERS: ReadonlySet<string> = new Set(["allow", "retry-after", "content-range", "etag"]);

/** Only POST /api/v1/buckets creates buckets here. */
const BUCKET_NAME = {
  in: "body",
  path: "name",
  message: "3 to 63 lower-case letters, digits, dots and hyphens; no IP address, no reserved name",
  code: "bucket_name",
} as const;

function toPlatformError(error: S3Error): PlatformError {
  const { status, code, message } = error;
  const kind =
    code === "EntityTooLarge"
      ? "payload_too_large"
      : (CODES[status] ?? (status < 500 ? "validation_failed" : "unavailable"));
  const headers = error.headers.filter(([name]) => HEADERS.has(name.toLowerCase()));
  return new PlatformError(kind, `${code}: ${message}`, {
    headers: Object.fromEntries(headers),
    fields: { s3_code: code, ...(code === "InvalidBucketName" ? { errors: [BUCKET_NAME] } : {}) },
    cause: error,
  });
}
