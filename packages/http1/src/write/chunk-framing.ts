// The framing of chunked content (RFC 9112 §7.1).
import { CR, LF } from "../parse/bytes.ts";

const DIGITS = Buffer.from("0123456789abcdef");

/** Follows the data of each chunk. */
export const CHUNK_END: Buffer = Buffer.from("\r\n");

/** Ends content without trailers. */
export const LAST_CHUNK: Buffer = Buffer.from("0\r\n\r\n");

/** Maximum number of bytes written by `writeChunkHead`. */
export const CHUNK_HEAD_BYTES_MAX = 16;

/**
 * Writes the line before a chunk of `size` bytes into `target` at `at` and returns the offset after it. `size` must be
 * above 0, because an empty chunk ends the content.
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

/** A chunk of `data`, which may be empty, in its framing; with the end of the content if it is the last one. */
export function frameChunk(data: Buffer, isLast: boolean): Buffer {
  const end = isLast ? [LAST_CHUNK] : [];
  if (data.length === 0) return Buffer.concat(end);
  const head = Buffer.alloc(CHUNK_HEAD_BYTES_MAX);
  return Buffer.concat([
    head.subarray(0, writeChunkHead(head, 0, data.length)),
    data,
    CHUNK_END,
    ...end,
  ]);
}
