// Message framing: Content-Length, Transfer-Encoding and the Connection options.
import { COMMA, NINE, SP, TAB, TOKEN, ZERO } from "./bytes.ts";
import { type FieldBlock, equalsIgnoringCase } from "./field-block.ts";
import { ALIAS, findAliasedField, Known } from "./known-fields.ts";
import { type Refusal, refusals } from "./refusals.ts";

const LENGTH_DIGITS_MAX = 16;
const NOMINATED_MAX = 16;

/** Connection options as bits. */
export const Option = { Close: 1, KeepAlive: 2, Upgrade: 4 } as const;

/**
 * The Content-Length of a block as a number; -1 if absent, -2 if it is not a decimal number below 2^53 without leading
 * zeros, -3 if repeated (RFC 9110 §8.6).
 */
export function readContentLength(fields: FieldBlock): number {
  const index = fields.first(Known.ContentLength);
  if (index === -1) return -1;
  if (fields.next(index) !== -1) return -3;
  const { bytes } = fields;
  const start = fields.valueStart(index);
  const end = fields.valueEnd(index);
  if (start === end || end - start > LENGTH_DIGITS_MAX) return -2;
  // Some implementations read a leading zero as octal.
  if (bytes[start] === ZERO && end - start > 1) return -2;
  let length = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte < ZERO || byte > NINE) return -2;
    length = length * 10 + (byte - ZERO);
  }
  return length <= Number.MAX_SAFE_INTEGER ? length : -2;
}

/** Returns null if the block's Transfer-Encoding is exactly one `chunked`, otherwise a refusal (RFC 9112 §6.1). */
export function checkTransferEncoding(fields: FieldBlock): Refusal | null {
  const first = fields.first(Known.TransferEncoding);
  if (fields.next(first) === -1 && fields.valueIs(first, "chunked")) return null;
  let unknown = false;
  for (let index = first; index !== -1; index = fields.next(index)) {
    const { bytes } = fields;
    const end = fields.valueEnd(index);
    let at = fields.valueStart(index);
    for (;;) {
      const start = at;
      while (at < end && TOKEN[bytes[at]!] !== 0) at++;
      if (at === start) return refusals.bad_transfer_encoding;
      if (!equalsIgnoringCase(bytes, start, at, "chunked")) unknown = true;
      while (at < end && isSpace(bytes[at]!)) at++;
      if (at === end) break;
      if (bytes[at] !== COMMA) return refusals.bad_transfer_encoding;
      at++;
      while (at < end && isSpace(bytes[at]!)) at++;
    }
  }
  return unknown ? refusals.transfer_coding_unknown : refusals.bad_transfer_encoding;
}

/**
 * True if the sender waits for 100 (Continue) before its body. Unknown expectations are ignored, although 417 is allowed
 * for them (RFC 9110 §10.1.1): they do not affect the framing.
 */
export function expectsContinue(fields: FieldBlock): boolean {
  for (let index = fields.first(Known.Expect); index !== -1; index = fields.next(index)) {
    if (fields.valueIs(index, "100-continue")) return true;
  }
  return false;
}

/**
 * Reads the Connection options (RFC 9110 §7.6.1) as bits of `Option`, and marks the lines that other options nominate.
 * Returns the bits or a refusal.
 */
export function readConnection(fields: FieldBlock): number | Refusal {
  const only = fields.first(Known.Connection);
  // Fast path for the values of nearly all messages.
  if (fields.next(only) === -1) {
    const option = optionOf(fields.bytes, fields.valueStart(only), fields.valueEnd(only));
    if (option !== 0) return option;
  }
  let bits = 0;
  let nominated = 0;
  for (let index = fields.first(Known.Connection); index !== -1; index = fields.next(index)) {
    const { bytes } = fields;
    const end = fields.valueEnd(index);
    let at = fields.valueStart(index);
    while (at < end) {
      while (at < end && (isSpace(bytes[at]!) || bytes[at] === COMMA)) at++;
      const start = at;
      while (at < end && TOKEN[bytes[at]!] !== 0) at++;
      if (at === start) {
        if (at === end) break;
        return refusals.bad_connection;
      }
      const option = optionOf(bytes, start, at);
      bits |= option;
      if (option === 0) {
        if (++nominated > NOMINATED_MAX) return refusals.bad_connection;
        if (!nominateLines(fields, start, at)) return refusals.connection_names_framing;
      }
      while (at < end && isSpace(bytes[at]!)) at++;
      if (at < end && bytes[at] !== COMMA) return refusals.bad_connection;
    }
  }
  return bits;
}

/** True if a line imitates a framing or routing field with an underscore (`Content_Length`). */
export function hasFramingAlias(fields: FieldBlock): boolean {
  if (!fields.hasAlias) return false;
  for (let index = 0; index < fields.count; index++) {
    if (!fields.isAlias(index)) continue;
    const known = fields.knownAt(index);
    if (known === Known.ContentLength || known === Known.TransferEncoding) return true;
  }
  return false;
}

function optionOf(bytes: Uint8Array, start: number, end: number): number {
  switch (end - start) {
    case 5:
      return equalsIgnoringCase(bytes, start, end, "close") ? Option.Close : 0;
    case 7:
      return equalsIgnoringCase(bytes, start, end, "upgrade") ? Option.Upgrade : 0;
    case 10:
      return equalsIgnoringCase(bytes, start, end, "keep-alive") ? Option.KeepAlive : 0;
    default:
      return 0;
  }
}

function nominateLines(fields: FieldBlock, start: number, end: number): boolean {
  const { bytes } = fields;
  switch (findAliasedField(bytes, start, end) & ~ALIAS) {
    case Known.Host:
    case Known.ContentLength:
    case Known.TransferEncoding:
      return false;
    default:
  }
  const name = bytes.toString("latin1", start, end).toLowerCase();
  for (let index = 0; index < fields.count; index++) {
    if (equalsIgnoringCase(bytes, fields.nameStart(index), fields.nameEnd(index), name)) {
      fields.nominate(index);
    }
  }
  return true;
}

function isSpace(byte: number): boolean {
  return byte === SP || byte === TAB;
}
