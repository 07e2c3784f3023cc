// What the journal says after the last checkpoint, done again.
import { nextOffsetOf, readBatchHeader } from "../batch/header.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import { extentPath, type Partition } from "../partition/partition.ts";
import { Producers } from "../partition/producers.ts";
import type { Disk } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { decodeEntry, type InPlaceOperation, type Operation } from "../journal/entry.ts";
import { segmentHeaderBytes } from "../segment/segment-header.ts";
import { walkFile } from "../segment/walk-batches.ts";
import type { Recovered, RecoveryParts } from "./recovered.ts";

/** Whether all is there that the entries refer to: above the durable end it may never have reached its segment. */
export async function areEntriesWhole(
  disk: Disk,
  catalogue: Catalogue,
  entries: readonly Buffer[],
): Promise<boolean> {
  for (const operation of entries.flatMap(decodeEntry)) {
    if (operation.kind !== "in-place") continue;
    const partition = catalogue.partition(operation.uid);
    if (partition === undefined) continue;
    if (!(await isStretchWhole(disk, partition, operation))) return false;
  }
  return true;
}

/** Does one operation again; one that the manifest knows of already changes nothing. */
export function replay(parts: RecoveryParts, recovered: Recovered, operation: Operation): void {
  const { catalogue } = recovered;
  switch (operation.kind) {
    case "append": {
      const partition = catalogue.partition(operation.uid);
      if (partition !== undefined) replayAppend(parts, recovered, partition, operation.batch);
      // With a manifest it is one of a topic that was deleted since.
      else if (recovered.isRebuilt) noteUndescribed(recovered, operation.uid);
      return;
    }
    case "in-place": {
      const partition = catalogue.partition(operation.uid);
      if (partition !== undefined) replayInPlace(parts, recovered, partition, operation);
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
      // For a rebuilt catalogue, which has read it already.
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
          }
        }
      }
    }
  }
}

function noteUndescribed(recovered: Recovered, uid: number): void {
  const reason = `batches of partition ${uid}, of which no file says whose it is`;
  if (recovered.problems.some((problem) => problem.reason === reason)) return;
  recovered.problems.push({ file: "journal", position: 0, length: 0, reason });
}

function replayAppend(
  parts: RecoveryParts,
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
    partition.producers.settle(header, baseOffset, parts.nowMs, parts.producersMax);
  }
  if (baseOffset < partition.durableEnd) return;
  partition.noteEpoch(header.leaderEpoch, baseOffset);
  partition.pushTail({ baseOffset, nextOffset, maxTimestamp, bytes });
  recovered.dirty.add(partition);
}

function replayInPlace(
  parts: RecoveryParts,
  recovered: Recovered,
  partition: Partition,
  operation: InPlaceOperation,
): void {
  for (const bytes of operation.producerHeaders) {
    const header = readBatchHeader(bytes);
    if (header === undefined) continue;
    partition.producers ??= new Producers();
    partition.producers.settle(header, header.baseOffset, parts.nowMs, parts.producersMax);
  }
  if (operation.nextOffset <= partition.flushedEnd) return;
  const last = partition.extents.at(-1);
  const joins =
    last !== undefined &&
    !last.shared &&
    last.file === operation.segmentBase &&
    last.generation === operation.generation &&
    last.position + last.length === operation.position;
  const isFirst = operation.position === 0 || operation.position === segmentHeaderBytes;
  if (!joins && !isFirst) {
    // Only after damage: what led up to this stretch is gone, and with it where it joins.
    recovered.quarantined.push({
      file: stretchPath(partition, operation),
      position: operation.position,
      length: operation.bytes,
      reason: "the stretch does not join what is known of its segment",
    });
    return;
  }
  if (joins) {
    last.length += operation.bytes;
    last.nextOffset = operation.nextOffset;
    last.maxTimestamp = Math.max(last.maxTimestamp, operation.maxTimestamp);
    partition.extentBytes += operation.bytes;
  } else {
    partition.setExtents([...partition.extents, stretchExtent(operation)]);
  }
  const kept = partition.tail.filter((batch) => batch.baseOffset >= operation.nextOffset);
  partition.dropTail(partition.tail.length - kept.length);
  partition.noteEpoch(operation.leaderEpoch, operation.firstOffset);
  partition.hasFolder = true;
  partition.flushedEnd = operation.nextOffset;
  partition.durableEnd = Math.max(partition.durableEnd, operation.nextOffset);
  recovered.dirty.add(partition);
}

async function isStretchWhole(
  disk: Disk,
  partition: Partition,
  operation: InPlaceOperation,
): Promise<boolean> {
  const { position, bytes, firstOffset, nextOffset } = operation;
  const path = stretchPath(partition, operation);
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

function stretchExtent(operation: InPlaceOperation) {
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

function stretchPath(partition: Partition, operation: InPlaceOperation): string {
  return extentPath(partition, stretchExtent(operation));
}
