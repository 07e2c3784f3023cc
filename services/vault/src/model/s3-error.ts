// The exception that carries an error of the object API.
import { ERRORS, type ErrorCode } from "./errors.ts";

/** Details of an error. */
export interface S3ErrorOptions {
  /** Replaces the message of the table. Never a secret. */
  message?: string;
  /** More elements of the error document, such as `BucketName`. */
  elements?: readonly (readonly [name: string, value: string])[];
  /** More headers of the response, such as `Retry-After`. */
  headers?: readonly (readonly [name: string, value: string])[];
  cause?: unknown;
}

/** An error that is answered as it is. */
export class S3Error extends Error {
  override readonly name = "S3Error";
  readonly code: ErrorCode;
  readonly status: number;
  readonly elements: readonly (readonly [name: string, value: string])[];
  readonly headers: readonly (readonly [name: string, value: string])[];

  constructor(code: ErrorCode, options: S3ErrorOptions | string = {}) {
    const settings = typeof options === "string" ? { message: options } : options;
    super(settings.message ?? ERRORS[code][1], { cause: settings.cause });
    this.code = code;
    this.status = ERRORS[code][0];
    this.elements = settings.elements ?? [];
    this.headers = settings.headers ?? [];
  }
}
