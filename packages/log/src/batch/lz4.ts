// LZ4 frames, decoding only.
import { LogError } from "../errors.ts";
import { copyWithin } from "./snappy.ts";

const FRAME_MAGIC = 0x184d2204;
const UNCOMPRESSED_BIT = 0x80000000;
const BLOCK_BYTES_MAX = [0, 0, 0, 0, 65_536, 262_144, 1_048_576, 4_194_304];

/**
 * Decodes one LZ4 frame. The frame's own checksums are ignored, since the batch's CRC32C covers the same bytes.
 * Throws `invalid-batch`, or `too-large` over `bytesMax`.
 * Source: lz4 `doc/lz4_Frame_format.md` and `doc/lz4_Block_format.md`.
 */
export function decodeLz4(bytes: Buffer, bytesMax: number): Buffer {
  if (bytes.length < 7 || bytes.readUInt32LE(0) !== FRAME_MAGIC) throw invalid();
  const flags = bytes[4]!;
  if (flags >>> 6 !== 1) throw invalid();
  const blockMax = BLOCK_BYTES_MAX[(bytes[5]! >>> 4) & 7]!;
  if (blockMax === 0) throw invalid();
  let at = 7 + (flags & 8 ? 8 : 0) + (flags & 1 ? 4 : 0);
  const blockChecksumBytes = flags & 16 ? 4 : 0;
  // Matches may refer to earlier blocks, so all blocks share one growing output.
  let out: Buffer = Buffer.allocUnsafe(Math.min(bytesMax, Math.max(blockMax, bytes.length * 4)));
  let filled = 0;
  for (;;) {
    if (at + 4 > bytes.length) throw invalid();
    const word = bytes.readUInt32LE(at);
    at += 4;
    if (word === 0) break;
    const size = word % UNCOMPRESSED_BIT;
    if (size > blockMax || at + size > bytes.length) throw invalid();
    out = reserve(out, filled, blockMax, bytesMax);
    const block = bytes.subarray(at, at + size);
    if (word >= UNCOMPRESSED_BIT) {
      if (filled + size > out.length) throw tooLarge(bytesMax);
      filled += block.copy(out, filled);
    } else {
      filled = decodeBlock(block, out, filled, bytesMax);
    }
    at += size + blockChecksumBytes;
  }
  return out.subarray(0, filled);
}

function decodeBlock(block: Buffer, out: Buffer, start: number, bytesMax: number): number {
  let filled = start;
  let at = 0;
  while (at < block.length) {
    const token = block[at++]!;
    let literals = token >>> 4;
    if (literals === 15) {
      let more: number | undefined;
      do {
        more = block[at++];
        if (more === undefined) throw invalid();
        literals += more;
      } while (more === 255);
    }
    if (at + literals > block.length) throw invalid();
    if (filled + literals > out.length) throw tooLarge(bytesMax);
    block.copy(out, filled, at, at + literals);
    at += literals;
    filled += literals;
    if (at === block.length) return filled;
    if (at + 2 > block.length) throw invalid();
    const offset = block.readUInt16LE(at);
    at += 2;
    let size = (token & 15) + 4;
    if (size === 19) {
      let more: number | undefined;
      do {
        more = block[at++];
        if (more === undefined) throw invalid();
        size += more;
      } while (more === 255);
    }
    if (offset === 0 || offset > filled) throw invalid();
    if (filled + size > out.length) throw tooLarge(bytesMax);
    copyWithin(out, filled, offset, size);
    filled += size;
  }
  return filled;
}

function reserve(out: Buffer, filled: number, more: number, bytesMax: number): Buffer {
  if (out.length - filled >= more || out.length === bytesMax) return out;
  const grown = Buffer.allocUnsafe(Math.min(bytesMax, Math.max(filled + more, out.length * 2)));
  out.copy(grown, 0, 0, filled);
  return grown;
}

function tooLarge(bytesMax: number): LogError {
  return new LogError("too-large", `lz4 frame over ${bytesMax} bytes or its own block size`);
}

function invalid(): LogError {
  return new LogError("invalid-batch", "lz4 frame is malformed");
}
