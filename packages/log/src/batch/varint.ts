// Zigzag varints of record batches (Protocol Buffers encoding, 64 bits).

/** A read position in a buffer. */
export interface Cursor {
  bytes: Buffer;
  at: number;
}

/** Encoded size of `value` as a zigzag varint; exact within ±2^52. */
export function varintBytes(value: number): number {
  let zigzag = value < 0 ? -2 * value - 1 : 2 * value;
  let count = 1;
  while (zigzag >= 128) {
    zigzag = Math.floor(zigzag / 128);
    count++;
  }
  return count;
}

/** Writes `value` as a zigzag varint at `at` and returns the position after it. */
export function writeVarint(bytes: Buffer, value: number, at: number): number {
  let zigzag = value < 0 ? -2 * value - 1 : 2 * value;
  while (zigzag >= 128) {
    bytes[at++] = (zigzag % 128) | 128;
    zigzag = Math.floor(zigzag / 128);
  }
  bytes[at++] = zigzag;
  return at;
}

/** Reads a zigzag varint; `undefined` past the end of the bytes or past 2^53. */
export function readVarint(cursor: Cursor): number | undefined {
  let result = 0;
  let scale = 1;
  for (let count = 0; count < 10; count++) {
    const byte = cursor.bytes[cursor.at];
    if (byte === undefined) return undefined;
    cursor.at++;
    result += (byte & 127) * scale;
    if (byte < 128) {
      if (result > Number.MAX_SAFE_INTEGER) return undefined;
      return result % 2 === 0 ? result / 2 : -(result + 1) / 2;
    }
    scale *= 128;
  }
  return undefined;
}
