// Retention: drops whole segments by age, by size and below the log start.
import type { Partition } from "../partition/partition.ts";
import type { ObjectLedger } from "../catalogue/object-ledger.ts";
import type { Checkpointer } from "./checkpoint.ts";
import type { Committer } from "../commit/committer.ts";

/**
 * Drops expired segments and returns the bytes dropped. Their files are removed after the next checkpoint; a crash before
 * that restores them, and they are dropped again. A partition that is being written to is skipped until the next call.
 * Segments with objects stay while too many objects wait for their removal.
 */
export function applyRetention(
  partition: Partition,
  nowMs: number,
  committer: Committer,
  checkpointer: Checkpointer,
  ledger: ObjectLedger,
): number {
  if (!partition.live || partition.writer !== undefined) return 0;
  const { retentionMs, retentionBytes, cleanupPolicy } = partition.topic.config;
  const deletes = cleanupPolicy !== "compact";
  let { bytes } = partition;
  let count = 0;
  for (const extent of partition.extents) {
    const isBelow = extent.nextOffset <= partition.logStart;
    const isOld = deletes && retentionMs >= 0 && extent.maxTimestamp < nowMs - retentionMs;
    const isTooMuch = deletes && retentionBytes >= 0 && bytes - extent.length >= retentionBytes;
    if (!isBelow && !isOld && !isTooMuch) break;
    if (extent.object !== undefined && ledger.isFull) break;
    bytes -= extent.length;
    count++;
  }
  if (count === 0) return 0;
  const dropped = partition.extents.slice(0, count);
  if (count === partition.extents.length) partition.activeIndex = undefined;
  checkpointer.discard(partition, dropped);
  const before = partition.bytes;
  partition.setExtents(partition.extents.slice(count));
  partition.logStart = Math.max(partition.logStart, dropped.at(-1)!.nextOffset);
  committer.dirty.add(partition);
  return before - partition.bytes;
}

/**
 * Drops the local copies of uploaded segments that the topic's local retention does not keep; returns their bytes. Their
 * files are removed after the next checkpoint.
 */
export function applyLocalRetention(
  partition: Partition,
  nowMs: number,
  checkpointer: Checkpointer,
): number {
  if (!partition.live) return 0;
  const { localRetentionMs, localRetentionBytes } = partition.topic.config;
  if (localRetentionMs < 0 && localRetentionBytes < 0) return 0;
  let bytes = partition.tailBytes;
  for (const { isRemote, length } of partition.extents) if (isRemote !== true) bytes += length;
  let dropped = 0;
  for (const extent of partition.extents) {
    if (extent.isRemote === true) continue;
    const isOld = localRetentionMs >= 0 && extent.maxTimestamp < nowMs - localRetentionMs;
    const isTooMuch = localRetentionBytes >= 0 && bytes - extent.length >= localRetentionBytes;
    if (!isOld && !isTooMuch) break;
    // A segment without an object stays, and counts.
    if (extent.object === undefined) continue;
    checkpointer.discardCopy(partition, extent);
    bytes -= extent.length;
    dropped += extent.length;
  }
  return dropped;
}
