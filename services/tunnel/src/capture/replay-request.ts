// Builds the request of a replay: a captured request with edits.
import { PlatformError } from "@platform/kernel/errors";
import { FORWARDING_HEADERS } from "@platform/kernel/http-parts";
import { z } from "zod";
import type { CapturedRequest } from "./captured-request.ts";
import { contentTypeOf, readText } from "./describe.ts";
import { decompress, find, parseRequest, type Field, type Message } from "./message.ts";
import { restoreFields, restorePath, restoreText } from "./redact.ts";

const PATH_CHARACTERS_MAX = 16_384;
const FIELDS_MAX = 128;
const FIELD_CHARACTERS_MAX = 16_384;
const HEAD_BYTES_MAX = 32_768;
const BODY_CHARACTERS_MAX = 1_000_000;

const headerName = z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/, "invalid name");
const headerValue = z
  .string()
  .max(FIELD_CHARACTERS_MAX)
  .regex(/^[\t\u0020-\u007e\u0080-\u00ff]*$/, "control and non-Latin-1 characters are not allowed");

/** Edits of a replayed request; absent parts are those of the captured one. */
export const editsSchema = z.strictObject({
  method: z
    .string()
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}$/, "invalid method")
    .refine((method) => method !== "CONNECT", "CONNECT cannot be replayed")
    .optional(),
  path: z
    .string()
    .max(PATH_CHARACTERS_MAX)
    .regex(/^\/[!-~\u0080-\u00ff]*$/, "must start with / and contain no spaces")
    .optional(),
  headers: z
    .array(z.tuple([headerName, headerValue]))
    .max(FIELDS_MAX)
    .optional()
    .meta({
      description:
        "All headers. Those about framing and connections are set by the relay. [redacted] stands for the captured credentials.",
    }),
  body: z.string().max(BODY_CHARACTERS_MAX).optional(),
  body_base64: z.base64().max(BODY_CHARACTERS_MAX).optional(),
});

/** Edits of a replayed request. */
export type ReplayEdits = z.output<typeof editsSchema>;

/** A request that is ready to be sent. */
export interface ReplayRequest {
  readonly method: string;
  readonly path: string;
  readonly head: Buffer;
  readonly content: Buffer;
}

/** Fields that the relay writes itself, and those of one hop (RFC 9110 section 7.6.1). */
const OWN_FIELDS = new Set([
  "connection",
  "content-length",
  "expect",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "traceparent",
  "tracestate",
  "transfer-encoding",
  "upgrade",
  "x-platform-tunnel-replay",
]);

/** Marks a request without forwarding headers, which a local service would take for one of this machine (RFC 7239). */
const RELAYED: Field = ["Forwarded", "for=unknown"];

/**
 * Builds the request. `traceFields` are added. Throws 400 for invalid edits, 409 if the captured request cannot be sent
 * again: its body was truncated and is not replaced, or it switched protocols.
 */
export function buildReplay(
  entry: CapturedRequest,
  edits: ReplayEdits,
  traceFields: readonly Field[],
): ReplayRequest {
  const captured = parseRequest(entry.request);
  if (captured === undefined) {
    throw new PlatformError("conflict", "The request was never sent to the local service.");
  }
  if (find(captured.fields, "upgrade") !== undefined) {
    throw new PlatformError("conflict", "Requests that switch protocols cannot be replayed.");
  }
  const [capturedMethod = "", capturedPath = ""] = captured.startLine.split(" ");
  const method = edits.method ?? capturedMethod;
  const path = edits.path === undefined ? capturedPath : restorePath(edits.path, capturedPath);
  const { content, isRecoded } = chooseContent(captured, edits);
  const fields = chooseFields(captured, edits, isRecoded);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...[...fields, ...traceFields].map(([name, value]) => `${name}: ${value}`),
    `X-Platform-Tunnel-Replay: ${entry.id}`,
    // GET without content needs no length (RFC 9110 section 8.6).
    ...(content.length > 0 || !isBodiless(method) ? [`Content-Length: ${content.length}`] : []),
    "Connection: close",
  ];
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  if (head.length > HEAD_BYTES_MAX) {
    throw new PlatformError("validation_failed", `headers: larger than ${HEAD_BYTES_MAX} bytes`);
  }
  return { method, path, head, content };
}

/** Edited text of a compressed body is sent uncompressed: `isRecoded`. */
function chooseContent(
  captured: Message,
  edits: ReplayEdits,
): { content: Buffer; isRecoded: boolean } {
  if (edits.body !== undefined && edits.body_base64 !== undefined) {
    throw new PlatformError("validation_failed", "body and body_base64 cannot be combined.");
  }
  if (edits.body_base64 !== undefined) {
    return { content: Buffer.from(edits.body_base64, "base64"), isRecoded: false };
  }
  if (edits.body === undefined) {
    if (captured.isComplete) return { content: captured.content, isRecoded: false };
    throw new PlatformError(
      "conflict",
      "The body was captured only in part: pass a body to replay the request.",
    );
  }
  const decoded = decompress(captured);
  const original = readText(decoded ?? captured.content, false) ?? "";
  const mediaType = contentTypeOf(captured.fields);
  const content = Buffer.from(restoreText(edits.body, original, mediaType));
  return { content, isRecoded: decoded !== undefined };
}

function chooseFields(captured: Message, edits: ReplayEdits, isRecoded: boolean): Field[] {
  const fields =
    edits.headers === undefined ? captured.fields : restoreFields(edits.headers, captured.fields);
  const kept = fields.filter(([name]) => {
    const key = name.toLowerCase();
    return !OWN_FIELDS.has(key) && !(isRecoded && key === "content-encoding");
  });
  const hosts = kept.filter(([name]) => name.toLowerCase() === "host");
  if (hosts.length > 1) throw new PlatformError("validation_failed", "headers: two Host headers");
  return [
    ...(hosts.length === 1
      ? []
      : [["Host", find(captured.fields, "host") ?? "localhost"] as const]),
    ...kept,
    ...(FORWARDING_HEADERS.some((name) => find(kept, name) !== undefined) ? [] : [RELAYED]),
  ];
}

function isBodiless(method: string): boolean {
  return method === "GET" || method === "HEAD" || method === "OPTIONS" || method === "DELETE";
}
