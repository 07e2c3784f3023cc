// URIs of requests, as signatures write them; broken escapes are errors of S3.
import {
  buildCanonicalRequest as buildCanonical,
  type CanonicalParts,
  decodeUri as decode,
  parseQuery as parse,
  type QueryPair,
} from "@platform/s3/signature";
import { S3Error } from "../../model/s3-error.ts";

export { buildStringToSign, canonicalizeQuery, encodeUri, hashHex } from "@platform/s3/signature";
export type { QueryPair };

/** Decodes percent escapes. Throws InvalidURI if they are broken or not UTF-8. */
export function decodeUri(text: string): string {
  if (!text.includes("%")) return text;
  return refuseBroken(() => decode(text));
}

/** Parses a raw query (without `?`). `+` is a space, as in S3. Throws InvalidURI. */
export function parseQuery(raw: string): QueryPair[] {
  return refuseBroken(() => parse(raw));
}

/** The canonical request as text. Throws InvalidURI. */
export function buildCanonicalRequest(parts: CanonicalParts): string {
  return refuseBroken(() => buildCanonical(parts));
}

function refuseBroken<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (error instanceof URIError) throw new S3Error("InvalidURI");
    throw error;
  }
}
