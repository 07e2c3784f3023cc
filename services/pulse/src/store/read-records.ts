// Reads single records of a partition in order.
import type { PartitionView } from "@platform/log";
import { decodeBatch, splitBatches, type StoredRecord } from "@platform/log/batch";
import type { Store } from "./store.ts";

const READ_BYTES = 256 * 1024;

/**
 * Yields the records from `from` up to `to` (or the durable end), at most about `bytesMax` bytes. Damage is skipped.
 * Throws the log's error for a batch that cannot be decompressed.
 */
export async function* readRecords(
  store: Store,
  partition: PartitionView,
  from: number,
  to = partition.durableEnd,
  bytesMax = Number.POSITIVE_INFINITY,
): AsyncGenerator<StoredRecord> {
  let bytesRead = 0;
  for (let offset = from; offset < to && bytesRead < bytesMax;) {
    const { buffers, bytes, nextOffset } = await store.readIntact(partition, offset, READ_BYTES);
    bytesRead += bytes;
    for (const batch of buffers.flatMap((buffer) => [...splitBatches(buffer)])) {
      for (const record of (await decodeBatch(batch)).records) {
        if (record.offset >= offset && record.offset < to) yield record;
      }
    }
    if (nextOffset <= offset) return;
    offset = nextOffset;
  }
}
