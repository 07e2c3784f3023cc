// The field names that the engine and its users ask for, recognised while a head is scanned.
import { FOLD, UNDERSCORE } from "./bytes.ts";

/** Small integers for known field names; 0 stands for every other name. */
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

/** How many integers `Known` uses, 0 included. */
export const KNOWN_COUNT = Object.keys(Known).length;

/**
 * Set beside the integer when the name is an alias spelled with `_` for `-` (`X_Forwarded_Proto`).
 * CGI-like upstreams cannot tell the two apart, so whoever replaces the real field must cut these too.
 */
export const ALIAS = 0x80;

const SLOTS = 512;
const names: Uint8Array[] = Object.keys(Known).map((key) => Buffer.from(wireName(key)));
const slots = new Uint8Array(SLOTS);
const nextInSlot = new Uint8Array(KNOWN_COUNT);
for (let id = 1; id < KNOWN_COUNT; id++) {
  const name = names[id]!;
  const slot = slotOf(name, 0, name.length);
  nextInSlot[id] = slots[slot]!;
  slots[slot] = id;
}

/**
 * The integer of the field name at `bytes[start, end)`, compared without regard to case; `| ALIAS`
 * if it only matches once `_` is read as `-`; 0 for an unknown name. The range must hold token bytes.
 */
export function findKnownField(bytes: Uint8Array, start: number, end: number): number {
  if (end === start) return 0;
  for (let id = slots[slotOf(bytes, start, end)]!; id !== 0; id = nextInSlot[id]!) {
    const name = names[id]!;
    if (name.length !== end - start) continue;
    let alias = 0;
    let at = start;
    for (; at < end; at++) {
      const byte = bytes[at]!;
      if (FOLD[byte] !== name[at - start]) break;
      if (byte === UNDERSCORE) alias = ALIAS;
    }
    if (at === end) return id | alias;
  }
  return 0;
}

/** The lower-case wire name of a known field, for example `content-length`. */
export function nameOfKnownField(known: KnownField): string {
  return Buffer.from(names[known]!).toString("latin1");
}

function slotOf(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  const middle = FOLD[bytes[start + (length >> 1)]!]!;
  return (
    (FOLD[bytes[start]!]! * 7 + middle * 31 + FOLD[bytes[end - 1]!]! * 61 + length * 13) &
    (SLOTS - 1)
  );
}

function wireName(key: string): string {
  if (key === "Http2Settings") return "http2-settings";
  return key.replaceAll(/(?<!^)([A-Z])/g, "-$1").toLowerCase();
}
