// The exception that carries an error of the object API.
import { ERRORS, type ErrorCode } from "./errors.ts";

export interface S3ErrorOptions {
  /** Replaces the message of the table. Never a secret. */
  message?: string;
  /** More elements of the error document, such as `BucketName`. */
  elements?: readonly (readonly [name: string, value: string])[];
  /** More headers of the response, such as `Retry-After`. */
  headers?: readonly (readonly [name: string, value: string])[];
  /** The fault without the message of the table around it, for documents in another form than XML. */
  reason?: string;
  /** The place of the fault in its document, as {@link S3Error.path}. */
  path?: readonly PathSegment[];
  cause?: unknown;
}

/** A name in a document, or an index in a list. */
export type PathSegment = string | number;

/** An error that is answered as it is. */
export class S3Error extends Error {
  override readonly name = "S3Error";
  readonly code: ErrorCode;
  readonly status: number;
  readonly elements: readonly (readonly [name: string, value: string])[];
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly reason: string;
  /** The place of the fault in its document, outermost first; empty if it is unknown or the whole document. */
  readonly path: PathSegment[];

  constructor(code: ErrorCode, options: S3ErrorOptions | string = {}) {
    const settings = typeof options === "string" ? { message: options } : options;
    super(settings.message ?? ERRORS[code][1], { cause: settings.cause });
    this.code = code;
    this.status = ERRORS[code][0];
    this.elements = settings.elements ?? [];
    this.headers = settings.headers ?? [];
    this.reason = settings.reason ?? this.message;
    this.path = [...(settings.path ?? [])];
  }
}

/** Runs a check of a part of a document; its errors name the place of the part. */
export function checkPart<Result>(place: readonly PathSegment[], check: () => Result): Result {
  try {
    return check();
  } catch (error) {
    if (error instanceof S3Error) error.path.unshift(...place);
    throw error;
  }
}
