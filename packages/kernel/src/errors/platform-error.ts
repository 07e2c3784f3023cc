// The error class of the platform: a code, and a detail for the caller.
import { ERROR_TABLE, type ErrorCode } from "./codes.ts";

/** Options of a PlatformError. */
export interface PlatformErrorOptions {
  /** Replaces the status of the code, for a condition that is another one's fault in this protocol. */
  status?: number;
  /** Response headers of the error, such as `WWW-Authenticate`. */
  headers?: Readonly<Record<string, string>>;
  /** Additional members of the problem document (RFC 9457 section 3.2); standard members take precedence. */
  fields?: Readonly<Record<string, unknown>>;
  /** Logged, never sent to the caller. */
  cause?: unknown;
}

/** An error whose `detail` is sent to the caller: it must not contain secrets or internals. */
export class PlatformError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, unknown>>;

  /** `detail` defaults to the code's title. */
  constructor(code: ErrorCode, detail?: string, options: PlatformErrorOptions = {}) {
    const kind = ERROR_TABLE[code];
    super(detail ?? kind.title, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "PlatformError";
    this.code = code;
    this.status = options.status ?? kind.status;
    this.title = kind.title;
    this.detail = detail ?? kind.title;
    this.headers = options.headers ?? {};
    this.fields = options.fields ?? {};
  }
}

/** Creates a 401 error with a challenge, which RFC 9110 section 15.5.2 requires. */
export function createUnauthorizedError(
  detail: string,
  challenge = "Bearer",
  cause?: unknown,
): PlatformError {
  return new PlatformError("unauthorized", detail, {
    headers: { "WWW-Authenticate": challenge },
    cause,
  });
}

/**
 * Creates an error for a request that may succeed later (429 or 503), with `Retry-After` in whole seconds, at least 1.
 * `headers` adds others, such as `RateLimit` and `RateLimit-Policy`.
 */
export function createRetryLaterError(
  code:
    | "too_many_requests"
    | "unavailable"
    | "overloaded"
    | "queue_full"
    | "circuit_open"
    | "cold_unavailable",
  detail: string,
  retryAfterSeconds: number,
  headers: Readonly<Record<string, string>> = {},
): PlatformError {
  const seconds = Math.max(1, Math.ceil(retryAfterSeconds));
  return new PlatformError(code, detail, {
    headers: { ...headers, "Retry-After": String(seconds) },
  });
}

/** Converts any thrown value to a PlatformError; other errors become `internal`, with the value only as the cause. */
export function toPlatformError(thrown: unknown): PlatformError {
  if (thrown instanceof PlatformError) return thrown;
  return new PlatformError("internal", "An unexpected error occurred.", { cause: thrown });
}
