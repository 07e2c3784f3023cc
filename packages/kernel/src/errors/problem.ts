// RFC 9457 problem documents.
import type { ErrorCode } from "./codes.ts";
import { toPlatformError } from "./platform-error.ts";

/** The media type of a problem document. */
export const PROBLEM_MEDIA_TYPE = "application/problem+json";

/** A problem document: the members of RFC 9457, those of the platform, and the error's fields. */
export interface Problem {
  /** `urn:platform:error:<code>` */
  type: string;
  title: string;
  status: number;
  detail: string;
  /** The path of the request, without its query. */
  instance: string;
  code: ErrorCode;
  /** Same as `detail`, for clients that expect this member. */
  error: string;
  trace_id: string;
  [field: string]: unknown;
}

/** Context of a problem. */
export interface ProblemContext {
  /** Path of the request. A query is removed, because it may contain secrets. */
  instance?: string;
  traceId?: string;
}

/** Returns the headers of a problem response, including `Content-Type`; 429 and 503 always have `Retry-After`. */
export function getProblemHeaders(thrown: unknown): Record<string, string> {
  const error = toPlatformError(thrown);
  const headers: Record<string, string> = { "Content-Type": PROBLEM_MEDIA_TYPE, ...error.headers };
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  if ((error.status === 429 || error.status === 503) && !names.has("retry-after")) {
    headers["Retry-After"] = "1";
  }
  if (error.status === 401 && !names.has("www-authenticate"))
    headers["WWW-Authenticate"] = "Bearer";
  return headers;
}

/** Converts a thrown value to a problem document. Other errors than PlatformError become `internal` without details. */
export function toProblem(thrown: unknown, context: ProblemContext = {}): Problem {
  const error = toPlatformError(thrown);
  const path = context.instance ?? "";
  const queryAt = path.indexOf("?");
  return {
    ...error.fields,
    type: `urn:platform:error:${error.code}`,
    title: error.title,
    status: error.status,
    detail: error.detail,
    instance: queryAt === -1 ? path : path.slice(0, queryAt),
    code: error.code,
    error: error.detail,
    trace_id: context.traceId ?? "",
  };
}
