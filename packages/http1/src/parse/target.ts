// Request targets in other forms than the origin form (RFC 9112 §3.2), and percent-encoding.
import { ASTERISK, COLON, HEX, PATH, PERCENT, QUESTION, SLASH } from "./bytes.ts";
import { equalsIgnoringCase } from "./field-block.ts";
import { Method } from "./methods.ts";
import { type ParsedRequest, TargetForm } from "./parsed-request.ts";
import { type Refusal, refusals } from "./refusals.ts";

/**
 * Reads a target that is not in origin form into `head`, or returns the reason for a refusal. Its bytes have been scanned
 * for query bytes before; the authority is validated with the Host field.
 */
export function readOtherTarget(head: ParsedRequest): Refusal | null {
  const { bytes, targetStart, targetEnd } = head;
  head.pathStart = targetStart;
  head.pathEnd = targetStart;
  if (head.methodId === Method.CONNECT) {
    head.targetForm = TargetForm.Authority;
    head.authorityStart = targetStart;
    head.authorityEnd = targetEnd;
    return null;
  }
  if (targetEnd - targetStart === 1 && bytes[targetStart] === ASTERISK) {
    head.targetForm = TargetForm.Asterisk;
    return null;
  }
  if (!readAbsoluteTarget(head)) return refusals.bad_target;
  return isPercentEncoded(bytes, head.pathStart, head.pathEnd) ? null : refusals.bad_percent;
}

/** True if every `%` in `bytes[start, end)` is followed by two hexadecimal digits. */
export function isPercentEncoded(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    if (bytes[at] !== PERCENT) continue;
    if (at + 2 >= end || HEX[bytes[at + 1]!] === 0xff || HEX[bytes[at + 2]!] === 0xff) return false;
  }
  return true;
}

/** Splits `http://authority/path?query` (or https). Returns false for other targets. */
function readAbsoluteTarget(head: ParsedRequest): boolean {
  const { bytes, targetStart, targetEnd: end } = head;
  let at = targetStart;
  while (at < end && bytes[at] !== COLON) at++;
  if (
    !equalsIgnoringCase(bytes, targetStart, at, "http") &&
    !equalsIgnoringCase(bytes, targetStart, at, "https")
  ) {
    return false;
  }
  if (at + 2 >= end || bytes[at + 1] !== SLASH || bytes[at + 2] !== SLASH) return false;
  const authorityStart = at + 3;
  at = authorityStart;
  while (at < end && bytes[at] !== SLASH && bytes[at] !== QUESTION) at++;
  const authorityEnd = at;
  while (at < end && PATH[bytes[at]!] !== 0) at++;
  if (at < end && bytes[at] !== QUESTION) return false;
  head.targetForm = TargetForm.Absolute;
  head.authorityStart = authorityStart;
  head.authorityEnd = authorityEnd;
  head.pathStart = authorityEnd;
  head.pathEnd = at;
  head.queryStart = at < end ? at + 1 : -1;
  return true;
}
