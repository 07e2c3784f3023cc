// Snappy decoding: the raw format and the framing of snappy-java.
import { LogError } from "../errors.ts";
import { BLOCK_COST_BYTES, SLICE_BYTES, Slices } from "./slice.ts";

const XERIAL_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
/** Upper bound of the ratio of lengths: an element of three bytes yields 64 at most. */
const RATIO_MAX = 22;
/** Shorter ranges are copied byte by byte, which is faster than a call of native code. */
const NATIVE_COPY_BYTES_MIN = 32;
const OVERLAPPING_COPY_BYTES_MIN = 256;

/** A block that is being decoded to `out[start..end)`. */
interface OpenBlock {
  bytes: Buffer;
  at: number;
  out: Buffer;
  start: number;
  filled: number;
  end: number;
}

/**
 * Decodes raw snappy, or the framing of snappy-java (magic, two versions, then length-prefixed raw blocks), with pauses.
 * Throws `invalid-batch`, or `too-large` over `bytesMax`.
 * Source: google/snappy `format_description.txt`.
 */
export async function decodeSnappy(bytes: Buffer, bytesMax: number): Promise<Buffer> {
  const total = readSnappyLength(bytes);
  if (total > bytesMax) throw new LogError("too-large", `snappy data over ${bytesMax} bytes`);
  const out = Buffer.allocUnsafe(total);
  const slices = new Slices();
  let start = 0;
  for (const block of splitBlocks(bytes)) {
    const { length, at } = readLength(block);
    const open = { bytes: block, at, out, start, filled: start, end: start + length };
    await slices.spend(BLOCK_COST_BYTES);
    while (open.at < block.length) await slices.spend(decodeSlice(open));
    if (open.filled !== open.end) throw invalid();
    start = open.end;
  }
  return out;
}

/** The length of the decoded data, from the lengths that its blocks begin with. Throws `invalid-batch`. */
export function readSnappyLength(bytes: Buffer): number {
  let total = 0;
  for (const block of splitBlocks(bytes)) total += readLength(block).length;
  return total;
}

function* splitBlocks(bytes: Buffer): Generator<Buffer> {
  if (bytes.length < 16 || !bytes.subarray(0, 8).equals(XERIAL_MAGIC)) {
    yield bytes;
    return;
  }
  for (let at = 16; at < bytes.length;) {
    if (at + 4 > bytes.length) throw invalid();
    const end = at + 4 + bytes.readUInt32BE(at);
    if (end > bytes.length) throw invalid();
    yield bytes.subarray(at + 4, end);
    at = end;
  }
}

function readLength(block: Buffer): { length: number; at: number } {
  let length = 0;
  let at = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = block[at++];
    if (byte === undefined || shift > 28) throw invalid();
    length += (byte & 127) * 2 ** shift;
    if (byte < 128) break;
  }
  if (length > block.length * RATIO_MAX) throw invalid();
  return { length, at };
}

/** Decodes elements for one slice of work; returns the bytes read and written. */
function decodeSlice(open: OpenBlock): number {
  const { bytes, out, start, end } = open;
  let { at, filled } = open;
  const before = at + filled;
  while (at < bytes.length && at + filled - before < SLICE_BYTES) {
    const tag = bytes[at++]!;
    if ((tag & 3) === 0) {
      let size = tag >>> 2;
      if (size >= 60) {
        const extra = size - 59;
        if (at + extra > bytes.length) throw invalid();
        size = bytes.readUIntLE(at, extra);
        at += extra;
      }
      size++;
      if (at + size > bytes.length || filled + size > end) throw invalid();
      copyBytes(bytes, at, out, filled, size);
      at += size;
      filled += size;
      continue;
    }
    const offsetBytes = [0, 1, 2, 4][tag & 3]!;
    if (at + offsetBytes > bytes.length) throw invalid();
    let size = (tag >>> 2) + 1;
    let offset = bytes.readUIntLE(at, offsetBytes);
    if ((tag & 3) === 1) {
      size = ((tag >>> 2) & 7) + 4;
      offset += (tag >>> 5) << 8;
    }
    at += offsetBytes;
    if (offset === 0 || offset > filled - start || filled + size > end) throw invalid();
    copyWithin(out, filled, offset, size);
    filled += size;
  }
  open.at = at;
  open.filled = filled;
  return at + filled - before;
}

/** Copies `size` bytes from `from[at]` to `to[filled]`. */
export function copyBytes(
  from: Buffer,
  at: number,
  to: Buffer,
  filled: number,
  size: number,
): void {
  if (size >= NATIVE_COPY_BYTES_MIN) {
    from.copy(to, filled, at, at + size);
    return;
  }
  for (let index = 0; index < size; index++) to[filled + index] = from[at + index]!;
}

/** Copies `size` bytes that begin `offset` bytes before `to`. Overlapping ranges repeat the bytes. */
export function copyWithin(out: Buffer, to: number, offset: number, size: number): void {
  const nativeMin = offset < size ? OVERLAPPING_COPY_BYTES_MIN : NATIVE_COPY_BYTES_MIN;
  if (size < nativeMin) {
    for (let index = 0; index < size; index++) out[to + index] = out[to + index - offset]!;
    return;
  }
  // Each step doubles the bytes that repeat.
  for (let copied = 0; copied < size;) {
    const count = Math.min(offset + copied, size - copied);
    out.copyWithin(to + copied, to - offset, to - offset + count);
    copied += count;
  }
}

function invalid(): LogError {
  return new LogError("invalid-batch", "snappy data is malformed");
}
