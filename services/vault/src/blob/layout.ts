// How a body is laid out on the disk, in a segment or in a file of its own.
//
//   record  = head │ frame │ frame │ … │ trailer │ zeros up to a multiple of 8
//   head    = "VBLB" │ format u8 │ 0 u24 │ blob id u64 │ stored bytes u64 │ description bytes u32 │ crc u32 │ description
//   frame   = up to 1 MiB of data │ a CRC32C (u32) for each 64 KiB of it
//   trailer = "VEND" │ summary bytes u32 │ crc u32 │ summary
//   segment = "VSEG" │ format u32 │ segment id u64 │ record │ record │ …
//
// Numbers are big-endian. The crc of head and trailer covers everything in them but itself. Description (known before the
// body came) and summary (known after) are JSON: with them the index can be rebuilt from the records.
import { crc32c } from "@node-rs/crc32";

/** Bytes that have one checksum. */
export const BLOCK_BYTES = 64 * 1024;
/** Data bytes of a full frame. */
export const FRAME_BYTES = 1024 * 1024;
/** Bytes of a segment before its first record. */
export const SEGMENT_HEAD_BYTES = 16;

const FORMAT = 1;
const HEAD_BYTES = 32;
const TRAILER_BYTES = 12;
const HEAD_MAGIC = 0x56424c42;
const TRAILER_MAGIC = 0x56454e44;
const SEGMENT_MAGIC = 0x56534547;
/** Of a description or summary; a larger one is taken for damage. */
const JSON_BYTES_MAX = 256 * 1024;

/** What a record's head says. */
export interface RecordHead {
  id: number;
  stored: number;
  description: unknown;
  /** Bytes of the head, description included: the first frame begins behind them. */
  bytes: number;
}

/** Bytes that `stored` bytes of data take as frames. */
export function measureFrames(stored: number): number {
  return stored + 4 * Math.ceil(stored / BLOCK_BYTES);
}

/** Where the frame that holds the data byte `offset` begins, counted from the first frame. */
export function locateFrame(offset: number): number {
  return Math.floor(offset / FRAME_BYTES) * (FRAME_BYTES + 4 * (FRAME_BYTES / BLOCK_BYTES));
}

/** The head of a record. */
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

/** Reads a head at the start of `bytes`; undefined where there is none, or not all of it. */
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

/** The trailer of a record, padded so that the next record begins at a multiple of 8. `before` is what stands in front. */
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

/** Reads a trailer at the start of `bytes`: its summary and length without padding. */
export function decodeTrailer(bytes: Buffer): { summary: unknown; bytes: number } | undefined {
  if (bytes.length < TRAILER_BYTES || bytes.readUInt32BE(0) !== TRAILER_MAGIC) return undefined;
  const length = bytes.readUInt32BE(4);
  if (length > JSON_BYTES_MAX || bytes.length < TRAILER_BYTES + length) return undefined;
  const text = bytes.subarray(TRAILER_BYTES, TRAILER_BYTES + length);
  if (crc32c(text, crc32c(bytes.subarray(0, 8))) !== bytes.readUInt32BE(8)) return undefined;
  return { summary: JSON.parse(text.toString("utf8")) as unknown, bytes: TRAILER_BYTES + length };
}

/** Zeros that bring a length to a multiple of 8. */
export function padding(bytes: number): number {
  return (8 - (bytes % 8)) % 8;
}

/** Writes the checksums of a frame's data behind it; `frame` must have room for them. Returns the frame's bytes. */
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

/** The id in a segment's head, or undefined where it is none. */
export function decodeSegmentHead(bytes: Buffer): number | undefined {
  if (bytes.length < SEGMENT_HEAD_BYTES || bytes.readUInt32BE(0) !== SEGMENT_MAGIC)
    return undefined;
  if (bytes.readUInt32BE(4) !== FORMAT) return undefined;
  return Number(bytes.readBigUInt64BE(8));
}
