// Finds the ends of JSON values in bytes, and checks them (RFC 8259).
import { SelectError } from "../language/fault.ts";

/** Lists and objects within each other. */
const DEPTH_MAX = 1_000;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Characters after which a number goes on. */
const IN_NUMBER = new Uint8Array(256);
for (const character of "0123456789+-.eE") IN_NUMBER[character.charCodeAt(0)] = 1;

const UNICODE_ESCAPE = 0x75;
/** Characters that may follow a backslash, except `u`. */
const ESCAPES = new Uint8Array(256);
for (const character of '"\\/bfnrt') ESCAPES[character.charCodeAt(0)] = 1;

const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const EXPONENT = 0x65;
/** True for the open objects, false for the open lists; scans do not overlap. */
const isObject = new Uint8Array(DEPTH_MAX + 1);

/** The first byte from `at` on that is no white space, or `end`. */
export function skipSpace(bytes: Buffer, at: number, end: number): number {
  while (at < end) {
    const byte = bytes[at]!;
    if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) break;
    at += 1;
  }
  return at;
}

/** The end of the string that begins at `at`; -1 if it ends beyond `end`. Throws JSONParsingError. */
export function skipString(bytes: Buffer, at: number, end: number): number {
  for (at += 1; at < end; at += 1) {
    const byte = bytes[at]!;
    if (byte === QUOTE) return at + 1;
    if (byte === BACKSLASH) {
      at = skipEscape(bytes, at, end);
      if (at < 0) return -1;
    } else if (byte < 0x20) throw malformed("a control character in a string");
  }
  return -1;
}

// The last byte of the escape that begins at `at`; -1 if it is beyond `end`.
function skipEscape(bytes: Buffer, at: number, end: number): number {
  const letter = bytes[at + 1];
  if (at + 1 >= end || letter === undefined) return -1;
  if (letter !== UNICODE_ESCAPE) {
    if (ESCAPES[letter] === 0) throw malformed("an unknown escape in a string");
    return at + 1;
  }
  if (at + 5 >= end) return -1;
  if (!/^[0-9a-fA-F]{4}$/.test(bytes.toString("latin1", at + 2, at + 6))) {
    throw malformed("an escape without four hexadecimal digits");
  }
  return at + 5;
}

/**
 * The end of the value that begins at `at` or after white space; -1 if it may end beyond `end`. With `isLast` nothing follows
 * `end`, so that an open value is an error. Throws JSONParsingError.
 */
export function skipValue(bytes: Buffer, at: number, end: number, isLast: boolean): number {
  let depth = 0;
  for (;;) {
    at = skipSpace(bytes, at, end);
    if (at >= end) return needMore(isLast);
    const byte = bytes[at]!;
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      depth += 1;
      if (depth > DEPTH_MAX) throw malformed(`more than ${DEPTH_MAX} levels`);
      isObject[depth] = byte === OPEN_OBJECT ? 1 : 0;
      at = skipSpace(bytes, at + 1, end);
      if (at >= end) return needMore(isLast);
      if (bytes[at] !== (byte === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_LIST)) {
        if (byte === OPEN_LIST) continue;
        at = skipKey(bytes, at, end);
        if (at < 0) return needMore(isLast);
        continue;
      }
      // Empty.
      at += 1;
      depth -= 1;
    } else {
      at = skipScalar(bytes, at, end, isLast);
      if (at < 0) return needMore(isLast);
    }
    // After a value.
    for (;;) {
      if (depth === 0) return at;
      at = skipSpace(bytes, at, end);
      if (at >= end) return needMore(isLast);
      const next = bytes[at]!;
      at += 1;
      if (next === (isObject[depth] === 1 ? CLOSE_OBJECT : CLOSE_LIST)) {
        depth -= 1;
        continue;
      }
      if (next !== COMMA) throw malformed(`an unexpected ${show(next)}`);
      if (isObject[depth] === 1) {
        at = skipKey(bytes, at, end);
        if (at < 0) return needMore(isLast);
      }
      break;
    }
  }
}

/** The start of the value behind a key, which begins at `at` or after white space; -1 if it is beyond `end`. */
export function skipKey(bytes: Buffer, at: number, end: number): number {
  at = skipSpace(bytes, at, end);
  if (at >= end) return -1;
  if (bytes[at] !== QUOTE) throw malformed(`${show(bytes[at]!)} instead of a name`);
  at = skipString(bytes, at, end);
  if (at < 0) return -1;
  at = skipSpace(bytes, at, end);
  if (at >= end) return -1;
  if (bytes[at] !== COLON) throw malformed("no colon after a name");
  return at + 1;
}

function skipScalar(bytes: Buffer, at: number, end: number, isLast: boolean): number {
  const byte = bytes[at]!;
  if (byte === QUOTE) return skipString(bytes, at, end);
  if (byte === 0x74) return skipWord(bytes, at, end, "true");
  if (byte === 0x66) return skipWord(bytes, at, end, "false");
  if (byte === 0x6e) return skipWord(bytes, at, end, "null");
  const start = at;
  while (at < end && IN_NUMBER[bytes[at]!] === 1) at += 1;
  if (at === start) throw malformed(`an unexpected ${show(byte)}`);
  if (at === end && !isLast) return -1;
  if (!isNumber(bytes, start, at)) throw malformed("an invalid number");
  return at;
}

// Section 6: an integer without leading zeros, perhaps with a sign, a fraction and an exponent.
function isNumber(bytes: Buffer, start: number, end: number): boolean {
  let at = bytes[start] === MINUS ? start + 1 : start;
  const digits = at;
  at = skipDigits(bytes, at, end);
  if (at === digits || (bytes[digits] === ZERO && at > digits + 1)) return false;
  if (at < end && bytes[at] === POINT) {
    const fraction = at + 1;
    at = skipDigits(bytes, fraction, end);
    if (at === fraction) return false;
  }
  if (at < end && (bytes[at]! | 0x20) === EXPONENT) {
    at += 1;
    if (at < end && (bytes[at] === MINUS || bytes[at] === PLUS)) at += 1;
    const exponent = at;
    at = skipDigits(bytes, exponent, end);
    if (at === exponent) return false;
  }
  return at === end;
}

function skipDigits(bytes: Buffer, at: number, end: number): number {
  while (at < end && bytes[at]! >= ZERO && bytes[at]! <= ZERO + 9) at += 1;
  return at;
}

function skipWord(bytes: Buffer, at: number, end: number, word: string): number {
  const available = Math.min(word.length, end - at);
  for (let index = 1; index < available; index += 1) {
    if (bytes[at + index] !== word.charCodeAt(index)) throw malformed("an unknown word");
  }
  return available < word.length ? -1 : at + word.length;
}

function needMore(isLast: boolean): -1 {
  if (isLast) throw malformed("an unexpected end");
  return -1;
}

function show(byte: number): string {
  return byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `byte ${byte}`;
}

/** JSONParsingError with the reason. */
export function malformed(reason: string): SelectError {
  return new SelectError("JSONParsingError", `The JSON could not be parsed: ${reason}.`);
}
