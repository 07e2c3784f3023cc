// LZ4 frames, decoding only.
import { LogError } from "../errors.ts";
import { BLOCK_COST_BYTES, Slices } from "./slice.ts";
import { copyBytes, copyWithin } from "./snappy.ts";

const FRAME_MAGIC = 0x184d2204;
const UNCOMPRESSED_BIT = 0x80000000;
const BLOCK_BYTES_MAX = [0, 0, 0, 0, 65_536, 262_144, 1_048_576, 4_194_304];
/** Upper bound of the ratio of lengths in a block: each further byte of a length adds 255. */
const RATIO_MAX = 256;

/** A block of a frame: its bytes, and whether they are stored as they are. */
interface Block {
  bytes: Buffer;
  isStored: boolean;
}

/**
 * Decodes one LZ4 frame, with pauses between its blocks. The frame's own checksums are ignored, since the batch's CRC32C
 * covers the same bytes. Throws `invalid-batch`, or `too-large` over `bytesMax`.
 * Source: lz4 `doc/lz4_Frame_format.md` and `doc/lz4_Block_format.md`.
 */
export async function decodeLz4(bytes: Buffer, bytesMax: number): Promise<Buffer> {
  const blockMax = readBlockMax(bytes);
  const slices = new Slices();
  // Matches may refer to earlier blocks, so all blocks share one growing output.
  let out: Buffer = Buffer.allocUnsafe(Math.min(bytesMax, Math.max(blockMax, bytes.length * 4)));
  let filled = 0;
  for (const block of splitFrame(bytes, blockMax)) {
    out = reserve(out, filled, blockMax, bytesMax);
    const start = filled;
    const end = Math.min(out.length, start + blockMax);
    if (block.isStored) {
      if (start + block.bytes.length > end) throw tooLarge(bytesMax);
      filled += block.bytes.copy(out, start);
    } else {
      filled = decodeBlock(block.bytes, out, start, end, bytesMax);
    }
    await slices.spend(BLOCK_COST_BYTES + block.bytes.length + filled - start);
  }
  return out.subarray(0, filled);
}

/** Upper bound of the length of the decoded data, from the lengths of the blocks. Throws `invalid-batch`. */
export function boundLz4Length(bytes: Buffer): number {
  const blockMax = readBlockMax(bytes);
  let total = 0;
  for (const { bytes: block, isStored } of splitFrame(bytes, blockMax)) {
    total += isStored ? block.length : Math.min(blockMax, block.length * RATIO_MAX);
  }
  return total;
}

function readBlockMax(bytes: Buffer): number {
  if (bytes.length < 7 || bytes.readUInt32LE(0) !== FRAME_MAGIC) throw invalid();
  if (bytes[4]! >>> 6 !== 1) throw invalid();
  const blockMax = BLOCK_BYTES_MAX[(bytes[5]! >>> 4) & 7]!;
  if (blockMax === 0) throw invalid();
  return blockMax;
}

function* splitFrame(bytes: Buffer, blockMax: number): Generator<Block> {
  const flags = bytes[4]!;
  const blockChecksumBytes = flags & 16 ? 4 : 0;
  for (let at = 7 + (flags & 8 ? 8 : 0) + (flags & 1 ? 4 : 0); ;) {
    if (at + 4 > bytes.length) throw invalid();
    const word = bytes.readUInt32LE(at);
    at += 4;
    if (word === 0) return;
    const size = word % UNCOMPRESSED_BIT;
    if (size > blockMax || at + size > bytes.length) throw invalid();
    yield { bytes: bytes.subarray(at, at + size), isStored: word >= UNCOMPRESSED_BIT };
    at += size + blockChecksumBytes;
  }
}

function decodeBlock(
  block: Buffer,
  out: Buffer,
  start: number,
  end: number,
  bytesMax: number,
): number {
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
    if (filled + literals > end) throw tooLarge(bytesMax);
    copyBytes(block, at, out, filled, literals);
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
    if (filled + size > end) throw tooLarge(bytesMax);
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
