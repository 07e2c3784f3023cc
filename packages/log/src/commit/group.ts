// A group of entries that are committed together, and its form in the journal.
import { BATCH_HEADER_BYTES, type BatchHeader } from "../batch/header.ts";
import { describePartition } from "../partition/description.ts";
import type { Partition, TailBatch } from "../partition/partition.ts";
import {
  encodeOperation,
  type CatalogueOperation,
  type InPlaceOperation,
  type Operation,
  type TrimOperation,
} from "../journal/entry.ts";
import type { OwnWrite } from "../segment/segments.ts";

/** A batch with its offsets assigned in `partition`. */
export interface Fresh {
  partition: Partition;
  header: BatchHeader;
  batch: TailBatch;
}

/** An entry in the queue; `bytes` count as pending. */
export interface Waiting {
  fresh: Fresh[];
  changes: (TrimOperation | CatalogueOperation)[];
  bytes: number;
  settle: () => void;
  fail: (error: Error) => void;
}

/** Entries that are written and synced together. */
export interface Group {
  waiting: Waiting[];
  bytes: number;
  /** Batches written directly to segments; the journal gets a reference. */
  inPlace: Map<Partition, PartitionBatches>;
}

/** The batches of one partition in a group. */
interface PartitionBatches {
  batches: TailBatch[];
  headers: BatchHeader[];
  bytes: number;
}

/**
 * Takes the entries of the next group off the queue: at least one, up to `bytesMax`. `inPlace` then contains all
 * partitions; the committer removes those that go through the journal.
 */
export function takeGroup(queue: Waiting[], bytesMax: number): Group {
  let bytes = 0;
  let count = 0;
  for (const waiting of queue) {
    if (count > 0 && bytes + waiting.bytes > bytesMax) break;
    bytes += waiting.bytes;
    count++;
  }
  const waiting = queue.splice(0, count);
  const inPlace: Group["inPlace"] = new Map();
  for (const { fresh } of waiting) {
    for (const { partition, batch, header } of fresh) {
      const had = inPlace.get(partition);
      if (had === undefined) {
        inPlace.set(partition, { batches: [batch], headers: [header], bytes: batch.bytes.length });
      } else {
        had.batches.push(batch);
        had.headers.push(header);
        had.bytes += batch.bytes.length;
      }
    }
  }
  return { waiting, bytes, inPlace };
}

/** The journal entries of a group; the first one refers to the batches written in place. */
export function groupEntries(
  group: Group,
  writes: readonly OwnWrite[],
  leaderEpoch: number,
  journalFile: number,
): Buffer[][] {
  const entries: Buffer[][] = [];
  const descriptions = describeNew(group, journalFile);
  if (descriptions.length > 0) entries.push(descriptions.flatMap(encodeOperation));
  if (writes.length > 0) {
    const references = writes.map((write) =>
      reference(write, group.inPlace.get(write.partition)!, leaderEpoch),
    );
    entries.push(references.flatMap(encodeOperation));
  }
  for (const { fresh, changes } of group.waiting) {
    const operations: Operation[] = [...changes];
    for (const { partition, batch } of fresh) {
      if (group.inPlace.has(partition)) continue;
      operations.push({ kind: "append", uid: partition.uid, batch: batch.bytes });
    }
    if (operations.length > 0) entries.push(operations.flatMap(encodeOperation));
  }
  return entries;
}

// Partitions that this journal file does not describe yet.
function describeNew(group: Group, journalFile: number): Operation[] {
  const fresh = new Set<Partition>();
  for (const waiting of group.waiting) {
    for (const { partition } of waiting.fresh) {
      if (partition.describedIn !== journalFile) fresh.add(partition);
    }
  }
  return [...fresh].map((partition) => ({
    kind: "describe",
    partition: describePartition(partition),
  }));
}

function reference(
  { partition, extent }: OwnWrite,
  { batches, headers }: PartitionBatches,
  leaderEpoch: number,
): InPlaceOperation {
  const producerHeaders = batches.flatMap((batch, index) =>
    headers[index]!.producerId < 0 ? [] : [batch.bytes.subarray(0, BATCH_HEADER_BYTES)],
  );
  return {
    kind: "in-place",
    uid: partition.uid,
    segmentBase: extent.file,
    generation: extent.generation,
    position: extent.position,
    bytes: extent.length,
    firstOffset: extent.baseOffset,
    nextOffset: extent.nextOffset,
    maxTimestamp: extent.maxTimestamp,
    leaderEpoch,
    producerHeaders,
  };
}
