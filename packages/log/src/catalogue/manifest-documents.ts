// The documents of the manifest.
import type { JournalPlace } from "../journal/journal.ts";
import type { Extent, Partition } from "../partition/partition.ts";
import type { ProducerSnapshot } from "../partition/producers.ts";
import type { EpochStart, TopicConfig } from "../types.ts";
import type { Topic } from "./catalogue.ts";

/** A topic as the manifest keeps it. */
export type TopicDocument = {
  kind: "topic";
  id: string;
  name: string;
  config: TopicConfig;
  uids: number[];
};

/** A partition as the manifest keeps it; extents and epochs as tuples, as there are many. */
export type PartitionDocument = {
  kind: "partition";
  uid: number;
  logStart: number;
  flushedEnd: number;
  cleanedEnd: number;
  epochs: [number, number][];
  extents: ExtentTuple[];
  producers?: ProducerSnapshot[];
};

/** A checkpoint: from where on the journal has to be read, and files that may go. */
export type CheckpointDocument = {
  kind: "checkpoint";
  /** Counts checkpoints over all files; 0 in files of version 1. */
  generation?: number;
  journal: JournalPlace;
  leaderEpoch: number;
  nextUid: number;
  sharedNumber: number;
  garbage: string[];
};

/** Everything that a manifest can say. */
export type ManifestDocument =
  | TopicDocument
  | { kind: "topic-removed"; id: string }
  | PartitionDocument
  | CheckpointDocument;

/** shared 0/1, file, generation, position, length, base offset, next offset, max time. */
type ExtentTuple = [number, number, number, number, number, number, number, number];

/** Describes a topic. */
export function topicDocument(topic: Topic): TopicDocument {
  return {
    kind: "topic",
    id: topic.id.toString("hex"),
    name: topic.name,
    config: topic.config,
    uids: topic.partitions.map((partition) => partition.uid),
  };
}

/** Describes a partition as far as it is in segments. */
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
