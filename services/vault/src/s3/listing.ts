// Common parts of all listings: encoding of keys, markers, continuation tokens.
import type { ListPosition } from "../model/object.ts";
import { S3Error } from "../model/s3-error.ts";
import { encodeUri } from "./sigv4/index.ts";
import type { RequestQuery } from "./wire/query.ts";
import { tag, wrap } from "./wire/xml.ts";

const TOKEN_CHARS_MAX = 4_096;

/** The `encoding-type` of a listing. */
export function readEncodingType(query: RequestQuery): "url" | undefined {
  const text = query.get("encoding-type");
  if (text === undefined || text === "") return undefined;
  if (text !== "url")
    throw new S3Error("InvalidArgument", "Invalid Encoding Method specified in Request");
  return "url";
}

/** Creates the encoder of keys. */
export function createKeyEncoder(encodingType: "url" | undefined): (key: string) => string {
  return encodingType === undefined ? (key) => key : (key) => encodeUri(key, true);
}

/** Formats CommonPrefixes elements. */
export function formatPrefixes(
  prefixes: readonly string[],
  encode: (key: string) => string,
): string {
  let out = "";
  for (const prefix of prefixes) out += wrap("CommonPrefixes", tag("Prefix", encode(prefix)));
  return out;
}

/** The position of a marker. A marker that is a common prefix of this listing stands for all keys below it. */
export function toPosition(marker: string, prefix: string, delimiter: string): ListPosition {
  const rest = marker.startsWith(prefix) ? marker.slice(prefix.length) : "";
  const at = delimiter === "" ? -1 : rest.indexOf(delimiter);
  return { value: marker, isPrefix: at >= 0 && at === rest.length - delimiter.length };
}

/** Formats a continuation token: opaque, not secret. */
export function formatToken(position: ListPosition): string {
  return Buffer.from(`${position.isPrefix ? "p" : "k"}${position.value}`).toString("base64url");
}

/** Parses a continuation token. Throws InvalidArgument for an unknown one. */
export function parseToken(token: string): ListPosition {
  const text = token.length > TOKEN_CHARS_MAX ? "" : Buffer.from(token, "base64url").toString();
  if (
    !/^[pk]/.test(text) ||
    formatToken({ value: text.slice(1), isPrefix: text[0] === "p" }) !== token
  ) {
    throw new S3Error("InvalidArgument", "The continuation token provided is incorrect");
  }
  return { value: text.slice(1), isPrefix: text[0] === "p" };
}
