// Reading whole batches of a partition, by offset and by time, from files and from memory.
import { decodeBatch } from "../batch/compression.ts";
import { readBatchHeader, readInt64, batchHeaderBytes } from "../batch/header.ts";
import { extentPath, type Extent, type Partition } from "../catalogue/partition.ts";
import { LogError } from "../errors.ts";
import type { ReadResult } from "../types.ts";
import { indexIntervalBytes } from "./sparse-index.ts";
import type { Segments } from "./segments.ts";

/** Bytes of a shared extent at most (see the checkpoint); they are small enough to be walked. */
const placesKept = 4096;

/** Where a sequential reader goes on: known positions of batches, so that it need not search. */
export class ReadPlaces {
  readonly #places = new Map<string, { extent: Extent; position: number }>();

  take(partition: Partition, offset: number): { extent: Extent; position: number } | undefined {
    const key = `${partition.uid}:${offset}`;
    const place = this.#places.get(key);
    if (place !== undefined) this.#places.delete(key);
    return place;
  }

  put(partition: Partition, offset: number, extent: Extent, position: number): void {
    const key = `${partition.uid}:${offset}`;
    this.#places.delete(key);
    this.#places.set(key, { extent, position });
    if (this.#places.size > placesKept) {
      const oldest = this.#places.keys().next();
      if (oldest.done !== true) this.#places.delete(oldest.value);
    }
  }
}

/**
 * Reads whole batches from the one that holds `offset` on, about `bytesMax` bytes: never more,
 * except that a first batch that is larger comes alone. Nothing past the durable end is seen.
 * Throws `offset-out-of-range`, `unknown-topic` after a deletion, `corrupt`.
 */
export async function readBatches(
  segments: Segments,
  places: ReadPlaces,
  partition: Partition,
  offset: number,
  bytesMax: number,
): Promise<ReadResult> {
  const buffers: Buffer[] = [];
  let bytes = 0;
  let next = offset;
  for (;;) {
    checkRange(partition, next);
    const room = bytesMax - bytes;
    if (bytes > 0 && room < batchHeaderBytes) break;
    const extent = findExtent(partition, next);
    if (extent === undefined) {
      const fromMemory = readTail(partition, next, room, bytes === 0);
      buffers.push(...fromMemory.buffers);
      bytes += fromMemory.bytes;
      next = fromMemory.nextOffset;
      break;
    }
    const found = await readExtentIfThere(segments, places, partition, extent, next, room, bytes);
    // Compaction or retention replaced the file meanwhile: look again.
    if (found === undefined) continue;
    if (found.bytes > 0) buffers.push(...found.buffers);
    bytes += found.bytes;
    next = found.nextOffset;
    if (next < extent.nextOffset) break;
  }
  return { buffers, bytes, nextOffset: next };
}

/**
 * The first record at or after `timestamp` (epoch milliseconds), as offset and time of its own;
 * undefined if all are older. Batches that cannot be decompressed count with their first offset.
 */
export async function findTimestamp(
  segments: Segments,
  places: ReadPlaces,
  partition: Partition,
  timestamp: number,
): Promise<{ offset: number; timestamp: number } | undefined> {
  let next = await firstCandidate(segments, partition, timestamp);
  while (next < partition.durableEnd) {
    const { buffers, nextOffset } = await readBatches(segments, places, partition, next, 1 << 20);
    for (const buffer of buffers) {
      const found = await searchBatches(buffer, timestamp, partition.logStart);
      if (found !== undefined) return found;
    }
    if (nextOffset <= next) return undefined;
    next = nextOffset;
  }
  return undefined;
}

/** Reads everything of an extent; for small ones. */
export async function readWholeExtent(
  segments: Segments,
  partition: Partition,
  extent: Extent,
): Promise<Buffer> {
  const lease = await segments.files.use(extentPath(partition, extent));
  try {
    const bytes = Buffer.allocUnsafe(extent.length);
    const count = await lease.file.read(bytes, 0, extent.length, extent.position);
    if (count < extent.length) throw shortFile(partition, extent);
    return bytes;
  } finally {
    lease.release();
  }
}

