// The error that handlers throw to answer with a status.
import { STATUS_CODES } from "node:http";
import { PlatformError, type ErrorCode } from "@platform/kernel/errors";

/** Options of an {@link HttpError}. */
export interface HttpErrorOptions {
  /** Fields of the response, such as `Retry-After`. */
  headers?: Readonly<Record<string, string>>;
  /** Additional members of the problem document (RFC 9457 section 3.2). */
  fields?: Readonly<Record<string, unknown>>;
  /** Logged, never sent. */
  cause?: unknown;
}

/** Codes of the statuses that have one; others have the code of their class. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  400: "bad_request",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  405: "method_not_allowed",
  406: "not_acceptable",
  408: "request_timeout",
  409: "conflict",
  410: "gone",
  411: "length_required",
  412: "precondition_failed",
  413: "payload_too_large",
  414: "uri_too_long",
  415: "unsupported_media_type",
  416: "range_not_satisfiable",
  422: "unprocessable",
  426: "upgrade_required",
  428: "precondition_required",
  429: "too_many_requests",
  500: "internal",
  501: "not_implemented",
  503: "unavailable",
  507: "insufficient_storage",
};

/**
 * An error with a status: the response is a problem document (RFC 9457) with `detail`, which callers see, and the trace
 * id of the request.
 *
 * ```ts
 * throw new HttpError(404, "No such note");
 * throw new HttpError(429, "One export at a time", { headers: { "Retry-After": "30" } });
 * ```
 */
export class HttpError extends PlatformError {
  override readonly title: string;

  /** `status` is 400 to 599; `detail` defaults to the status' reason phrase. Throws a RangeError for other statuses. */
  constructor(status: number, detail?: string, options: HttpErrorOptions = {}) {
    if (!Number.isInteger(status) || status < 400 || status > 599) {
      throw new RangeError(`HttpError: the status must be from 400 to 599, not ${status}`);
    }
    const title = STATUS_CODES[status] ?? `Status ${status}`;
    super(CODES[status] ?? (status < 500 ? "bad_request" : "internal"), detail ?? title, {
      ...options,
      status,
    });
    this.name = "HttpError";
    this.title = title;
  }
}
