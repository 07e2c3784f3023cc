// Reads a partition in small steps, like a consumer.
import { decodeBatch, splitBatches, type StoredRecord } from "../../src/batch/index.ts";
import type { Log, PartitionView } from "../../src/index.ts";

/** All records of a partition from `from` on, read `bytesMax` bytes at a time. */
export async function readAll(
  log: Log,
  partition: PartitionView,
  bytesMax = 1_000,
  from = partition.logStart,
): Promise<StoredRecord[]> {
  const records: StoredRecord[] = [];
  let offset = from;
  while (offset < partition.durableEnd) {
    const { buffers, nextOffset } = await log.read(partition, offset, bytesMax);
    for (const buffer of buffers) {
      for (const batch of splitBatches(buffer)) {
        for (const record of (await decodeBatch(batch)).records) {
          if (record.offset >= offset) records.push(record);
        }
      }
    }
    if (nextOffset <= offset) throw new Error(`reading stands still at ${offset}`);
    offset = nextOffset;
  }
  return records;
}
