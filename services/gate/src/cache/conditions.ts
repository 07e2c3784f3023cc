// Conditions and ranges of requests that are answered from the store (RFC 9110 sections 13 and 14).
import { Known, Method, type RequestHead } from "@platform/http1";
import { type ByteRange, readRanges } from "@platform/kernel/content";
import { readDateMs } from "./store-rules.ts";

/** Validators of a stored response. */
export interface Validators {
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
}

/** True if the client has the stored response already (RFC 9110 section 13.2.2): 304. */
export function isNotModified({ fields }: RequestHead, validators: Validators): boolean {
  const tags = fields.get(Known.IfNoneMatch);
  if (tags !== undefined) return hasTag(tags, validators.etag);
  const since = fields.get(Known.IfModifiedSince);
  if (since === undefined || validators.lastModified === undefined) return false;
  const modifiedMs = readDateMs(validators.lastModified) ?? 0;
  const sinceMs = readDateMs(since) ?? 0;
  return sinceMs > 0 && modifiedMs > 0 && modifiedMs <= sinceMs;
}

/** The ranges of a request for a body of `size` bytes: empty if none is satisfiable, `undefined` for the whole body. */
export function findRanges(
  { fields, methodId }: RequestHead,
  size: number,
  validators: Validators,
): readonly ByteRange[] | undefined {
  const range = fields.get(Known.Range);
  // Only GET has ranges (RFC 9110 section 14.2).
  if (range === undefined || size === 0 || methodId !== Method.GET) return undefined;
  const condition = fields.find("if-range");
  if (condition !== undefined && !isSame(condition, validators)) return undefined;
  return readRanges(range, size);
}

// Weak comparison (RFC 9110 section 8.8.3.2).
function hasTag(list: string, etag: string | undefined): boolean {
  if (list.trim() === "*") return true;
  if (etag === undefined) return false;
  const wanted = etag.replace(/^W\//, "");
  for (const [tag] of list.matchAll(/(?:W\/)?"[^"]*"/g)) {
    if (tag.replace(/^W\//, "") === wanted) return true;
  }
  return false;
}

function isSame(condition: string, { etag, lastModified }: Validators): boolean {
  if (condition.startsWith('"')) return condition === etag;
  return lastModified !== undefined && condition === lastModified;
}
