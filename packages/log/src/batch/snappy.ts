// Snappy decoding: the raw format and the framing of snappy-java.
import { LogError } from "../errors.ts";

const XERIAL_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);

/**
 * Decodes raw snappy, or the framing of snappy-java (magic, two versions, then length-prefixed raw blocks). Throws
 * `invalid-batch`, or `too-large` over `bytesMax`.
 * Source: google/snappy `format_description.txt`.
 */
export function decodeSnappy(bytes: Buffer, bytesMax: number): Buffer {
  if (bytes.length < 16 || !bytes.subarray(0, 8).equals(XERIAL_MAGIC)) {
    return decodeBlock(bytes, bytesMax);
  }
  const blocks: Buffer[] = [];
  let total = 0;
  for (let at = 16; at < bytes.length;) {
    if (at + 4 > bytes.length) throw invalid();
    const length = bytes.readUInt32BE(at);
    if (at + 4 + length > bytes.length) throw invalid();
    const block = decodeBlock(bytes.subarray(at + 4, at + 4 + length), bytesMax - total);
    total += block.length;
    blocks.push(block);
    at += 4 + length;
  }
  return Buffer.concat(blocks, total);
}

function decodeBlock(bytes: Buffer, bytesMax: number): Buffer {
  let at = 0;
  let length = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    if (byte === undefined || shift > 28) throw invalid();
    length += (byte & 127) * 2 ** shift;
    if (byte < 128) break;
  }
  if (length > bytesMax) throw new LogError("too-large", `snappy block over ${bytesMax} bytes`);
  const out = Buffer.allocUnsafe(length);
  let filled = 0;
  while (at < bytes.length) {
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
      if (at + size > bytes.length || filled + size > length) throw invalid();
      bytes.copy(out, filled, at, at + size);
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
    if (offset === 0 || offset > filled || filled + size > length) throw invalid();
    copyWithin(out, filled, offset, size);
    filled += size;
  }
  if (filled !== length) throw invalid();
  return out;
}

/** Copies `size` bytes that begin `offset` bytes before `to`. Overlapping ranges repeat the bytes. */
export function copyWithin(out: Buffer, to: number, offset: number, size: number): void {
  if (offset >= size) {
    out.copyWithin(to, to - offset, to - offset + size);
    return;
  }
  for (let index = 0; index < size; index++) out[to + index] = out[to + index - offset]!;
}

function invalid(): LogError {
  return new LogError("invalid-batch", "snappy data is malformed");
}
