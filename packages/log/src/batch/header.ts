// The header of a Kafka record batch v2: reads, checks and stamps it in place.
import { LogError } from "../errors.ts";
import { crc32c } from "./crc32c.ts";
import { nextTurn, SLICE_BYTES } from "./slice.ts";

/*
 * Record batch v2, big-endian (Kafka protocol guide, "Record Batch"):
 *
 *   0        8        12           16    17    21    23           27        35        43
 *   ├ base   ┼ length ┼ leader     ┼ mag ┼ crc ┼ att ┼ last       ┼ base    ┼ max     ┤
 *   │ offset │ (rest) │ epoch      │ = 2 │ 32c │ rib │ offset Δ   │ time    │ time    │
 *   43          51         53         57       61
 *   ├ producer  ┼ producer ┼ base     ┼ record ┼ records, maybe compressed …
 *   │ id        │ epoch    │ sequence │ count  │
 *
 * The checksum covers byte 21 to the end, so base offset and leader epoch can be assigned
 * without touching it.
 */

/** Bytes before the first record. */
export const BATCH_HEADER_BYTES = 61;
/** Bytes that the length field does not count: the base offset and the length itself. */
export const BATCH_PREFIX_BYTES = 12;

/** A decoded batch header. Times in epoch milliseconds; `bytes` is the size of the whole batch with its header. */
export interface BatchHeader {
  baseOffset: number;
  bytes: number;
  leaderEpoch: number;
  attributes: number;
  lastOffsetDelta: number;
  baseTimestamp: number;
  maxTimestamp: number;
  producerId: number;
  producerEpoch: number;
  baseSequence: number;
  recordCount: number;
}

/** Compressions by the value of the lowest three attribute bits. */
export const COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"] as const;
export type Compression = (typeof COMPRESSIONS)[number];

/** The compression in `attributes`; `undefined` for unassigned values. */
export function compressionOf(attributes: number): Compression | undefined {
  return COMPRESSIONS[attributes & 7];
}

/** True if the batch belongs to a transaction (attribute bit 4). */
export function isTransactional(attributes: number): boolean {
  return (attributes & 0x10) !== 0;
}

/** True if the batch holds control records (attribute bit 5). */
export function isControl(attributes: number): boolean {
  return (attributes & 0x20) !== 0;
}

/** Reads a signed 64-bit number; exact within ±2^53, which offsets and times never exceed. */
export function readInt64(bytes: Buffer, at: number): number {
  return bytes.readInt32BE(at) * 4294967296 + bytes.readUInt32BE(at + 4);
}

/** Writes a signed 64-bit number within ±2^53. */
export function writeInt64(bytes: Buffer, value: number, at: number): void {
  bytes.writeInt32BE(Math.floor(value / 4294967296), at);
  bytes.writeUInt32BE(((value % 4294967296) + 4294967296) % 4294967296, at + 4);
}

/** Reads the header at `at`; `undefined` if fewer than 61 bytes are left or the length is impossible. */
export function readBatchHeader(bytes: Buffer, at = 0): BatchHeader | undefined {
  if (bytes.length - at < BATCH_HEADER_BYTES) return undefined;
  const length = bytes.readInt32BE(at + 8);
  if (length < BATCH_HEADER_BYTES - BATCH_PREFIX_BYTES || bytes[at + 16] !== 2) return undefined;
  return {
    baseOffset: readInt64(bytes, at),
    bytes: length + BATCH_PREFIX_BYTES,
    leaderEpoch: bytes.readInt32BE(at + 12),
    attributes: bytes.readInt16BE(at + 21),
    lastOffsetDelta: bytes.readInt32BE(at + 23),
    baseTimestamp: readInt64(bytes, at + 27),
    maxTimestamp: readInt64(bytes, at + 35),
    producerId: readInt64(bytes, at + 43),
    producerEpoch: bytes.readInt16BE(at + 51),
    baseSequence: bytes.readInt32BE(at + 53),
    recordCount: bytes.readInt32BE(at + 57),
  };
}

/** The offset after the last one of a batch. */
export function nextOffsetOf({ baseOffset, lastOffsetDelta }: BatchHeader): number {
  return baseOffset + lastOffsetDelta + 1;
}

/** True if the batch at `at` is complete and matches its checksum. */
export function isBatchIntact(bytes: Buffer, at = 0): boolean {
  const header = readBatchHeader(bytes, at);
  if (header === undefined || at + header.bytes > bytes.length) return false;
  return crc32c(bytes.subarray(at + 21, at + header.bytes)) === bytes.readUInt32BE(at + 17);
}

/** As `isBatchIntact`; other work runs during the check of a large batch. */
export async function isLargeBatchIntact(bytes: Buffer, at: number): Promise<boolean> {
  const header = readBatchHeader(bytes, at);
  if (header === undefined || at + header.bytes > bytes.length) return false;
  const end = at + header.bytes;
  let checksum = 0;
  for (let from = at + 21; from < end; from += SLICE_BYTES) {
    if (from > at + 21) await nextTurn();
    checksum = crc32c(bytes.subarray(from, Math.min(end, from + SLICE_BYTES)), checksum);
  }
  return checksum === bytes.readUInt32BE(at + 17);
}

/** True if `bytes` consists of complete batches that match their checksums. */
export function areBatchesIntact(bytes: Buffer): boolean {
  let at = 0;
  while (at < bytes.length && isBatchIntact(bytes, at)) at += readBatchHeader(bytes, at)!.bytes;
  return at === bytes.length;
}

/**
 * Checks that `bytes` is exactly one batch that a producer may send: magic 2, correct length,
 * `lastOffsetDelta = count − 1`, a known compression, a valid CRC32C.
 * Throws `invalid-batch`, or `too-large` over `bytesMax`.
 */
export function validateBatch(bytes: Buffer, bytesMax: number): BatchHeader {
  if (bytes.length > bytesMax) {
    throw new LogError("too-large", `a batch of ${bytes.length} bytes is over ${bytesMax}`);
  }
  if (bytes.length < BATCH_HEADER_BYTES) throw invalid("shorter than its header");
  if (bytes[16] !== 2) throw invalid(`magic ${bytes[16]} instead of 2`);
  const header = readBatchHeader(bytes);
  if (header === undefined || header.bytes !== bytes.length) throw invalid("length field is wrong");
  if (header.recordCount < 1 || header.lastOffsetDelta !== header.recordCount - 1) {
    throw invalid("last offset delta is not the record count less one");
  }
  if (compressionOf(header.attributes) === undefined) throw invalid("unknown compression");
  if (crc32c(bytes.subarray(21)) !== bytes.readUInt32BE(17)) throw invalid("CRC32C is wrong");
  return header;
}

/** Writes base offset and leader epoch into the batch at the start of `bytes`; the checksum does not cover them. */
export function stampBatch(bytes: Buffer, baseOffset: number, leaderEpoch: number): void {
  writeInt64(bytes, baseOffset, 0);
  bytes.writeInt32BE(leaderEpoch, 12);
}

function invalid(reason: string): LogError {
  return new LogError("invalid-batch", `not a record batch: ${reason}`);
}
