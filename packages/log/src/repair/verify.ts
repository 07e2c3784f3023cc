// Reads all referenced data and finds the intact runs of batches.
import { isBatchIntact, nextOffsetOf, readBatchHeader } from "../batch/header.ts";
import { extentPath, type Extent, type Partition } from "../partition/partition.ts";
import { readPart } from "../disk/files.ts";
import type { Disk } from "../disk/port.ts";
import type { Quarantine } from "../types.ts";
import { walkFile } from "../segment/walk-batches.ts";

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
): AsyncGenerator<VerifiedExtent> {
  for (const extent of partition.extents) yield await verifyExtent(disk, partition, extent);
}

async function verifyExtent(
  disk: Disk,
  partition: Partition,
  extent: Extent,
): Promise<VerifiedExtent> {
  const file = extentPath(partition, extent);
  const end = extent.position + extent.length;
  const verified: VerifiedExtent = { partition, extent, intact: [], damaged: [] };
  if (extent.isRemote === true) {
    verified.intact.push(extent);
    return verified;
  }
  const size = await disk.size(file);
  if (size === undefined) {
    const { position, length } = extent;
    verified.damaged.push({ file, position, length, reason: "missing" });
    return verified;
  }
  let position = extent.position;
  while (position < end) {
    const run: Extent = { ...extent, position, length: 0, nextOffset: 0, maxTimestamp: -1 };
    const lowest = verified.intact.at(-1)?.nextOffset ?? extent.baseOffset;
    const batches = walkFile(disk, file, position, Math.min(end, size), {
      first: lowest,
      end: extent.nextOffset,
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
    position = await findIntact(disk, file, step.value + 1, end, from, extent.nextOffset);
    verified.damaged.push({
      file,
      position: step.value,
      length: position - step.value,
      reason: describeDamage(partition, from, step.value >= size),
    });
  }
  noteOffsets(verified);
  return verified;
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
  disk: Disk,
  file: string,
  start: number,
  end: number,
  offset: number,
  nextOffset: number,
): Promise<number> {
  const length = Math.min(SEARCH_BYTES_MAX, end - start);
  const bytes = (await readPart(disk, file, start, length)) ?? Buffer.alloc(0);
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
