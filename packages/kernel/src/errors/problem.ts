// RFC 9457 problem documents, made from any thrown value.
import type { ErrorCode } from "./codes.ts";
import { toPlatformError } from "./platform-error.ts";

/** The media type of a problem document. */
export const PROBLEM_MEDIA_TYPE = "application/problem+json";

/** A problem document: the members of RFC 9457, the platform's own, then the error's fields. */
export interface Problem {
  /** `urn:platform:error:<code>` */
  type: string;
  title: string;
  status: number;
  detail: string;
  /** The path of the request, without its query. */
  instance: string;
  code: ErrorCode;
  /** Same text as `detail`, for clients that look for this member. */
  error: string;
  trace_id: string;
  [field: string]: unknown;
}

/** Where the problem occurred. */
export interface ProblemContext {
  /** The request's path; a query is cut off, for it may hold secrets. */
  instance?: string;
  traceId?: string;
}

/** The headers of a problem response, `Content-Type` among them; 429 and 503 always have `Retry-After`. */
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

/** The document for a thrown value. What is not a PlatformError becomes `internal` and tells nothing of itself. */
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
