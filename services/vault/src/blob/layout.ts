// The layout of a body on disk, in a segment or in its own file.
//
//   record  = head │ frame │ frame │ … │ trailer │ zeros up to a multiple of 8
//   head    = "VBLB" │ format u8 │ 0 u24 │ blob id u64 │ stored bytes u64 │ description bytes u32 │ crc u32 │ description
//   frame   = up to 1 MiB of data │ a CRC32C (u32) for each 64 KiB of it
//   trailer = "VEND" │ summary bytes u32 │ crc u32 │ summary
//   segment = "VSEG" │ format u32 │ segment id u64 │ record │ record │ …
//
// Numbers are big-endian. The crc of head and trailer covers everything in them except itself. The description (known
// before the body arrives) and the summary (known afterwards) are JSON, from which the index can be rebuilt.
import { crc32c } from "@node-rs/crc32";

/** Bytes per checksum. */
export const BLOCK_BYTES = 64 * 1024;
/** Data bytes of a full frame. */
export const FRAME_BYTES = 1024 * 1024;
/** Size of the head of a segment. */
export const SEGMENT_HEAD_BYTES = 16;

const FORMAT = 1;
const HEAD_BYTES = 32;
const TRAILER_BYTES = 12;
const HEAD_MAGIC = 0x56424c42;
const TRAILER_MAGIC = 0x56454e44;
const SEGMENT_MAGIC = 0x56534547;
/** Limit of a description or a summary; a larger one is damage. */
const JSON_BYTES_MAX = 256 * 1024;

/** The head of a record. */
export interface RecordHead {
  id: number;
  stored: number;
  description: unknown;
  /** Size of the head with its description; the first frame follows. */
  bytes: number;
}

/** Size of `stored` bytes of data as frames. */
export function measureFrames(stored: number): number {
  return stored + 4 * Math.ceil(stored / BLOCK_BYTES);
}

/** Offset of the frame with the data byte `offset`, from the first frame. */
export function locateFrame(offset: number): number {
  return Math.floor(offset / FRAME_BYTES) * (FRAME_BYTES + 4 * (FRAME_BYTES / BLOCK_BYTES));
}

/** Encodes the head of a record. */
export function encodeHead(id: number, stored: number, description: unknown): Buffer {
  const text = Buffer.from(JSON.stringify(description));
  const head = Buffer.alloc(HEAD_BYTES + text.length);
  head.writeUInt32BE(HEAD_MAGIC, 0);
  head.writeUInt8(FORMAT, 4);
  head.writeBigUInt64BE(BigInt(id), 8);
  head.writeBigUInt64BE(BigInt(stored), 16);
  head.writeUInt32BE(text.length, 24);
  text.copy(head, HEAD_BYTES);
  head.writeUInt32BE(crc32c(text, crc32c(head.subarray(0, 28))), 28);
  return head;
}

/** Decodes a head at the start of `bytes`; `undefined` if it is missing or incomplete. */
export function decodeHead(bytes: Buffer): RecordHead | undefined {
  if (bytes.length < HEAD_BYTES || bytes.readUInt32BE(0) !== HEAD_MAGIC) return undefined;
  const length = bytes.readUInt32BE(24);
  if (length > JSON_BYTES_MAX || bytes.length < HEAD_BYTES + length) return undefined;
  const text = bytes.subarray(HEAD_BYTES, HEAD_BYTES + length);
  if (crc32c(text, crc32c(bytes.subarray(0, 28))) !== bytes.readUInt32BE(28)) return undefined;
  return {
    id: Number(bytes.readBigUInt64BE(8)),
    stored: Number(bytes.readBigUInt64BE(16)),
    description: JSON.parse(text.toString("utf8")) as unknown,
    bytes: HEAD_BYTES + length,
  };
}

/**
 * Encodes the trailer of a record, padded so that the next record begins at a multiple of 8. `before` is the size of
 * everything before it.
 */
export function encodeTrailer(summary: unknown, before: number): Buffer {
  const text = Buffer.from(JSON.stringify(summary));
  const bytes = TRAILER_BYTES + text.length;
  const trailer = Buffer.alloc(bytes + padding(before + bytes));
  trailer.writeUInt32BE(TRAILER_MAGIC, 0);
  trailer.writeUInt32BE(text.length, 4);
  text.copy(trailer, TRAILER_BYTES);
  trailer.writeUInt32BE(crc32c(text, crc32c(trailer.subarray(0, 8))), 8);
  return trailer;
}

/** Decodes a trailer at the start of `bytes`: its summary, and its length without padding. */
export function decodeTrailer(bytes: Buffer): { summary: unknown; bytes: number } | undefined {
  if (bytes.length < TRAILER_BYTES || bytes.readUInt32BE(0) !== TRAILER_MAGIC) return undefined;
  const length = bytes.readUInt32BE(4);
  if (length > JSON_BYTES_MAX || bytes.length < TRAILER_BYTES + length) return undefined;
  const text = bytes.subarray(TRAILER_BYTES, TRAILER_BYTES + length);
  if (crc32c(text, crc32c(bytes.subarray(0, 8))) !== bytes.readUInt32BE(8)) return undefined;
  return { summary: JSON.parse(text.toString("utf8")) as unknown, bytes: TRAILER_BYTES + length };
}

/** Number of zeros that align a length to a multiple of 8. */
export function padding(bytes: number): number {
  return (8 - (bytes % 8)) % 8;
}

/** Writes the checksums of a frame after its data; `frame` must have room for them. Returns the bytes of the frame. */
export function sealFrame(frame: Buffer, dataBytes: number): number {
  let at = dataBytes;
  for (let start = 0; start < dataBytes; start += BLOCK_BYTES) {
    const block = frame.subarray(start, Math.min(start + BLOCK_BYTES, dataBytes));
    at = frame.writeUInt32BE(crc32c(block), at);
  }
  return at;
}

/** Index of the first of `blocks` that does not match its checksum in `table`, or -1. */
export function findCorruptBlock(blocks: Buffer, table: Buffer): number {
  for (let index = 0; index * BLOCK_BYTES < blocks.length; index += 1) {
    const start = index * BLOCK_BYTES;
    const block = blocks.subarray(start, Math.min(start + BLOCK_BYTES, blocks.length));
    if (crc32c(block) !== table.readUInt32BE(index * 4)) return index;
  }
  return -1;
}

/** The first bytes of a segment file. */
export function encodeSegmentHead(id: number): Buffer {
  const head = Buffer.alloc(SEGMENT_HEAD_BYTES);
  head.writeUInt32BE(SEGMENT_MAGIC, 0);
  head.writeUInt32BE(FORMAT, 4);
  head.writeBigUInt64BE(BigInt(id), 8);
  return head;
}

/** The id in the head of a segment; `undefined` if it is invalid. */
export function decodeSegmentHead(bytes: Buffer): number | undefined {
  if (bytes.length < SEGMENT_HEAD_BYTES || bytes.readUInt32BE(0) !== SEGMENT_MAGIC)
    return undefined;
  if (bytes.readUInt32BE(4) !== FORMAT) return undefined;
  return Number(bytes.readBigUInt64BE(8));
}
