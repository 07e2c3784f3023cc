// Encodes and decodes the records of a record batch v2.
import { LogError } from "../errors.ts";
import { crc32c } from "./crc32c.ts";
import {
  BATCH_HEADER_BYTES,
  BATCH_PREFIX_BYTES,
  compressionOf,
  readBatchHeader,
  writeInt64,
  type BatchHeader,
} from "./header.ts";
import { readVarint, varintBytes, writeVarint, type Cursor } from "./varint.ts";

/** A header of a record; keys may repeat, values may be null. */
export interface RecordHeader {
  key: string;
  value: Buffer | null;
}

/** A record to store. `timestamp` in epoch milliseconds; a null value is a tombstone. */
export interface NewRecord {
  key: Buffer | null;
  value: Buffer | null;
  headers: readonly RecordHeader[];
  timestamp: number;
}

/** A stored record with its offset. */
export type StoredRecord = NewRecord & { offset: number };

/** Batch header fields for the encoder; the defaults describe a plain, uncompressed batch. */
export interface BatchFields {
  baseOffset?: number;
  leaderEpoch?: number;
  attributes?: number;
  producerId?: number;
  producerEpoch?: number;
  baseSequence?: number;
}

/** Encodes `records` as one uncompressed batch; offsets count up from the base offset. */
export function encodeBatch(records: readonly NewRecord[], fields: BatchFields = {}): Buffer {
  const first = records[0];
  if (first === undefined) throw new LogError("invalid-argument", "a batch needs a record");
  let maxTimestamp = first.timestamp;
  const sizes: number[] = [];
  let bytesTotal = BATCH_HEADER_BYTES;
  for (const [index, record] of records.entries()) {
    if (record.timestamp > maxTimestamp) maxTimestamp = record.timestamp;
    const size = recordBodyBytes(record, index, record.timestamp - first.timestamp);
    sizes.push(size);
    bytesTotal += varintBytes(size) + size;
  }
  const bytes = Buffer.allocUnsafe(bytesTotal);
  let at = BATCH_HEADER_BYTES;
  for (const [index, record] of records.entries()) {
    at = writeVarint(bytes, sizes[index]!, at);
    at = writeRecordBody(bytes, record, index, record.timestamp - first.timestamp, at);
  }
  sealBatch(bytes, {
    baseOffset: fields.baseOffset ?? 0,
    leaderEpoch: fields.leaderEpoch ?? -1,
    attributes: fields.attributes ?? 0,
    lastOffsetDelta: records.length - 1,
    baseTimestamp: first.timestamp,
    maxTimestamp,
    producerId: fields.producerId ?? -1,
    producerEpoch: fields.producerEpoch ?? -1,
    baseSequence: fields.baseSequence ?? -1,
    recordCount: records.length,
  });
  return bytes;
}

/**
 * Encodes the records that compaction keeps of a batch. Their offsets and all header fields of the original stay (base
 * and last offset, producer, times), except length, count and checksum.
 */
export function encodeKept(original: BatchHeader, kept: readonly StoredRecord[]): Buffer {
  const sizes: number[] = [];
  let bytesTotal = BATCH_HEADER_BYTES;
  for (const record of kept) {
    const size = recordBodyBytes(
      record,
      record.offset - original.baseOffset,
      record.timestamp - original.baseTimestamp,
    );
    sizes.push(size);
    bytesTotal += varintBytes(size) + size;
  }
  const bytes = Buffer.allocUnsafe(bytesTotal);
  let at = BATCH_HEADER_BYTES;
  for (const [index, record] of kept.entries()) {
    at = writeVarint(bytes, sizes[index]!, at);
    at = writeRecordBody(
      bytes,
      record,
      record.offset - original.baseOffset,
      record.timestamp - original.baseTimestamp,
      at,
    );
  }
  sealBatch(bytes, {
    ...original,
    attributes: original.attributes & ~7,
    recordCount: kept.length,
  });
  return bytes;
}

/**
 * Decodes the records of a batch from its decompressed record section. Throws `invalid-batch` if lengths or the count
 * do not match.
 */
export function decodeRecordSection(header: BatchHeader, section: Buffer): StoredRecord[] {
  // The smallest record takes seven bytes, so a wrong count cannot make this list long.
  if (header.recordCount < 0 || header.recordCount * 7 > section.length) {
    throw invalid("record count does not fit the bytes");
  }
  const records: StoredRecord[] = [];
  const cursor: Cursor = { bytes: section, at: 0 };
  const logAppendTime = (header.attributes & 8) !== 0;
  for (let index = 0; index < header.recordCount; index++) {
    const length = readVarint(cursor);
    if (length === undefined || length < 6 || cursor.at + length > section.length) {
      throw invalid("record length runs past the batch");
    }
    const end = cursor.at + length;
    const record = decodeRecord(header, { bytes: section.subarray(0, end), at: cursor.at });
    if (logAppendTime) record.timestamp = header.maxTimestamp;
    records.push(record);
    cursor.at = end;
  }
  if (cursor.at !== section.length) throw invalid("bytes after the last record");
  return records;
}

/**
 * Decodes only the records of an uncompressed batch at `offsets` (ascending). They share no memory with the batch, so
 * keeping a few does not retain all. Throws `invalid-batch` for any other batch.
 */
