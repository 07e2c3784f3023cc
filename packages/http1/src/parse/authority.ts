// Host and authority grammar, deliberately narrower than RFC 3986: names and addresses of real hosts.
import { BRACKET_CLOSE, BRACKET_OPEN, COLON, DOT, HEX, HOST, NINE, ZERO } from "./bytes.ts";

const PORT_MAX = 65_535;

/**
 * True if `bytes[start, end)` is `host [":" port]`: a name of letters, digits and `-._~`, an IPv4 address or an IPv6
 * address in brackets, and a non-empty port from 0 to 65535. Empty labels are refused except for the root's at the end:
 * implementations disagree about the host `a..`. User information, percent-encoding and sub-delimiters are refused:
 * real host names do not need them.
 */
export function isAuthority(bytes: Uint8Array, start: number, end: number): boolean {
  let at = start;
  if (at === end) return false;
  if (bytes[at] === BRACKET_OPEN) {
    let colons = 0;
    for (at++; at < end && bytes[at] !== BRACKET_CLOSE; at++) {
      const byte = bytes[at]!;
      if (byte === COLON) colons++;
      else if (byte !== DOT && HEX[byte] === 0xff) return false;
    }
    if (at === end || colons < 2 || colons > 8 || at - start < 3) return false;
    at++;
  } else {
    at = findNameEnd(bytes, start, end);
    if (at === -1) return false;
  }
  return at === end || (bytes[at] === COLON && isPort(bytes, at + 1, end));
}

/** True if the authority ends with `:port`. */
export function hasPort(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = end - 1; at >= start && bytes[at] !== BRACKET_CLOSE; at--) {
    if (bytes[at] === COLON) return true;
  }
  return false;
}

/** True if two valid authorities are equal, ignoring case. */
export function isSameAuthority(
  bytes: Uint8Array,
  start: number,
  end: number,
  otherStart: number,
  otherEnd: number,
): boolean {
  if (end - start !== otherEnd - otherStart) return false;
  for (let offset = 0; offset < end - start; offset++) {
    const one = bytes[start + offset]!;
    const other = bytes[otherStart + offset]!;
    // In a valid authority, only the two cases of a letter differ in exactly this bit.
    if ((one | 0x20) !== (other | 0x20)) return false;
  }
  return true;
}

/** The end of the name that starts at `start`; -1 if it is empty or has an empty label before its end. */
function findNameEnd(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  let isLabelEmpty = true;
  for (; at < end && HOST[bytes[at]!] !== 0; at++) {
    const isDot = bytes[at] === DOT;
    if (isDot && isLabelEmpty) return -1;
    isLabelEmpty = isDot;
  }
  return at === start ? -1 : at;
}

function isPort(bytes: Uint8Array, start: number, end: number): boolean {
  if (start === end || end - start > 5) return false;
  let port = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte < ZERO || byte > NINE) return false;
    port = port * 10 + (byte - ZERO);
  }
  return port <= PORT_MAX;
}
