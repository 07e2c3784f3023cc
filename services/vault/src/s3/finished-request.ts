// A finished request to the object API, for logs, metrics and the access log.
import type { Span } from "@platform/kernel/trace";
import type { Caller } from "../access/authorizer.ts";
import type { S3Answer } from "./answer.ts";
import type { ErrorForm } from "./context.ts";
import type { S3Request } from "./request.ts";
import type { SignatureKind } from "./sigv4/index.ts";

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
  /** Undefined for anonymous requests. */
  signature: SignatureKind | undefined;
  /** Undefined until it is known. */
  answer: S3Answer | undefined;
  status: number;
  errorCode: string | undefined;
}
