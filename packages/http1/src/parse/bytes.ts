// Byte constants and the 256-entry class tables of the scan loops.

export const TAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SP = 0x20;
export const DQUOTE = 0x22;
export const PERCENT = 0x25;
export const ASTERISK = 0x2a;
export const COMMA = 0x2c;
const DASH = 0x2d;
export const DOT = 0x2e;
export const SLASH = 0x2f;
export const ZERO = 0x30;
export const NINE = 0x39;
export const COLON = 0x3a;
export const SEMICOLON = 0x3b;
export const EQUALS = 0x3d;
export const QUESTION = 0x3f;
export const BRACKET_OPEN = 0x5b;
export const BACKSLASH = 0x5c;
export const BRACKET_CLOSE = 0x5d;
const UNDERSCORE = 0x5f;

const ALNUM = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/**
 * Non-zero for `tchar` (RFC 9110 §5.6.2), the characters of methods, field names and parameter names; 3 for `_` and 1
 * for others, so that a scan that combines them with `|` detects an underscore.
 */
export const TOKEN = mark(mark(new Uint8Array(256), `!#$%&'*+-.^\`|~${ALNUM}`, 1), "_", 3);

/** 1 for bytes of field values and reason phrases: HTAB, SP, VCHAR, obs-text (RFC 9110 §5.5). */
export const VALUE = mark(
  markRange(markRange(new Uint8Array(256), 0x20, 0x7e), 0x80, 0xff),
  "\t",
  1,
);

/** 1 for unescaped bytes of a quoted-string: HTAB, SP, VCHAR except `"` and `\`, obs-text. */
export const QUOTED = mark(VALUE.slice(), '"\\', 0);

/**
 * Path bytes: 1 for `pchar`, `/` and the bytes that browsers do not encode in paths (`[ ] | ^`); 2 for `%`, whose two hex
 * digits are validated at the end of the path.
 */
export const PATH = mark(mark(new Uint8Array(256), `-._~!$&'()*+,;=:@/[]|^${ALNUM}`, 1), "%", 2);

/**
 * Query bytes: visible ASCII except `#`, including quotes and angle brackets, which curl does not encode. `%` is not
 * validated: queries are forwarded as sent, and a stray `%` in them is common and harmless.
 */
export const QUERY = mark(markRange(new Uint8Array(256), 0x21, 0x7e), "#", 0);

/** 1 for bytes of host names: letters, digits, `-`, `.`, `_`, `~`. */
export const HOST = mark(new Uint8Array(256), `-._~${ALNUM}`, 1);

/** The value of a hexadecimal digit, 0xff for other bytes. */
export const HEX = hexValues();

/** Key of field-name lookups: ASCII letters in lower case, `-` for `_`, other bytes unchanged. */
export const FOLD = foldedBytes();

function mark(table: Uint8Array, characters: string, value: number): Uint8Array {
  for (const character of characters) table[character.charCodeAt(0)] = value;
  return table;
}

function markRange(table: Uint8Array, from: number, to: number): Uint8Array {
  return table.fill(1, from, to + 1);
}

function hexValues(): Uint8Array {
  const table = new Uint8Array(256).fill(0xff);
  for (let digit = 0; digit < 16; digit++) {
    table[digit.toString(16).charCodeAt(0)] = digit;
    table[digit.toString(16).toUpperCase().charCodeAt(0)] = digit;
  }
  return table;
}

function foldedBytes(): Uint8Array {
  const table = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  for (let byte = 0x41; byte <= 0x5a; byte++) table[byte] = byte | 0x20;
  table[UNDERSCORE] = DASH;
  return table;
}
