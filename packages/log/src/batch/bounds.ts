// Checks sizes and times of the records of a batch without decoding them.
import { LogError } from "../errors.ts";
import type { UnpackedBatch } from "./compression.ts";
import type { NewRecord } from "./records.ts";
import { Slices } from "./slice.ts";
import { readVarint, type Cursor } from "./varint.ts";

/** Bounds that each record must keep. */
export interface RecordBounds {
  /** Largest sum of key, value and headers, in bytes. */
  bytesMax: number;
  /** Bounds of the timestamp, in epoch milliseconds. A record without a timestamp (-1) is always within. */
  times?: { earliest: number; latest: number } | undefined;
}

/** The first record outside the bounds: its index in the batch, and the bound. */
export interface OutOfBounds {
  index: number;
  bound: "size" | "time";
}

/** Records between two pauses, as work in bytes. */
const RECORDS_PER_SLICE = 16_384;
const RECORD_COST_BYTES = 32;
/** Lengths of a record's fields take less than that, if it has no headers. */
const LENGTHS_BYTES_MAX = 64;
/** A header whose key has one byte has two lengths of one byte. */
const HEADER_RATIO_MAX = 3;

/** Size of a record for its publisher: key, value and headers, in bytes. */
export function sizeOfRecord({ key, value, headers }: Omit<NewRecord, "timestamp">): number {
  let bytes = (key?.length ?? 0) + (value?.length ?? 0);
  for (const header of headers) {
    bytes += Buffer.byteLength(header.key) + (header.value?.length ?? 0);
  }
  return bytes;
}

/** Finds the first record outside the bounds, with pauses. Throws `invalid-batch` if lengths or the count do not match. */
export async function findOutOfBounds(
  batch: UnpackedBatch,
  bounds: RecordBounds,
): Promise<OutOfBounds | undefined> {
  const cursor: Cursor = { bytes: batch.section, at: 0 };
  const slices = new Slices();
  for (let index = 0; index < batch.header.recordCount; index += RECORDS_PER_SLICE) {
    const found = walkRecords(batch, cursor, index, RECORDS_PER_SLICE, bounds);
    if (found !== undefined) return found;
    await slices.spend(RECORDS_PER_SLICE * RECORD_COST_BYTES);
  }
  checkEnd(cursor);
  return undefined;
}

/** As `findOutOfBounds`, without pauses. */
export function findOutOfBoundsSync(
  batch: UnpackedBatch,
  bounds: RecordBounds,
): OutOfBounds | undefined {
  const cursor: Cursor = { bytes: batch.section, at: 0 };
  const found = walkRecords(batch, cursor, 0, batch.header.recordCount, bounds);
  if (found === undefined) checkEnd(cursor);
  return found;
}

function walkRecords(
  { header, section }: UnpackedBatch,
  cursor: Cursor,
  from: number,
  countMax: number,
  { bytesMax, times }: RecordBounds,
): OutOfBounds | undefined {
  const until = Math.min(header.recordCount, from + countMax);
  for (let index = from; index < until; index++) {
    const length = readVarint(cursor);
    if (length === undefined || length < 6 || cursor.at + length > section.length) {
      throw invalid("record length runs past the batch");
    }
    const start = cursor.at;
    const end = start + length;
    if (length > bytesMax && isLarge(section.subarray(start, end), bytesMax)) {
      return { index, bound: "size" };
    }
    if (times !== undefined) {
      // The timestamp follows the attributes.
      cursor.at = start + 1;
      const delta = readVarint(cursor);
      if (delta === undefined) throw invalid("record deltas are wrong");
      const timestamp = header.baseTimestamp + delta;
      const isWithin = timestamp >= times.earliest && timestamp <= times.latest;
      if (timestamp !== -1 && !isWithin) return { index, bound: "time" };
    }
    cursor.at = end;
  }
  return undefined;
}

function isLarge(record: Buffer, bytesMax: number): boolean {
  // Whatever its headers, unless their keys are empty: the work does not depend on their number.
  if (record.length > HEADER_RATIO_MAX * bytesMax + LENGTHS_BYTES_MAX) return true;
  const cursor: Cursor = { bytes: record, at: 1 };
  readVarint(cursor);
  readVarint(cursor);
  let bytes = skipField(cursor) + skipField(cursor);
  const headerCount = readVarint(cursor) ?? 0;
  for (let index = 0; index < headerCount && bytes <= bytesMax; index++) {
    bytes += skipField(cursor) + skipField(cursor);
  }
  return bytes > bytesMax;
}

/** Skips a nullable field; returns its length. */
function skipField(cursor: Cursor): number {
  const length = readVarint(cursor);
  if (length === -1) return 0;
  if (length === undefined || length < 0 || cursor.at + length > cursor.bytes.length) {
    throw invalid("field length runs past the record");
  }
  cursor.at += length;
  return length;
}

function checkEnd({ bytes, at }: Cursor): void {
  if (at !== bytes.length) throw invalid("bytes after the last record");
}

function invalid(reason: string): LogError {
  return new LogError("invalid-batch", `not a record batch: ${reason}`);
}
