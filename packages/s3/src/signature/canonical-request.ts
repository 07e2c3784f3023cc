// The canonical request of Signature Version 4 for S3 ("Create a canonical request" in the API reference).
import { hash } from "node:crypto";

/** Characters that S3 encodes and encodeURIComponent does not. */
const LEFT_OVER = /[!'()*]/g;
const PLAIN_PATH = /^[A-Za-z0-9\-._~/]*$/;
const PLAIN_TEXT = /^[A-Za-z0-9\-._~]*$/;

/** A decoded query parameter, in the order of the query. */
export type QueryPair = readonly [name: string, value: string];

/**
 * Percent-encodes the UTF-8 bytes of a text like S3: everything except unreserved characters, with upper-case digits;
 * `keepSlash` keeps `/`.
 */
export function encodeUri(text: string, keepSlash = false): string {
  if ((keepSlash ? PLAIN_PATH : PLAIN_TEXT).test(text)) return text;
  const encoded = encodeURIComponent(text.toWellFormed()).replace(
    LEFT_OVER,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return keepSlash ? encoded.replaceAll("%2F", "/") : encoded;
}

/** Decodes percent escapes. Throws a URIError if they are broken or not UTF-8. */
export function decodeUri(text: string): string {
  return text.includes("%") ? decodeURIComponent(text) : text;
}

/** Parses a raw query (without `?`). `+` is a space, as in S3. Throws a URIError. */
export function parseQuery(raw: string): QueryPair[] {
  const pairs: QueryPair[] = [];
  const text = raw.replaceAll("+", " ");
  for (let start = 0, end = 0; start < text.length; start = end + 1) {
    end = text.indexOf("&", start);
    if (end < 0) end = text.length;
    if (end === start) continue;
    const part = text.slice(start, end);
    const at = part.indexOf("=");
    const name = at < 0 ? part : part.slice(0, at);
    const value = at < 0 ? "" : part.slice(at + 1);
    pairs.push([decodeUri(name), decodeUri(value)]);
  }
  return pairs;
}

/** The signed path: decoded once and encoded again, without normalisation. */
function canonicalizePath(rawPath: string): string {
  if (PLAIN_PATH.test(rawPath)) return rawPath;
  return encodeUri(decodeUri(rawPath), true);
}

/** The signed query: encoded again, sorted by name, then value; `skip` omits one name. */
export function canonicalizeQuery(pairs: readonly QueryPair[], skip?: string): string {
  const encoded: QueryPair[] = [];
  let isSorted = true;
  for (const [name, value] of pairs) {
    if (name === skip) continue;
    const pair: QueryPair = [encodeUri(name), encodeUri(value)];
    const before = encoded.at(-1);
    isSorted &&= before === undefined || comparePairs(before, pair) <= 0;
    encoded.push(pair);
  }
  // Most clients send the query in the order in which they signed it.
  if (!isSorted) encoded.sort(comparePairs);
  let text = "";
  for (const [name, value] of encoded) text += `${text === "" ? "" : "&"}${name}=${value}`;
  return text;
}

function comparePairs(a: QueryPair, b: QueryPair): number {
  return compareText(a[0], b[0]) || compareText(a[1], b[1]);
}

/** A signed header value: trimmed, with single spaces. */
function canonicalizeValue(value: string): string {
  const trimmed = value.trim();
  return trimmed.includes("  ") ? trimmed.replace(/ {2,}/g, " ") : trimmed;
}

/** The parts of a canonical request. */
export interface CanonicalParts {
  method: string;
  /** Path of the target as received, with percent escapes. */
  rawPath: string;
  /** As `canonicalizeQuery` returns it, without the signature itself. */
  query: string;
  /** Lower-case names to values; several values of a name are joined with `,`. */
  getField: (name: string) => string | undefined;
  /** Lower-case and sorted. */
  signedHeaders: readonly string[];
  payloadHash: string;
}

/** The canonical request as text. Throws a URIError for a path with broken escapes. */
export function buildCanonicalRequest(parts: CanonicalParts): string {
  let headers = "";
  for (const name of parts.signedHeaders) {
    headers += `${name}:${canonicalizeValue(parts.getField(name) ?? "")}\n`;
  }
  const path = canonicalizePath(parts.rawPath);
  return `${parts.method}\n${path}\n${parts.query}\n${headers}\n${parts.signedHeaders.join(";")}\n${parts.payloadHash}`;
}

/** The string to sign of a canonical request. */
export function buildStringToSign(timestamp: string, scope: string, canonical: string): string {
  // Header values are bytes read as latin1; everything else is ASCII.
  const digest = hash("sha256", Buffer.from(canonical, "latin1"), "hex");
  return `AWS4-HMAC-SHA256\n${timestamp}\n${scope}\n${digest}`;
}

/** SHA-256 in lower-case hexadecimal. */
export function hashHex(data: string | Uint8Array): string {
  return hash("sha256", data, "hex");
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