function checkRange(partition: Partition, offset: number): void {
  if (!partition.live) throw new LogError("unknown-topic", `${partition.topic.name} is deleted`);
  if (offset >= partition.logStart && offset <= partition.durableEnd) return;
  const range = `${partition.logStart} to ${partition.durableEnd}`;
  throw new LogError("offset-out-of-range", `offset ${offset} is outside of ${range}`);
}

// The first extent that ends after `offset`; offsets in a gap lead to the extent after it.
function findExtent(partition: Partition, offset: number): Extent | undefined {
  const { extents } = partition;
  let low = 0;
  let high = extents.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (extents[middle]!.nextOffset <= offset) low = middle + 1;
    else high = middle;
  }
  return extents[low];
}

function readTail(
  partition: Partition,
  offset: number,
  bytesMax: number,
  isFirst: boolean,
): ReadResult {
  const { tail } = partition;
  let low = 0;
  let high = tail.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (tail[middle]!.nextOffset <= offset) low = middle + 1;
    else high = middle;
  }
  const buffers: Buffer[] = [];
  let bytes = 0;
  let nextOffset = offset;
  for (let at = low; at < tail.length; at++) {
    const batch = tail[at]!;
    if (bytes + batch.bytes.length > bytesMax && !(isFirst && at === low)) break;
    buffers.push(batch.bytes);
    bytes += batch.bytes.length;
    nextOffset = batch.nextOffset;
  }
  if (low === tail.length) nextOffset = partition.durableEnd;
  return { buffers, bytes, nextOffset };
}

async function readExtentIfThere(
  segments: Segments,
  places: ReadPlaces,
  partition: Partition,
  extent: Extent,
  offset: number,
  bytesMax: number,
  bytesBefore: number,
): Promise<ReadResult | undefined> {
  try {
    return await readExtent(segments, places, partition, extent, offset, bytesMax, bytesBefore);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    if (partition.extents.includes(extent)) throw error;
    return undefined;
  }
}

async function readExtent(
  segments: Segments,
  places: ReadPlaces,
  partition: Partition,
  extent: Extent,
  offset: number,
  bytesMax: number,
  bytesBefore: number,
): Promise<ReadResult> {
  // The extent may grow while we read; what is there now is enough.
  const end = extent.position + extent.length;
  const extentNext = extent.nextOffset;
  let place = places.take(partition, offset);
  if (place?.extent !== extent) place = undefined;
  let position = place?.position ?? extent.position;
  let slack = 0;
  if (place === undefined && !extent.shared) {
    position = (await segments.indexOf(partition, extent)).findOffset(offset).position;
    slack = indexIntervalBytes;
  }
  const lease = await segments.files.use(extentPath(partition, extent));
  try {
    let chunk = Buffer.allocUnsafe(Math.min(Math.max(bytesMax, 4096) + slack, end - position));
    let count = await lease.file.read(chunk, 0, chunk.length, position);
    if (count < chunk.length) throw shortFile(partition, extent);
    // Step over whole batches below the offset.
    let at = 0;
    for (;;) {
      const left = count - at;
      if (left < batchHeaderBytes && position + count < end) {
        position += at;
        chunk = Buffer.allocUnsafe(Math.min(Math.max(bytesMax, 4096) + slack, end - position));
        count = await lease.file.read(chunk, 0, chunk.length, position);
        at = 0;
      }
      const header = readBatchHeader(chunk.subarray(0, count), at);
      if (header === undefined) {
        if (position + at >= end) return { buffers: [], bytes: 0, nextOffset: extentNext };
        throw new LogError("corrupt", `no batch at ${position + at} of ${partition.topic.name}`);
      }
      if (header.baseOffset + header.lastOffsetDelta >= offset) break;
      if (at + header.bytes > count) {
        position += at + header.bytes;
        chunk = Buffer.allocUnsafe(
          Math.max(0, Math.min(Math.max(bytesMax, 4096) + slack, end - position)),
        );
        count = await lease.file.read(chunk, 0, chunk.length, position);
        at = 0;
      } else {
        at += header.bytes;
      }
    }
    const first = readBatchHeader(chunk, at)!;
    if (first.bytes > bytesMax && bytesBefore > 0) {
      return { buffers: [], bytes: 0, nextOffset: offset };
    }
    if (at + first.bytes > count) {
      const whole = Buffer.allocUnsafe(first.bytes);
      const had = chunk.copy(whole, 0, at, count);
      const more = await lease.file.read(whole, had, first.bytes - had, position + at + had);
      if (had + more < first.bytes) throw shortFile(partition, extent);
      chunk = whole;
      count = whole.length;
      position += at;
      at = 0;
    }
    const batchesEnd = wholeBatchesEnd(chunk, at, count, Math.max(bytesMax, first.bytes));
    const nextOffset = batchesEnd.nextOffset;
    const atEnd = position + batchesEnd.at >= end;
    if (!atEnd) places.put(partition, nextOffset, extent, position + batchesEnd.at);
    return {
      buffers: [chunk.subarray(at, batchesEnd.at)],
      bytes: batchesEnd.at - at,
      nextOffset: atEnd ? extentNext : nextOffset,
    };
  } finally {
    lease.release();
  }
}

