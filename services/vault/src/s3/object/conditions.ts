// Parses conditional requests and ranges (RFC 9110 sections 13 and 14).
import type { RangeRequest, ReadConditions, WriteConditions } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import type { RequestFields } from "../wire/fields.ts";

const ETAG = /(?:W\/)?"([^"]*)"|([^\s",]+)/g;

/** The headers of conditions on a read, and on the source of a copy. */
const CONDITION_FIELDS = { read: nameConditions(""), copy: nameConditions("x-amz-copy-source-") };

function nameConditions(prefix: string) {
  return {
    ifMatch: `${prefix}if-match`,
    ifNoneMatch: `${prefix}if-none-match`,
    ifModifiedSince: `${prefix}if-modified-since`,
    ifUnmodifiedSince: `${prefix}if-unmodified-since`,
  };
}

/** Parses the conditions of a read, or on the source of a copy. */
export function readConditions(
  fields: RequestFields,
  of: keyof typeof CONDITION_FIELDS = "read",
): ReadConditions | undefined {
  const names = CONDITION_FIELDS[of];
  const conditions: ReadConditions = {};
  const ifMatch = fields.get(names.ifMatch);
  const ifNoneMatch = fields.get(names.ifNoneMatch);
  if (ifMatch !== undefined) conditions.ifMatch = readStrongEtags(ifMatch);
  if (ifNoneMatch !== undefined) conditions.ifNoneMatch = readEtags(ifNoneMatch);
  const modified = readDate(fields.get(names.ifModifiedSince));
  const unmodified = readDate(fields.get(names.ifUnmodifiedSince));
  if (modified !== undefined) conditions.ifModifiedSinceMs = modified;
  if (unmodified !== undefined) conditions.ifUnmodifiedSinceMs = unmodified;
  return Object.keys(conditions).length === 0 ? undefined : conditions;
}

/** Parses the conditions of a write. S3 accepts If-None-Match only with `*`. */
export function readWriteConditions(fields: RequestFields): WriteConditions | undefined {
  const ifMatch = fields.get("if-match");
  const ifNoneMatch = fields.get("if-none-match");
  if (ifMatch === undefined && ifNoneMatch === undefined) return undefined;
  if (ifMatch !== undefined && ifNoneMatch !== undefined) {
    throw new S3Error("InvalidRequest", "If-Match and If-None-Match exclude each other.");
  }
  if (ifNoneMatch !== undefined) {
    if (ifNoneMatch.trim() !== "*") {
      throw new S3Error("NotImplemented", "If-None-Match of a write takes * alone.");
    }
    return { ifNoneMatch: "*" };
  }
  return { ifMatch: readStrongEtags(ifMatch!)[0] ?? "" };
}

/** ETags without quotes; `*` stays. */
export function readEtags(text: string): string[] {
  return Array.from(text.matchAll(ETAG), (match) => match[1] ?? match[2] ?? "");
}

/** As `readEtags`, without weak ETags, which never match in If-Match (RFC 9110 section 13.1.1). */
export function readStrongEtags(text: string): string[] {
  return readEtags(text.replaceAll(/W\/"[^"]*"/g, ""));
}

function readDate(text: string | undefined): number | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** Parses a single range of bytes; malformed and multiple ranges are ignored. */
export function readRange(text: string | undefined): RangeRequest | undefined {
  if (text === undefined) return undefined;
  const match = /^\s*bytes\s*=\s*(\d{0,30})\s*-\s*(\d{0,30})\s*$/i.exec(text);
  if (match === null) return undefined;
  const [, first, last] = match;
  if (first === "") return last === "" ? undefined : { suffix: readOffset(last!) };
  const start = readOffset(first!);
  if (last === "") return { start };
  const end = readOffset(last!);
  return end < start ? undefined : { start, end };
}

// Beyond every object.
function readOffset(text: string): number {
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

/** Parses a positive integer of a query within limits. */
export function readInteger(
  text: string | undefined,
  name: string,
  min: number,
  max: number,
): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d{1,10}$/.test(text) || value < min || value > max) {
    throw new S3Error("InvalidArgument", {
      message: `${name} must be an integer between ${min} and ${max}`,
      elements: [
        ["ArgumentName", name],
        ["ArgumentValue", text],
      ],
    });
  }
  return value;
}
