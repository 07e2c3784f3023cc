// The pieces that turn bytes into a chunked content (RFC 9112 §7.1).
import { CR, LF } from "../parse/bytes.ts";

const DIGITS = Buffer.from("0123456789abcdef");

/** Behind each chunk's data. */
export const CHUNK_END: Buffer = Buffer.from("\r\n");

/** Ends a content without trailers. */
export const LAST_CHUNK: Buffer = Buffer.from("0\r\n\r\n");

/** Most bytes that `writeChunkHead` writes. */
export const CHUNK_HEAD_BYTES_MAX = 16;

/**
 * Writes the line before a chunk of `size` bytes into `target` at `at` and gives the offset behind it.
 * A chunk of 0 bytes would end the content: `size` must be above 0.
 */
export function writeChunkHead(target: Uint8Array, at: number, size: number): number {
  let digits = 1;
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 16)) digits++;
  let rest = size;
  for (let to = at + digits - 1; to >= at; to--) {
    target[to] = DIGITS[rest % 16]!;
    rest = Math.floor(rest / 16);
  }
  target[at + digits] = CR;
  target[at + digits + 1] = LF;
  return at + digits + 2;
}
