// Replays journal entries after the last checkpoint.
import { nextOffsetOf, readBatchHeader } from "../batch/header.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { extentPath, type Partition } from "../partition/partition.ts";
import { Producers } from "../partition/producers.ts";
import type { Disk } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { decodeEntry, type InPlaceOperation, type Operation } from "../journal/entry.ts";
import { SEGMENT_HEADER_BYTES } from "../segment/segment-header.ts";
import { walkFile } from "../segment/walk-batches.ts";
import type { Recovered, RecoveryOptions } from "./recovered.ts";

/** True if the data that the entries refer to is complete: above the durable end it may never have reached its segment. */
export async function areEntriesWhole(
  disk: Disk,
  catalogue: Catalogue,
  entries: readonly Buffer[],
): Promise<boolean> {
  for (const operation of entries.flatMap(decodeEntry)) {
    if (operation.kind !== "in-place") continue;
    const partition = catalogue.partition(operation.uid);
    if (partition === undefined) continue;
    if (!(await isInPlaceWhole(disk, partition, operation))) return false;
  }
  return true;
}

/** Replays one operation. Operations that the manifest already contains have no effect. */
export function replay(options: RecoveryOptions, recovered: Recovered, operation: Operation): void {
  const { catalogue } = recovered;
  switch (operation.kind) {
    case "append": {
      const partition = catalogue.partition(operation.uid);
      if (partition !== undefined) replayAppend(options, recovered, partition, operation.batch);
      // With a manifest, the operation belongs to a topic that was deleted later.
      else if (recovered.isRebuilt) noteUndescribed(recovered, operation.uid);
      return;
    }
    case "in-place": {
      const partition = catalogue.partition(operation.uid);
      if (partition !== undefined) replayInPlace(options, recovered, partition, operation);
      return;
    }
    case "trim": {
      const partition = catalogue.partition(operation.uid);
      if (partition === undefined) return;
      partition.logStart = Math.max(partition.logStart, operation.logStart);
      recovered.dirty.add(partition);
      return;
    }
    case "describe":
      // Only used to rebuild the catalogue, which has read it already.
      return;
    case "create-topic":
    case "configure-topic":
    case "add-partitions":
    case "delete-topic": {
      const topic = catalogue.apply(operation);
      if (topic === undefined) return;
      if (topic.live) recovered.changedTopics.add(topic);
      else {
        recovered.changedTopics.delete(topic);
        for (const partition of topic.partitions) {
          recovered.dirty.delete(partition);
          for (const extent of partition.extents) {
            recovered.garbage.push(extentPath(partition, extent));
            if (extent.object !== undefined) recovered.freshRemovals.add(extent.object);
          }
        }
      }
    }
  }
}

function noteUndescribed(recovered: Recovered, uid: number): void {
  const reason = `batches of partition ${uid}, which no file describes`;
  if (recovered.problems.some((problem) => problem.reason === reason)) return;
  recovered.problems.push({ file: "journal", position: 0, length: 0, reason });
}

function replayAppend(
  options: RecoveryOptions,
  recovered: Recovered,
  partition: Partition,
  bytes: Buffer,
): void {
  const header = readBatchHeader(bytes);
  if (header === undefined) throw new LogError("corrupt", "a journal entry holds no batch");
  const { baseOffset, maxTimestamp } = header;
  const nextOffset = nextOffsetOf(header);
  if (header.producerId >= 0) {
    partition.producers ??= new Producers();
    partition.producers.settle(header, baseOffset, options.nowMs, options.producersMax);
  }
  if (baseOffset < partition.durableEnd) return;
  partition.noteEpoch(header.leaderEpoch, baseOffset);
  partition.pushTail({ baseOffset, nextOffset, maxTimestamp, bytes });
  recovered.dirty.add(partition);
}

function replayInPlace(
  options: RecoveryOptions,
  recovered: Recovered,
  partition: Partition,
  operation: InPlaceOperation,
): void {
  for (const bytes of operation.producerHeaders) {
    const header = readBatchHeader(bytes);
    if (header === undefined) continue;
    partition.producers ??= new Producers();
    partition.producers.settle(header, header.baseOffset, options.nowMs, options.producersMax);
  }
  if (operation.nextOffset <= partition.flushedEnd) return;
  const last = partition.extents.at(-1);
  const joins =
    last !== undefined &&
    !last.shared &&
    last.file === operation.segmentBase &&
    last.generation === operation.generation &&
    last.position + last.length === operation.position;
  const isFirst = operation.position === 0 || operation.position === SEGMENT_HEADER_BYTES;
  if (!joins && !isFirst) {
    // Only after damage: the batches before these are lost, and with them the end that they join.
    recovered.quarantined.push({
      file: inPlacePath(partition, operation),
      position: operation.position,
      length: operation.bytes,
      reason: "the batches do not join the known end of their segment",
    });
    return;
  }
  if (joins) {
    last.length += operation.bytes;
    last.nextOffset = operation.nextOffset;
    last.maxTimestamp = Math.max(last.maxTimestamp, operation.maxTimestamp);
    partition.extentBytes += operation.bytes;
  } else {
    partition.setExtents([...partition.extents, inPlaceExtent(operation)]);
  }
  const kept = partition.tail.filter((batch) => batch.baseOffset >= operation.nextOffset);
  partition.dropTail(partition.tail.length - kept.length);
  partition.noteEpoch(operation.leaderEpoch, operation.firstOffset);
  partition.hasFolder = true;
  partition.flushedEnd = operation.nextOffset;
  partition.durableEnd = Math.max(partition.durableEnd, operation.nextOffset);
  recovered.dirty.add(partition);
}

async function isInPlaceWhole(
  disk: Disk,
  partition: Partition,
  operation: InPlaceOperation,
): Promise<boolean> {
  const { position, bytes, firstOffset, nextOffset } = operation;
  const path = inPlacePath(partition, operation);
  const offsets = { first: firstOffset, end: nextOffset };
  const batches = walkFile(disk, path, position, position + bytes, offsets);
  let reachedOffset = firstOffset;
  try {
    let step = await batches.next();
    for (; step.done !== true; step = await batches.next()) {
      reachedOffset = nextOffsetOf(step.value.header);
    }
    return step.value === position + bytes && reachedOffset === nextOffset;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

function inPlaceExtent(operation: InPlaceOperation) {
  return {
    shared: false,
    file: operation.segmentBase,
    generation: operation.generation,
    position: operation.position,
    length: operation.bytes,
    baseOffset: operation.firstOffset,
    nextOffset: operation.nextOffset,
    maxTimestamp: operation.maxTimestamp,
  };
}

function inPlacePath(partition: Partition, operation: InPlaceOperation): string {
  return extentPath(partition, inPlaceExtent(operation));
}
