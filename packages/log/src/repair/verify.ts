// Reads all referenced data and finds the intact runs of batches.
import { isBatchIntact, nextOffsetOf, readBatchHeader } from "../batch/header.ts";
import {
  extentEnd,
  extentName,
  extentPath,
  type Extent,
  type Partition,
} from "../partition/partition.ts";
import type { Disk } from "../disk/port.ts";
import type { Quarantine } from "../types.ts";
import { walkBatches, type ReadAt } from "../segment/walk-batches.ts";
import type { FoundObjects } from "./objects.ts";

/** Bytes after damage that are searched for the next intact batch. */
const SEARCH_BYTES_MAX = 64 * 1024 * 1024;

/** An extent as found on the disk: its intact runs in order, and the damage between them. */
export interface VerifiedExtent {
  partition: Partition;
  extent: Extent;
  intact: Extent[];
  damaged: Quarantine[];
}

/** Reads every batch of a partition's extents and yields the extents one after another. */
export async function* verifyExtents(
  disk: Disk,
  partition: Partition,
  objects: FoundObjects | undefined,
): AsyncGenerator<VerifiedExtent> {
  for (const extent of partition.extents) {
    const verified: VerifiedExtent = { partition, extent, intact: [], damaged: [] };
    const source = await openExtent(disk, partition, extent, objects);
    if (typeof source === "string") {
      const { position, length } = extent;
      const file = extentName(partition, extent);
      verified.damaged.push({ file, position, length, reason: source });
    } else if (source === undefined) verified.intact.push(extent);
    else {
      try {
        await verifyExtent(verified, source);
      } finally {
        await source.close();
      }
    }
    yield verified;
  }
}

/** The bytes of an extent's file or object. */
export interface ExtentSource {
  size: number;
  read: ReadAt;
  close: () => Promise<void>;
}

/** Opens the file or object of an extent: a text says why that is impossible; `undefined` if objects are not read. */
export async function openExtent(
  disk: Disk,
  partition: Partition,
  extent: Extent,
  objects: FoundObjects | undefined,
): Promise<ExtentSource | string | undefined> {
  if (extent.isRemote === true) {
    const problem = objects?.problemOf(extent);
    if (problem !== undefined || objects?.isRead !== true) return problem;
    const size = extentEnd(extent);
    const read: ReadAt = async (into, position) => {
      const end = Math.min(size, position + into.length);
      if (end <= position) return 0;
      await objects.store.read(extent.object!, position, into.subarray(0, end - position));
      return end - position;
    };
    return { size, read, close: () => Promise.resolve() };
  }
  const path = extentPath(partition, extent);
  const size = await disk.size(path);
  if (size === undefined) return "missing";
  const file = await disk.open(path, "read");
  const read: ReadAt = (into, position) => file.read(into, 0, into.length, position);
  return { size, read, close: () => file.close() };
}

async function verifyExtent(verified: VerifiedExtent, source: ExtentSource): Promise<void> {
  const { partition, extent } = verified;
  const file = extentName(partition, extent);
  const { size, read } = source;
  const end = extent.position + extent.length;
  let position = extent.position;
  while (position < end) {
    const run: Extent = { ...extent, position, length: 0, nextOffset: 0, maxTimestamp: -1 };
    const lowest = verified.intact.at(-1)?.nextOffset ?? extent.baseOffset;
    const batches = walkBatches(read, position, Math.min(end, size), {
      offsets: { first: lowest, end: extent.nextOffset },
    });
    let step = await batches.next();
    for (; step.done !== true; step = await batches.next()) {
      const { header } = step.value;
      if (run.length === 0) run.baseOffset = header.baseOffset;
      run.length += header.bytes;
      run.nextOffset = nextOffsetOf(header);
      run.maxTimestamp = Math.max(run.maxTimestamp, header.maxTimestamp);
    }
    if (run.length > 0) verified.intact.push(run);
    if (step.value >= end) break;
    const from = run.length > 0 ? run.nextOffset : lowest;
    position = await findIntact(source, step.value + 1, end, from, extent.nextOffset);
    verified.damaged.push({
      file,
      position: step.value,
      length: position - step.value,
      reason: describeDamage(partition, from, step.value >= size),
    });
  }
  noteOffsets(verified);
}

function describeDamage({ topic, index }: Partition, offset: number, isCut: boolean): string {
  const what = isCut ? "the file ends too early" : "a batch does not match its checksum";
  return `${what} (topic ${topic.name}, partition ${index}, offset ${offset} and on)`;
}

function noteOffsets({ extent, intact, damaged }: VerifiedExtent): void {
  const last = intact.at(-1);
  if (damaged.length > 0 || last === undefined) return;
  // Offsets up to the recorded end belong to the extent, even if records were compacted away.
  last.nextOffset = extent.nextOffset;
  intact[0]!.baseOffset = extent.baseOffset;
}

// The position of the next intact batch with an offset in the range; `end` if there is none.
async function findIntact(
  { read }: ExtentSource,
  start: number,
  end: number,
  offset: number,
  nextOffset: number,
): Promise<number> {
  const length = Math.min(SEARCH_BYTES_MAX, end - start);
  const whole = Buffer.alloc(Math.max(0, length));
  const bytes = whole.subarray(0, await read(whole, start));
  for (let at = 0; at < bytes.length; at++) {
    // Magic 2 at byte 16 of a batch, checked before decoding.
    if (bytes[at + 16] !== 2) continue;
    const header = readBatchHeader(bytes, at);
    if (header === undefined || header.baseOffset < offset) continue;
    if (header.baseOffset >= nextOffset || !isBatchIntact(bytes, at)) continue;
    return start + at;
  }
  return end;
}
