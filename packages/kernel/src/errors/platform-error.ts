// The one error class of the platform: a closed code with what a caller may be told.
import { errorTable } from "./codes.ts";
import type { ErrorCode } from "./codes.ts";

/** What an error may carry beside its code. */
export interface PlatformErrorOptions {
  /** Response headers that belong to the error, such as `WWW-Authenticate`; names as they go on the wire. */
  headers?: Readonly<Record<string, string>>;
  /** Extra members of the problem document (RFC 9457 section 3.2); they never replace the standard ones. */
  fields?: Readonly<Record<string, unknown>>;
  /** What led to it. Logged, never sent to the caller. */
  cause?: unknown;
}

/** An error whose `detail` is meant for the caller: it holds no secret and no inner workings. */
export class PlatformError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, unknown>>;

  /** `detail` defaults to the code's title. */
  constructor(code: ErrorCode, detail?: string, options: PlatformErrorOptions = {}) {
    const kind = errorTable[code];
    super(detail ?? kind.title, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "PlatformError";
    this.code = code;
    this.status = kind.status;
    this.title = kind.title;
    this.detail = detail ?? kind.title;
    this.headers = options.headers ?? {};
    this.fields = options.fields ?? {};
  }
}

/** 401 with the challenge that RFC 9110 section 15.5.2 requires. */
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
 * An error to be tried again later (429 or one of the 503s), with `Retry-After` in whole seconds, at least 1.
 * `headers` adds others, such as `RateLimit` and `RateLimit-Policy`.
 */
export function createRetryLaterError(
  code: "too_many_requests" | "unavailable" | "overloaded" | "queue_full" | "circuit_open",
  detail: string,
  retryAfterSeconds: number,
  headers: Readonly<Record<string, string>> = {},
): PlatformError {
  const seconds = Math.max(1, Math.ceil(retryAfterSeconds));
  return new PlatformError(code, detail, {
    headers: { ...headers, "Retry-After": String(seconds) },
  });
}

/** Any thrown value as a PlatformError; what is not one becomes `internal` with the value as its cause only. */
export function toPlatformError(thrown: unknown): PlatformError {
  if (thrown instanceof PlatformError) return thrown;
  return new PlatformError("internal", "An unexpected error occurred.", { cause: thrown });
}
