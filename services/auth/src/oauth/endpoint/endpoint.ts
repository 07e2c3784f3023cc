// Form bodies and JSON responses of the endpoints of this service.
import type { IncomingMessage, ServerResponse } from "node:http";
import { toPlatformError } from "@platform/kernel/errors";
import { PRIVATE_HEADERS } from "../../web/security-headers.ts";

const BODY_BYTES_MAX = 57_344;

/** An OAuth error (RFC 6749 section 5.2). */
export class OAuthError extends Error {
  readonly status: number;
  readonly code: string;
  readonly challenge: string | undefined;
  /** `Retry-After`, in seconds. */
  readonly retryAfter: string | undefined;

  constructor(
    status: number,
    code: string,
    description: string,
    challenge?: string,
    retryAfter?: string,
  ) {
    super(description);
    this.retryAfter = retryAfter;
    this.name = "OAuthError";
    this.status = status;
    this.code = code;
    this.challenge = challenge;
  }
}

/**
 * Converts any error to an OAuth error. Errors with status 503 become `temporarily_unavailable` (RFC 6749 section
 * 4.1.2.1), all others `server_error`.
 */
export function toOAuthError(thrown: unknown): OAuthError {
  if (thrown instanceof OAuthError) return thrown;
  const { status, detail, headers } = toPlatformError(thrown);
  return status === 503
    ? new OAuthError(503, "temporarily_unavailable", detail, undefined, headers["Retry-After"])
    : new OAuthError(500, "server_error", "the request could not be served");
}

/** True if the content type is that of a form. */
export function isForm(request: IncomingMessage): boolean {
  const type = (request.headers["content-type"] ?? "").split(";", 1)[0]!.trim().toLowerCase();
  return type === "application/x-www-form-urlencoded";
}

/** Reads a form body. Throws `invalid_request` for other content types, codings, too large bodies and repeated fields. */
export async function readForm(request: IncomingMessage): Promise<Map<string, string>> {
  const fields = new Map<string, string>();
  for (const [name, value] of await readPairs(request)) {
    if (fields.has(name)) {
      throw new OAuthError(400, "invalid_request", "a parameter must not be repeated");
    }
    // Parameters without a value count as omitted (RFC 6749 section 3.2).
    if (value !== "") fields.set(name, value);
  }
  return fields;
}

/**
 * Reads a form body without checking its fields. Throws `invalid_request` for other content types and too large
 * bodies.
 */
export async function readPairs(request: IncomingMessage): Promise<URLSearchParams> {
  if (!isForm(request)) {
    throw new OAuthError(
      400,
      "invalid_request",
      "the body must be application/x-www-form-urlencoded",
    );
  }
  const coding = request.headers["content-encoding"] ?? "identity";
  if (coding.toLowerCase() !== "identity")
    throw new OAuthError(415, "invalid_request", "the body must not have a Content-Encoding");
  const tooLarge = `the body exceeds ${BODY_BYTES_MAX} bytes`;
  // Before the first read, which asks for the rest of a body with `Expect: 100-continue`.
  if (Number(request.headers["content-length"] ?? 0) > BODY_BYTES_MAX)
    throw new OAuthError(413, "invalid_request", tooLarge);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) {
      throw new OAuthError(413, "invalid_request", tooLarge);
    }
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString("utf8"));
}

/** Sends JSON that must not be cached. */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = Buffer.from(JSON.stringify(body));
  response
    .writeHead(status, {
      "Content-Type": "application/json; charset=utf-8",
      "Content-Length": text.length,
      ...PRIVATE_HEADERS,
    })
    .end(text);
}

/** Sends an error. */
export function sendError(response: ServerResponse, error: OAuthError): void {
  if (error.challenge !== undefined) response.setHeader("WWW-Authenticate", error.challenge);
  if (error.retryAfter !== undefined) response.setHeader("Retry-After", error.retryAfter);
  // The codings that are read (RFC 9110 section 15.5.16).
  if (error.status === 415) response.setHeader("Accept-Encoding", "identity");
  if (error.status === 413) response.setHeader("Connection", "close");
  sendJson(response, error.status, { error: error.code, error_description: error.message });
}
