// A request to the object API after its answer, as logs, metrics and the access log see it.
import type { Span } from "@platform/kernel/trace";
import type { Caller } from "../access/authorizer.ts";
import type { S3Request } from "./request.ts";
import type { OperationName } from "./wire/operation.ts";

/** What is known of a request when it has been answered. */
export interface FinishedRequest {
  request: S3Request;
  span: Span;
  /** `Website`, `Preflight`, `Probe`, or `Unknown` where it was refused before that was clear. */
  operation: OperationName | "Website" | "Preflight" | "Probe" | "Unknown";
  bucketName: string;
  key: string;
  caller: Caller | undefined;
  status: number;
  errorCode: string | undefined;
}
