// The latest records of a topic, of all partitions together.
import type { PartitionView } from "@platform/log";
import type { StoredRecord } from "@platform/log/batch";
import { readRecords } from "./read-records.ts";
import type { Store } from "./store.ts";

/** Stored bytes that are looked through, shared by the partitions. */
const SCAN_BYTES_MAX = 16 * 1024 * 1024;
const SCAN_BYTES_MIN = 64 * 1024;

/** A record and its partition. */
export interface LatestRecord {
  partition: number;
  record: StoredRecord;
}

/** Reads at most `count` records, newest first, and 16 MiB. */
export async function readLatest(
  store: Store,
  partitions: readonly PartitionView[],
  count: number,
): Promise<LatestRecord[]> {
  let found: LatestRecord[] = [];
  const bytesMax = Math.max(SCAN_BYTES_MIN, SCAN_BYTES_MAX / Math.max(1, partitions.length));
  for (const partition of partitions) {
    const { index, logStart, durableEnd: end } = partition;
    const from = Math.max(logStart, end - count);
    for await (const record of readRecords(store, partition, from, end, bytesMax)) {
      found.push({ partition: index, record });
    }
    // Partitions may be many: only what may be in the result is kept.
    found = found.sort((a, b) => b.record.timestamp - a.record.timestamp).slice(0, count);
  }
  return found;
}
