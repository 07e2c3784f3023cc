// Reads parameters, query and body of a request within limits, and validates them by the route's schemas.
import type { z } from "zod";
import { type Fault, PlatformError, readFault } from "../errors/index.ts";
import type { BodyReservation } from "./body-budget.ts";
import type { ApiRoute } from "./route.ts";

/**
 * A validation error. `path` is a dotted path into the part; "" is the whole part. `code` and `params` are for clients that
 * show words of their own language.
 */
export interface InputError extends Fault {
  in: "path" | "query" | "body";
  path: string;
  message: string;
}

/** The validated parts of a request. */
export interface RequestInput {
  params: unknown;
  query: unknown;
  body: unknown;
}

const ERRORS_MAX = 50;
const UTF8 = new TextDecoder("utf-8", { fatal: true });
const JSON_TYPE = /^application\/(?:[a-z0-9.+-]+\+)?json$/;
// `curl -d` sends the form type by default. A form of another site cannot send JSON with it, because names and values are
// percent-encoded, but it could with text/plain.
const DEFAULT_TYPE = /^(?:|application\/x-www-form-urlencoded)$/;

/**
 * Reads and validates the input of a route. Throws a PlatformError: `validation_failed` with a list of `errors`,
 * `payload_too_large`, `unsupported_media_type`, or `bad_request` for invalid JSON.
 */
export async function readInput(
  route: ApiRoute,
  request: Request,
  url: URL,
  params: Readonly<Record<string, string>>,
  bodyBytesMax: number,
  reservation?: BodyReservation,
): Promise<RequestInput> {
  const errors: InputError[] = [];
  const input: RequestInput = {
    params: check(route.params, "path", params, errors),
    query: check(route.query, "query", readQuery(url.searchParams), errors),
    body: undefined,
  };
  const isJson =
    route.bodyKind !== "bytes" && route.bodyKind !== "stream" && route.body !== undefined;
  if (isJson || route.bodyKind === "bytes") checkContentCoding(request.headers);
  // A client that waits for 100 (Continue) is not asked for a body that cannot change the response.
  const isAwaited = request.headers.get("expect") !== null;
  if (isAwaited && errors.length > 0) throw createValidationError(errors);
  if (route.bodyKind === "bytes") {
    input.body = await readBody(request, bodyBytesMax, reservation);
  } else if (route.body !== undefined) {
    const type = request.headers.get("content-type");
    if (isAwaited || Number(request.headers.get("content-length") ?? 0) > 0) checkJsonType(type);
    const bytes = await readBody(request, bodyBytesMax, reservation);
    const body = parseJson(bytes, type);
    input.body = check(route.body, "body", body, errors);
  }
  if (errors.length > 0) throw createValidationError(errors);
  return input;
}

/** Creates the error for invalid input, for checks beyond a schema. */
export function createValidationError(errors: readonly InputError[]): PlatformError {
  const [first] = errors;
  const place = first === undefined ? "" : [first.in, first.path].filter(Boolean).join(".");
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : "";
  const detail = first === undefined ? undefined : `${place}: ${first.message}${more}`;
  return new PlatformError("validation_failed", detail, {
    fields: { errors: errors.slice(0, ERRORS_MAX) },
  });
}

/**
 * Reads a whole body. Throws `payload_too_large` (413) beyond `bytesMax`, before or during the upload, and `overloaded`
 * (503) beyond the bounds of the reservation.
 */
export async function readBody(
  request: Request,
  bytesMax: number,
  reservation?: BodyReservation,
): Promise<Uint8Array<ArrayBuffer>> {
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > bytesMax) throw tooLarge(bytesMax);
  if (request.body === null) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((cause: unknown) => {
      if (cause instanceof PlatformError) throw cause;
      throw new PlatformError("bad_request", "The request body is incomplete.", { cause });
    });
    if (done) break;
    size += value.byteLength;
    try {
      if (size > bytesMax) throw tooLarge(bytesMax);
      reservation?.add(value.byteLength);
    } catch (error) {
      void reader.cancel().catch(() => {});
      throw error;
    }
    chunks.push(value);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}

/**
 * Parses a JSON body; an empty body is undefined. The default type of curl is accepted if the body is JSON.
 * Throws `unsupported_media_type` or `bad_request`.
 */
export function parseJson(bytes: Uint8Array, contentType: string | null): unknown {
  if (bytes.byteLength === 0) return undefined;
  const isDeclared = checkJsonType(contentType);
  try {
    return JSON.parse(UTF8.decode(bytes)) as unknown;
  } catch (cause) {
    if (!isDeclared) throw createTypeError();
    throw new PlatformError("bad_request", "The body is not valid JSON.", { cause });
  }
}

/**
 * True for a JSON type, or none; false for the default type of curl, which does not describe the body. Throws
 * `unsupported_media_type` for all others, and for charsets other than UTF-8.
 */
export function checkJsonType(contentType: string | null): boolean {
  const [type = "", ...parameters] = (contentType ?? "").split(";");
  const name = type.trim().toLowerCase();
  const charset = parameters.map((text) => text.trim().toLowerCase()).find(isCharset);
  const isUtf8 = charset === undefined || /=\s*"?utf-8"?$/.test(charset);
  if (!isUtf8 || !(JSON_TYPE.test(name) || DEFAULT_TYPE.test(name))) throw createTypeError();
  return name === "" || JSON_TYPE.test(name);
}

/** Throws `unsupported_media_type` for a coded body: no coding is decoded (RFC 9110 section 15.5.16). */
export function checkContentCoding(headers: Pick<Headers, "get">): void {
  const codings = (headers.get("content-encoding") ?? "").split(",").map((text) => text.trim());
  const coding = codings.find((name) => name !== "" && name.toLowerCase() !== "identity");
  if (coding === undefined) return;
  throw new PlatformError(
    "unsupported_media_type",
    "The body has a Content-Encoding; send it without.",
    { headers: { "Accept-Encoding": "identity" } },
  );
}

/** The error for a body that is not JSON. */
function createTypeError(): PlatformError {
  return new PlatformError(
    "unsupported_media_type",
    "The body must be JSON in UTF-8, with Content-Type: application/json.",
    { headers: { "Accept-Post": "application/json" } },
  );
}

/** Validates a body. Throws `validation_failed`. */
export function checkBody(route: ApiRoute, body: unknown): unknown {
  const errors: InputError[] = [];
  const checked = check(route.body, "body", body, errors);
  if (errors.length > 0) throw createValidationError(errors);
  return checked;
}

function isCharset(parameter: string): boolean {
  return parameter.startsWith("charset");
}

// A single value is a string, several are an array. The object has no prototype, so any name is safe.
function readQuery(search: URLSearchParams): Record<string, string | string[]> {
  const query = Object.create(null) as Record<string, string | string[]>;
  for (const name of new Set(search.keys())) {
    const values = search.getAll(name);
    query[name] = values.length === 1 ? values[0]! : values;
  }
  return query;
}

function check(
  schema: z.ZodType | undefined,
  part: InputError["in"],
  value: unknown,
  errors: InputError[],
): unknown {
  if (schema === undefined) return value;
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  for (const issue of result.error.issues) {
    const path = issue.path.map(String).join(".");
    errors.push({ in: part, path, message: issue.message, ...readFault(issue, value) });
  }
  return undefined;
}

function tooLarge(bytesMax: number): PlatformError {
  return new PlatformError("payload_too_large", `The body exceeds ${bytesMax} bytes.`, {
    headers: { Connection: "close" },
  });
}
