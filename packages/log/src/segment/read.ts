// Reading whole batches of a partition, by offset and by time, from files and from memory.
import { decodeBatch } from "../batch/compression.ts";
import {
  batchHeaderBytes,
  batchPrefixBytes,
  readBatchHeader,
  readInt64,
  type BatchHeader,
} from "../batch/header.ts";
import { extentPath, type Extent, type Partition } from "../catalogue/partition.ts";
import type { DiskFile } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import type { ReadResult } from "../types.ts";
import { indexIntervalBytes } from "./sparse-index.ts";
import type { Segments } from "./segments.ts";

/** Bytes read at once at least: the next small batches come along. */
const readBytesMin = 4096;
/** Places remembered for all readers together. */
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
    const extent = partition.extents[findStretch(partition.extents, next)];
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

// The index of the first stretch that ends after `offset`; offsets in a gap lead to the one after it.
function findStretch(stretches: readonly { nextOffset: number }[], offset: number): number {
  let low = 0;
  let high = stretches.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (stretches[middle]!.nextOffset <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

function readTail(
  partition: Partition,
  offset: number,
  bytesMax: number,
  isFirst: boolean,
): ReadResult {
  const { tail } = partition;
  const first = findStretch(tail, offset);
  const buffers: Buffer[] = [];
  let bytes = 0;
  let nextOffset = offset;
  for (let at = first; at < tail.length; at++) {
    const batch = tail[at]!;
    if (bytes + batch.bytes.length > bytesMax && !(isFirst && at === first)) break;
    buffers.push(batch.bytes);
    bytes += batch.bytes.length;
    nextOffset = batch.nextOffset;
  }
  if (first === tail.length) nextOffset = partition.durableEnd;
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
  const start = await findStart(segments, places, partition, extent, offset);
  const lease = await segments.files.use(extentPath(partition, extent));
  try {
    const size = Math.max(bytesMax, readBytesMin) + start.slack;
    const window = new BatchWindow(lease.file, start.position, end, size);
    let header = await window.header();
    while (header !== undefined && header.baseOffset + header.lastOffsetDelta < offset) {
      window.skip(header.bytes);
      header = await window.header();
    }
    if (header === undefined) return { buffers: [], bytes: 0, nextOffset: extentNext };
    if (header.bytes > bytesMax && bytesBefore > 0) {
      return { buffers: [], bytes: 0, nextOffset: offset };
    }
    await window.need(header.bytes);
    const taken = window.take(Math.max(bytesMax, header.bytes));
    const atEnd = window.position >= end;
    if (!atEnd) places.put(partition, taken.nextOffset, extent, window.position);
    const nextOffset = atEnd ? extentNext : taken.nextOffset;
    return { buffers: [taken.bytes], bytes: taken.bytes.length, nextOffset };
  } finally {
    lease.release();
  }
}

// Where to begin so that the batch with `offset` is not far; `slack` is how far it may be.
async function findStart(
  segments: Segments,
  places: ReadPlaces,
  partition: Partition,
  extent: Extent,
  offset: number,
): Promise<{ position: number; slack: number }> {
  const place = places.take(partition, offset);
  if (place?.extent === extent) return { position: place.position, slack: 0 };
  if (extent.shared) return { position: extent.position, slack: 0 };
  const index = await segments.indexOf(partition, extent);
  return { position: index.findOffset(offset).position, slack: indexIntervalBytes };
}

/** A stretch of a segment file in memory, moved forward batch by batch. */
class BatchWindow {
  readonly #file: DiskFile;
  readonly #end: number;
  readonly #size: number;
  #chunk: Buffer = Buffer.alloc(0);
  #chunkPosition: number;
  #at = 0;

  constructor(file: DiskFile, position: number, end: number, size: number) {
    this.#file = file;
    this.#chunkPosition = position;
    this.#end = end;
    this.#size = size;
  }

  /** Where the next batch begins in the file. */
  get position(): number {
    return this.#chunkPosition + this.#at;
  }

  /** The header of the next batch; undefined at the end. */
  async header(): Promise<BatchHeader | undefined> {
    if (this.position >= this.#end) return undefined;
    await this.need(batchHeaderBytes);
    const header = readBatchHeader(this.#chunk, this.#at);
    if (header !== undefined) return header;
    throw new LogError("corrupt", `no batch at ${this.position} of a segment`);
  }

  skip(bytes: number): void {
    this.#at += bytes;
  }

  /** Has at least `bytes` of the next batch in memory. */
  async need(bytes: number): Promise<void> {
    if (this.#at + bytes <= this.#chunk.length) return;
    const position = this.position;
    const length = Math.min(Math.max(bytes, this.#size), this.#end - position);
    const chunk = Buffer.allocUnsafe(Math.max(0, length));
    const count = await this.#file.read(chunk, 0, chunk.length, position);
    if (count < bytes) {
      throw new LogError("corrupt", `a segment ends at ${position + count}, inside of a batch`);
    }
    this.#chunk = chunk.subarray(0, count);
    this.#chunkPosition = position;
    this.#at = 0;
  }

  /** Takes whole batches that are in memory, up to `bytesMax`; at least the first is there. */
  take(bytesMax: number): { bytes: Buffer; nextOffset: number } {
    const start = this.#at;
    let nextOffset = -1;
    while (this.#at + batchHeaderBytes <= this.#chunk.length) {
      const bytes = this.#chunk.readInt32BE(this.#at + 8) + batchPrefixBytes;
      const end = this.#at + bytes;
      if (bytes < batchHeaderBytes || end > this.#chunk.length || end - start > bytesMax) break;
      nextOffset = readInt64(this.#chunk, this.#at) + this.#chunk.readInt32BE(this.#at + 23) + 1;
      this.#at = end;
    }
    return { bytes: this.#chunk.subarray(start, this.#at), nextOffset };
  }
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
