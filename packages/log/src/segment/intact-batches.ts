// Reads extents that are about to be moved: only complete, intact ones may be.
import { splitBatches } from "../batch/compression.ts";
import { areBatchesIntact, nextOffsetOf, readBatchHeader } from "../batch/header.ts";
import { extentPath, type Extent, type Partition, type TailBatch } from "../partition/partition.ts";
import { LogError } from "../errors.ts";
import { isDamage } from "../damage/damage-registry.ts";
import type { Segments } from "./segments.ts";

/**
 * Reads the batches of small extents, without those below the log start. `undefined` if one of them is damaged: then
 * all must stay in place, since batches that are not moved would be lost.
 */
export async function readIntactBatches(
  segments: Segments,
  partition: Partition,
  extents: readonly Extent[],
): Promise<TailBatch[] | undefined> {
  const batches: TailBatch[] = [];
  for (const extent of extents) {
    const bytes = await readIntact(segments, partition, extent);
    if (bytes === undefined) return undefined;
    for (const batch of splitBatches(bytes)) {
      const header = readBatchHeader(batch)!;
      const nextOffset = nextOffsetOf(header);
      if (nextOffset <= partition.logStart) continue;
      const { baseOffset, maxTimestamp } = header;
      batches.push({ baseOffset, nextOffset, maxTimestamp, bytes: batch });
    }
  }
  return batches;
}

async function readIntact(
  segments: Segments,
  partition: Partition,
  extent: Extent,
): Promise<Buffer | undefined> {
  try {
    const bytes = await readWholeExtent(segments, partition, extent);
    return areBatchesIntact(bytes) ? bytes : undefined;
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}

async function readWholeExtent(
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

function shortFile(partition: Partition, extent: Extent): LogError {
  const path = extentPath(partition, extent);
  return new LogError("corrupt", `${path} is shorter than ${extent.position + extent.length}`);
}
