// Checks that text is UTF-8, piece by piece, and drops its byte order mark.
import { isUtf8 } from "node:buffer";
import { SelectError } from "../language/fault.ts";

const MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** Yields the pieces without a byte order mark, which `onMark` reports with its size. Throws InvalidTextEncoding. */
export async function* checkUtf8(
  pieces: AsyncGenerator<Buffer, void, undefined>,
  onMark?: (bytes: number) => void,
): AsyncGenerator<Buffer, void, undefined> {
  let rest = Buffer.alloc(0);
  let isFirst = true;
  for await (const piece of pieces) {
    const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
    const end = bytes.length - countOpenBytes(bytes);
    rest = Buffer.from(bytes.subarray(end));
    let whole = bytes.subarray(0, end);
    if (isFirst && whole.length > 0) {
      isFirst = false;
      if (whole.subarray(0, MARK.length).equals(MARK)) {
        whole = whole.subarray(MARK.length);
        onMark?.(MARK.length);
      }
    }
    if (!isUtf8(whole)) throw new SelectError("InvalidTextEncoding");
    if (whole.length > 0) yield whole;
  }
  if (rest.length > 0) throw new SelectError("InvalidTextEncoding");
}

/** Bytes at the end that begin a character whose other bytes are missing. */
function countOpenBytes(bytes: Buffer): number {
  for (let count = 1; count <= Math.min(3, bytes.length); count += 1) {
    const byte = bytes[bytes.length - count]!;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return count < length ? count : 0;
  }
  return 0;
}
