// The documents of the manifest.
import type { JournalPlace } from "../journal/journal.ts";
import type { Extent, Partition } from "../partition/partition.ts";
import type { ProducerSnapshot } from "../partition/producers.ts";
import type { EpochStart, TopicConfig } from "../types.ts";
import type { Topic } from "./catalogue.ts";

/** A topic in the manifest. */
export interface TopicDocument {
  kind: "topic";
  id: string;
  name: string;
  config: TopicConfig;
  uids: number[];
}

/** A partition in the manifest; extents and epochs are tuples to save space. */
export interface PartitionDocument {
  kind: "partition";
  uid: number;
  logStart: number;
  flushedEnd: number;
  cleanedEnd: number;
  epochs: [number, number][];
  extents: ExtentTuple[];
  producers?: ProducerSnapshot[];
}

/** A checkpoint: the first journal position still needed, and files that may be removed. */
export interface CheckpointDocument {
  kind: "checkpoint";
  /** Number of checkpoints over all files; 0 in files of version 1. */
  generation?: number;
  journal: JournalPlace;
  leaderEpoch: number;
  nextUid: number;
  sharedNumber: number;
  garbage: string[];
}

/** All documents of the manifest. */
export type ManifestDocument =
  | TopicDocument
  | { kind: "topic-removed"; id: string }
  | PartitionDocument
  | CheckpointDocument;

/** shared 0/1, file, generation, position, length, base offset, next offset, max time. */
type ExtentTuple = [number, number, number, number, number, number, number, number];

export function topicDocument(topic: Topic): TopicDocument {
  return {
    kind: "topic",
    id: topic.id.toString("hex"),
    name: topic.name,
    config: topic.config,
    uids: topic.partitions.map((partition) => partition.uid),
  };
}

/** Describes the part of a partition that is in segments. */
export function partitionDocument(partition: Partition): PartitionDocument {
  const document: PartitionDocument = {
    kind: "partition",
    uid: partition.uid,
    logStart: partition.logStart,
    flushedEnd: partition.flushedEnd,
    cleanedEnd: partition.cleanedEnd,
    epochs: partition.epochs.map(({ epoch, startOffset }) => [epoch, startOffset]),
    extents: partition.extents.map((extent) => [
      extent.shared ? 1 : 0,
      extent.file,
      extent.generation,
      extent.position,
      extent.length,
      extent.baseOffset,
      extent.nextOffset,
      extent.maxTimestamp,
    ]),
  };
  const producers = partition.producers?.snapshot() ?? [];
  if (producers.length > 0) document.producers = producers;
  return document;
}

/** The extents of a partition document. */
export function extentsOf(document: PartitionDocument): Extent[] {
  return document.extents.map(
    ([shared, file, generation, position, length, baseOffset, nextOffset, maxTimestamp]) => ({
      shared: shared === 1,
      file,
      generation,
      position,
      length,
      baseOffset,
      nextOffset,
      maxTimestamp,
    }),
  );
}

/** The epochs of a partition document. */
export function epochsOf(document: PartitionDocument): EpochStart[] {
  return document.epochs.map(([epoch, startOffset]) => ({ epoch, startOffset }));
}
