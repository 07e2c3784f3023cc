// The errors of the client: one closed set of codes for everything that a store can do.

/**
 * Reasons why a request failed.
 *
 * - `unreachable`: no connection, or it broke. `timeout`: the store was silent, or an attempt took too long.
 * - `address_not_allowed`: the egress guard forbids the address.
 * - `not_found`, `no_such_bucket`, `no_such_upload`: what the request names does not exist.
 * - `access_denied`: the credentials are wrong or lack the right; `clock_skew`: the clocks differ too much.
 * - `precondition_failed`: the object is not the expected one. `range_not_satisfiable`: it ends before the range.
 * - `slow_down`: throttled. `unavailable`: the store failed (5xx).
 * - `redirected`: the store sent the client elsewhere; redirects are not followed.
 * - `malformed_answer`: the answer contradicts the request or is not what S3 answers.
 * - `truncated`: the answer ended early. `checksum_mismatch`: the store received or keeps other bytes.
 * - `refused`: any other 4xx status. `circuit_open`: recent requests failed; nothing was sent.
 * - `busy`: too many requests are in flight. `aborted`: the caller's signal, or `close`.
 */
export type S3ClientErrorCode =
  | "unreachable"
  | "timeout"
  | "address_not_allowed"
  | "not_found"
  | "no_such_bucket"
  | "no_such_upload"
  | "access_denied"
  | "clock_skew"
  | "precondition_failed"
  | "range_not_satisfiable"
  | "slow_down"
  | "unavailable"
  | "redirected"
  | "malformed_answer"
  | "truncated"
  | "checksum_mismatch"
  | "refused"
  | "circuit_open"
  | "busy"
  | "aborted";

/** Operations of the client, as errors and observers name them. */
export type S3Operation =
  | "put"
  | "get"
  | "head"
  | "delete"
  | "list"
  | "create_upload"
  | "upload_part"
  | "complete_upload"
  | "abort_upload"
  | "list_uploads"
  | "describe"
  | "change"
  | "forward";

/** Facts about a failed request besides its code. */
export interface S3ClientErrorDetails {
  operation: S3Operation;
  status?: number | undefined;
  /** The store's own code, such as `NoSuchKey`. */
  serverCode?: string | undefined;
  /** The shortest wait that the store asked for. */
  retryAfterMs?: number | undefined;
  cause?: unknown;
}

/** A failed request. The message contains no credentials and no URL. */
export class S3ClientError extends Error {
  override readonly name = "S3ClientError";
  readonly code: S3ClientErrorCode;
  readonly operation: S3Operation;
  readonly status: number | undefined;
  readonly serverCode: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: S3ClientErrorCode, message: string, details: S3ClientErrorDetails) {
    super(message, details.cause === undefined ? {} : { cause: details.cause });
    this.code = code;
    this.operation = details.operation;
    this.status = details.status;
    this.serverCode = details.serverCode;
    this.retryAfterMs = details.retryAfterMs;
  }

  /** True if the same request may succeed later without a change. */
  get isTransient(): boolean {
    return TRANSIENT.has(this.code);
  }

  /** True if it says something about the health of the store, and not only about this request. */
  get isOutage(): boolean {
    return OUTAGE.has(this.code);
  }
}

const OUTAGE: ReadonlySet<S3ClientErrorCode> = new Set([
  "unreachable",
  "timeout",
  "slow_down",
  "unavailable",
]);
const TRANSIENT: ReadonlySet<S3ClientErrorCode> = new Set([
  ...OUTAGE,
  "truncated",
  "checksum_mismatch",
]);

const BY_SERVER_CODE: Readonly<Record<string, S3ClientErrorCode>> = {
  NoSuchKey: "not_found",
  NoSuchBucket: "no_such_bucket",
  NoSuchUpload: "no_such_upload",
  RequestTimeTooSkewed: "clock_skew",
  PreconditionFailed: "precondition_failed",
  InvalidRange: "range_not_satisfiable",
  SlowDown: "slow_down",
  SlowDownRead: "slow_down",
  SlowDownWrite: "slow_down",
  TooManyRequests: "slow_down",
  RequestLimitExceeded: "slow_down",
  InternalError: "unavailable",
  ServiceUnavailable: "unavailable",
  RequestTimeout: "timeout",
  BadDigest: "checksum_mismatch",
  XAmzContentSHA256Mismatch: "checksum_mismatch",
  XAmzContentChecksumMismatch: "checksum_mismatch",
  IncompleteBody: "truncated",
};

/** The code for an answer with this status and the store's own code. */
export function classifyAnswer(status: number, serverCode: string | undefined): S3ClientErrorCode {
  const known = serverCode === undefined ? undefined : BY_SERVER_CODE[serverCode];
  if (known !== undefined) return known;
  if (status >= 300 && status < 400) return status === 304 ? "precondition_failed" : "redirected";
  switch (status) {
    case 401:
    case 403:
      return "access_denied";
    case 404:
      return "not_found";
    case 408:
      return "timeout";
    case 412:
      return "precondition_failed";
    case 416:
      return "range_not_satisfiable";
    case 429:
      return "slow_down";
    default:
  }
  if (status >= 500) return "unavailable";
  // A success that carries an error document, as CompleteMultipartUpload may send.
  return status < 300 ? "unavailable" : "refused";
}