function wholeBatchesEnd(
  chunk: Buffer,
  start: number,
  count: number,
  bytesMax: number,
): { at: number; nextOffset: number } {
  let at = start;
  let nextOffset = -1;
  while (at + batchHeaderBytes <= count) {
    const bytes = chunk.readInt32BE(at + 8) + 12;
    if (bytes < batchHeaderBytes || at + bytes > count || at + bytes - start > bytesMax) break;
    nextOffset = readInt64(chunk, at) + chunk.readInt32BE(at + 23) + 1;
    at += bytes;
  }
  return { at, nextOffset };
}

async function firstCandidate(
  segments: Segments,
  partition: Partition,
  timestamp: number,
): Promise<number> {
  for (const extent of partition.extents) {
    if (extent.maxTimestamp < timestamp) continue;
    if (extent.shared) return Math.max(partition.logStart, extent.baseOffset);
    const { offset } = (await segments.indexOf(partition, extent)).findTime(timestamp);
    return Math.max(partition.logStart, offset, extent.baseOffset);
  }
  for (const batch of partition.tail) {
    if (batch.maxTimestamp >= timestamp) return Math.max(partition.logStart, batch.baseOffset);
  }
  return partition.durableEnd;
}

async function searchBatches(
  bytes: Buffer,
  timestamp: number,
  logStart: number,
): Promise<{ offset: number; timestamp: number } | undefined> {
  for (let at = 0; at < bytes.length;) {
    const header = readBatchHeader(bytes, at)!;
    if (header.maxTimestamp >= timestamp) {
      const found = await searchRecords(bytes.subarray(at, at + header.bytes), timestamp, logStart);
      if (found !== undefined) return found;
    }
    at += header.bytes;
  }
  return undefined;
}

async function searchRecords(
  batch: Buffer,
  timestamp: number,
  logStart: number,
): Promise<{ offset: number; timestamp: number } | undefined> {
  try {
    const { records } = await decodeBatch(batch);
    const found = records.find((r) => r.timestamp >= timestamp && r.offset >= logStart);
    return found && { offset: found.offset, timestamp: found.timestamp };
  } catch (error) {
    if (!(error instanceof LogError)) throw error;
    const header = readBatchHeader(batch)!;
    return { offset: Math.max(logStart, header.baseOffset), timestamp: header.maxTimestamp };
  }
}

function shortFile(partition: Partition, extent: Extent): LogError {
  const path = extentPath(partition, extent);
  return new LogError("corrupt", `${path} is shorter than ${extent.position + extent.length}`);
}
