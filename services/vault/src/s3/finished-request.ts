// A finished request to the object API, for logs, metrics and the access log.
import type { Span } from "@platform/kernel/trace";
import type { Caller } from "../access/authorizer.ts";
import type { ErrorForm } from "./context.ts";
import type { S3Request } from "./request.ts";

/** A request and its outcome. */
export interface FinishedRequest {
  request: S3Request;
  span: Span;
  /** Name of the operation; `Website`, `Preflight`, `Probe`, or `Unknown` for requests refused before it was known. */
  operation: string;
  /** See `Operation`. */
  answersRegion: boolean;
  /** See `Operation`. */
  errorForm: ErrorForm;
  bucketName: string;
  key: string;
  caller: Caller | undefined;
  status: number;
  errorCode: string | undefined;
}
