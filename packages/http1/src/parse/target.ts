// The absolute form of a request target (RFC 9112 §3.2.2).
import { COLON, PATH, QUESTION, SLASH } from "./bytes.ts";
import { equalsIgnoringCase } from "./field-block.ts";

/** Offsets of the parts of an absolute target; the path starts at the end of the authority. */
export interface AbsoluteTarget {
  authorityStart: number;
  authorityEnd: number;
  pathEnd: number;
  /** First byte after `?`, or -1. */
  queryStart: number;
}

/**
 * Splits `http://authority/path?query` (or https). The bytes have been scanned for query bytes before; the authority is
 * validated with the Host field. Returns null for other targets.
 */
export function readAbsoluteTarget(
  bytes: Uint8Array,
  start: number,
  end: number,
): AbsoluteTarget | null {
  let at = start;
  while (at < end && bytes[at] !== COLON) at++;
  if (
    !equalsIgnoringCase(bytes, start, at, "http") &&
    !equalsIgnoringCase(bytes, start, at, "https")
  ) {
    return null;
  }
  if (at + 2 >= end || bytes[at + 1] !== SLASH || bytes[at + 2] !== SLASH) return null;
  const authorityStart = at + 3;
  at = authorityStart;
  while (at < end && bytes[at] !== SLASH && bytes[at] !== QUESTION) at++;
  const authorityEnd = at;
  while (at < end && PATH[bytes[at]!] !== 0) at++;
  if (at < end && bytes[at] !== QUESTION) return null;
  return { authorityStart, authorityEnd, pathEnd: at, queryStart: at < end ? at + 1 : -1 };
}
