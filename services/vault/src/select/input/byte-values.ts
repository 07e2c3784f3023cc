// Values read from bytes without making texts of them.

/** More digits may be inexact. */
const DIGITS_MAX = 15;

/** The integer that the bytes are written as; `undefined` if they are anything else or long. */
export function readInteger(bytes: Buffer, start: number, end: number): number | undefined {
  const isNegative = bytes[start] === 0x2d;
  let at = isNegative ? start + 1 : start;
  if (at >= end || end - at > DIGITS_MAX) return undefined;
  let value = 0;
  for (; at < end; at += 1) {
    const digit = bytes[at]! - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  // Never -0.
  return isNegative ? 0 - value : value;
}

/** True if the bytes are those of `expected`. */
export function equalsBytes(
  bytes: Buffer,
  start: number,
  end: number,
  expected: Uint8Array,
): boolean {
  if (end - start !== expected.length) return false;
  for (let index = 0; index < expected.length; index += 1) {
    if (bytes[start + index] !== expected[index]) return false;
  }
  return true;
}

/** True if no byte belongs to a character of several bytes. */
export function isAscii(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte < 0x80);
}
