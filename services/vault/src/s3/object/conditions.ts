// Conditional requests and ranges, as fields have them (RFC 9110 sections 13 and 14).
import type { RangeRequest, ReadConditions, WriteConditions } from "../../model/object.ts";
import { S3Error } from "../../model/s3-error.ts";
import type { RequestFields } from "../wire/fields.ts";

const ETAG = /(?:W\/)?"([^"]*)"|([^\s",]+)/g;

/** The fields of conditions on a read, and on the source of a copy. */
const CONDITION_FIELDS = { read: nameConditions(""), copy: nameConditions("x-amz-copy-source-") };

function nameConditions(prefix: string) {
  return {
    ifMatch: `${prefix}if-match`,
    ifNoneMatch: `${prefix}if-none-match`,
    ifModifiedSince: `${prefix}if-modified-since`,
    ifUnmodifiedSince: `${prefix}if-unmodified-since`,
  };
}

/** Conditions of a read, or on the source of a copy. */
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

/** Conditions of a write. S3 takes If-None-Match only as `*`. */
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

/** ETags without quotes; `*` as it is. */
export function readEtags(text: string): string[] {
  return Array.from(text.matchAll(ETAG), (match) => match[1] ?? match[2] ?? "");
}

/** As `readEtags`, without weak ones: for If-Match they are like no other (RFC 9110 section 13.1.1). */
export function readStrongEtags(text: string): string[] {
  return readEtags(text.replaceAll(/W\/"[^"]*"/g, ""));
}

function readDate(text: string | undefined): number | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** One range of bytes; what is malformed, or several ranges, count as none. */
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

// Past every object is past every object.
function readOffset(text: string): number {
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

/** A positive integer of a query, within bounds. */
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
