// Searches batches for the first record at or after a time.
import { decodeBatch } from "../batch/compression.ts";
import { readBatchHeader } from "../batch/header.ts";
import type { Partition } from "../partition/partition.ts";
import { LogError } from "../errors.ts";
import type { Segments } from "./segments.ts";

/** The first offset whose batch may contain a record at or after a time (epoch milliseconds). */
export async function findFirstCandidate(
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

/** The first record at or after a time in whole batches. */
export async function searchBatches(
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
