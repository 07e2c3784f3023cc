// Known field names, recognized while a head is scanned.
import { FOLD } from "./bytes.ts";

/** Small integers for known field names; 0 for all others. */
export const Known = {
  Other: 0,
  Host: 1,
  Connection: 2,
  KeepAlive: 3,
  ProxyConnection: 4,
  Te: 5,
  Trailer: 6,
  TransferEncoding: 7,
  ContentLength: 8,
  Expect: 9,
  Upgrade: 10,
  Authorization: 11,
  Cookie: 12,
  SetCookie: 13,
  ProxyAuthorization: 14,
  ProxyAuthenticate: 15,
  WwwAuthenticate: 16,
  Forwarded: 17,
  Via: 18,
  XForwardedFor: 19,
  XForwardedHost: 20,
  XForwardedProto: 21,
  XForwardedPort: 22,
  XForwardedPrefix: 23,
  XRealIp: 24,
  Traceparent: 25,
  Tracestate: 26,
  XRequestId: 27,
  XApiKey: 28,
  Apikey: 29,
  XUserId: 30,
  XUserRoles: 31,
  XTenantId: 32,
  ContentType: 33,
  ContentEncoding: 34,
  ContentRange: 35,
  Accept: 36,
  AcceptEncoding: 37,
  AcceptLanguage: 38,
  UserAgent: 39,
  Referer: 40,
  Origin: 41,
  Range: 42,
  CacheControl: 43,
  Pragma: 44,
  IfMatch: 45,
  IfNoneMatch: 46,
  IfModifiedSince: 47,
  MaxForwards: 48,
  Date: 49,
  Server: 50,
  Location: 51,
  Etag: 52,
  LastModified: 53,
  Expires: 54,
  Age: 55,
  Vary: 56,
  RetryAfter: 57,
  SecWebsocketKey: 58,
  SecWebsocketVersion: 59,
  SecWebsocketProtocol: 60,
  SecWebsocketExtensions: 61,
  SecWebsocketAccept: 62,
  SecFetchSite: 63,
  Http2Settings: 64,
  AccessControlRequestMethod: 65,
  AccessControlRequestHeaders: 66,
} as const;

/** One of the integers in `Known`. */
export type KnownField = (typeof Known)[keyof typeof Known];

/** Number of integers in `Known`, including 0. */
export const KNOWN_COUNT = Object.keys(Known).length;

/**
 * Bit for aliases spelled with `_` for `-` (`X_Forwarded_Proto`). CGI-like upstreams cannot distinguish the two, so code
 * that replaces the real field must remove aliases as well.
 */
export const ALIAS = 0x80;

const SLOTS = 1024;
const CASE_BIT = 0x20;
const names: string[] = Object.keys(Known).map((key) => wireName(key));
// All names in one flat table, which is faster to compare with than many small ones.
const spelled = Uint8Array.from(Buffer.from(names.join(""), "latin1"));
const nameStarts = new Uint16Array(KNOWN_COUNT + 1);
const slots = new Uint8Array(SLOTS);
const nextInSlot = new Uint8Array(KNOWN_COUNT);
for (let id = 0; id < KNOWN_COUNT; id++) {
  const start = nameStarts[id]!;
  const end = start + names[id]!.length;
  nameStarts[id + 1] = end;
  // The pseudo-name of 0 must not match.
  if (id === 0) continue;
  const slot = slotOf(spelled, start, end);
  nextInSlot[id] = slots[slot]!;
  slots[slot] = id;
}

/**
 * The integer of the field name at `bytes[start, end)`, ignoring case; 0 for unknown names. The range must contain token
 * bytes: among them, only the two cases of a letter differ in exactly the case bit.
 */
export function findKnownField(bytes: Uint8Array, start: number, end: number): number {
  if (end === start) return 0;
  const wanted = spelled;
  let id = slots[slotOf(bytes, start, end)]!;
  for (; id !== 0; id = nextInSlot[id]!) {
    const shift = nameStarts[id]! - start;
    if (nameStarts[id + 1]! - shift !== end) continue;
    let difference = 0;
    for (let at = start; at < end; at++) difference |= bytes[at]! ^ wanted[at + shift]!;
    if ((difference & ~CASE_BIT) === 0) return id;
  }
  return 0;
}

/** Like `findKnownField` for names with `_`: the integer `| ALIAS` if the name matches with `-` for `_`. */
export function findAliasedField(bytes: Uint8Array, start: number, end: number): number {
  const folded = Uint8Array.from(bytes.subarray(start, end));
  for (let at = 0; at < folded.length; at++) folded[at] = FOLD[folded[at]!]!;
  const id = findKnownField(folded, 0, folded.length);
  return id === 0 ? 0 : id | ALIAS;
}

/** The lower-case wire name of a known field, for example `content-length`. */
export function nameOfKnownField(known: KnownField): string {
  return names[known]!;
}

function slotOf(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  const first = bytes[start]! | CASE_BIT;
  const middle = bytes[start + (length >> 1)]! | CASE_BIT;
  const last = bytes[end - 1]! | CASE_BIT;
  return (first + middle + last * 7 + length * 29) & (SLOTS - 1);
}

function wireName(key: string): string {
  if (key === "Http2Settings") return "http2-settings";
  return key.replaceAll(/(?<!^)([A-Z])/g, "-$1").toLowerCase();
}