export function pickRecords(batch: Buffer, offsets: Float64Array): StoredRecord[] {
  const header = readBatchHeader(batch);
  if (header === undefined || compressionOf(header.attributes) !== "none") {
    throw invalid("its records cannot be picked");
  }
  const picked: StoredRecord[] = [];
  const cursor: Cursor = { bytes: batch, at: BATCH_HEADER_BYTES };
  for (let index = 0, wanted = 0; index < header.recordCount && wanted < offsets.length; index++) {
    const length = readVarint(cursor);
    if (length === undefined || length < 6 || cursor.at + length > header.bytes) {
      throw invalid("record length runs past the batch");
    }
    const start = cursor.at;
    cursor.at += length;
    // The attributes and the timestamp delta precede the offset delta.
    const delta: Cursor = { bytes: batch, at: start + 1 };
    readVarint(delta);
    const offset = header.baseOffset + (readVarint(delta) ?? 0);
    while (wanted < offsets.length && offsets[wanted]! < offset) wanted++;
    if (offsets[wanted] !== offset) continue;
    picked.push(
      decodeRecord(header, { bytes: Buffer.from(batch.subarray(start, cursor.at)), at: 0 }),
    );
  }
  return picked;
}

/** Writes header and checksum of a batch whose record section is already in `bytes`. */
export function sealBatch(bytes: Buffer, fields: Omit<BatchHeader, "bytes">): void {
  writeInt64(bytes, fields.baseOffset, 0);
  bytes.writeInt32BE(bytes.length - BATCH_PREFIX_BYTES, 8);
  bytes.writeInt32BE(fields.leaderEpoch, 12);
  bytes[16] = 2;
  bytes.writeInt16BE(fields.attributes, 21);
  bytes.writeInt32BE(fields.lastOffsetDelta, 23);
  writeInt64(bytes, fields.baseTimestamp, 27);
  writeInt64(bytes, fields.maxTimestamp, 35);
  writeInt64(bytes, fields.producerId, 43);
  bytes.writeInt16BE(fields.producerEpoch, 51);
  bytes.writeInt32BE(fields.baseSequence, 53);
  bytes.writeInt32BE(fields.recordCount, 57);
  bytes.writeUInt32BE(crc32c(bytes.subarray(21)), 17);
}

function recordBodyBytes(record: NewRecord, offsetDelta: number, timestampDelta: number): number {
  let size = 1 + varintBytes(timestampDelta) + varintBytes(offsetDelta);
  size += varintBytes(record.key?.length ?? -1) + (record.key?.length ?? 0);
  size += varintBytes(record.value?.length ?? -1) + (record.value?.length ?? 0);
  size += varintBytes(record.headers.length);
  for (const { key, value } of record.headers) {
    const keyBytes = Buffer.byteLength(key);
    size += varintBytes(keyBytes) + keyBytes;
    size += varintBytes(value?.length ?? -1) + (value?.length ?? 0);
  }
  return size;
}

function writeRecordBody(
  bytes: Buffer,
  record: NewRecord,
  offsetDelta: number,
  timestampDelta: number,
  start: number,
): number {
  let at = start;
  bytes[at++] = 0;
  at = writeVarint(bytes, timestampDelta, at);
  at = writeVarint(bytes, offsetDelta, at);
  at = writeNullable(bytes, record.key, at);
  at = writeNullable(bytes, record.value, at);
  at = writeVarint(bytes, record.headers.length, at);
  for (const { key, value } of record.headers) {
    at = writeVarint(bytes, Buffer.byteLength(key), at);
    at += bytes.write(key, at);
    at = writeNullable(bytes, value, at);
  }
  return at;
}

function writeNullable(bytes: Buffer, value: Buffer | null, start: number): number {
  const at = writeVarint(bytes, value?.length ?? -1, start);
  return value === null ? at : at + value.copy(bytes, at);
}

function decodeRecord(header: BatchHeader, cursor: Cursor): StoredRecord {
  cursor.at++;
  const timestampDelta = readVarint(cursor);
  const offsetDelta = readVarint(cursor);
  if (
    timestampDelta === undefined ||
    offsetDelta === undefined ||
    offsetDelta < 0 ||
    offsetDelta > header.lastOffsetDelta
  ) {
    throw invalid("record deltas are wrong");
  }
  const key = readNullable(cursor);
  const value = readNullable(cursor);
  const headerCount = readVarint(cursor);
  if (headerCount === undefined || headerCount < 0 || headerCount * 2 > cursor.bytes.length) {
    throw invalid("header count is wrong");
  }
  const headers: RecordHeader[] = [];
  for (let index = 0; index < headerCount; index++) {
    const name = readNullable(cursor);
    if (name === null) throw invalid("header without a key");
    headers.push({ key: name.toString("utf8"), value: readNullable(cursor) });
  }
  if (cursor.at !== cursor.bytes.length) throw invalid("record length is wrong");
  return {
    offset: header.baseOffset + offsetDelta,
    timestamp: header.baseTimestamp + timestampDelta,
    key,
    value,
    headers,
  };
}

function readNullable(cursor: Cursor): Buffer | null {
  const length = readVarint(cursor);
  if (length === -1) return null;
  if (length === undefined || length < 0 || cursor.at + length > cursor.bytes.length) {
    throw invalid("field length runs past the record");
  }
  cursor.at += length;
  return cursor.bytes.subarray(cursor.at - length, cursor.at);
}

function invalid(reason: string): LogError {
  return new LogError("invalid-batch", `not a record batch: ${reason}`);
}
