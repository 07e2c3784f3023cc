// The documents of the manifest.
import type { JournalPlace } from "../journal/journal.ts";
import { formatObjectName, parseObjectName } from "../partition/object-name.ts";
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
  /** The id of the log that created the objects of the extents; see `ExtentTuple`. */
  objectsOf?: string;
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

/**
 * An object of the store: about to be uploaded (`cold-intent`), to be removed (`cold-removal`), or neither any more
 * (`cold-settled`). From format version 3 on.
 */
export interface ObjectDocument {
  kind: "cold-intent" | "cold-removal" | "cold-settled";
  object: string;
}

/** All documents of the manifest. */
export type ManifestDocument =
  | TopicDocument
  | ObjectDocument
  | { kind: "topic-removed"; id: string }
  | PartitionDocument
  | CheckpointDocument;

/**
 * shared 0/1, file, generation, position, length, base offset, next offset, max time; from version 3 on the object and
 * whether it is the only copy (0/1), if there is one. The object is the random part of its name if the rest follows from
 * `objectsOf` and the extent, otherwise its whole name.
 */
type ExtentTuple = [
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  number,
  object?: string,
  isRemote?: number,
];

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
  const objectsOf = findCreator(partition);
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
      ...(extent.object === undefined
        ? ([] as const)
        : ([
            shortenObject(partition, extent, objectsOf),
            extent.isRemote === true ? 1 : 0,
          ] as const)),
    ]),
  };
  if (objectsOf !== undefined) document.objectsOf = objectsOf;
  const producers = partition.producers?.snapshot() ?? [];
  if (producers.length > 0) document.producers = producers;
  return document;
}

// Thousands of segments are described with each checkpoint of their partition.
function findCreator({ extents }: Partition): string | undefined {
  const object = extents.find((extent) => extent.object !== undefined)?.object;
  return object === undefined ? undefined : parseObjectName(object)?.log;
}

function shortenObject(partition: Partition, extent: Extent, log: string | undefined): string {
  const object = extent.object!;
  const random = parseObjectName(object)?.random;
  if (log === undefined || random === undefined) return object;
  return expandObject(partition, extent, log, random) === object ? random : object;
}

function expandObject(
  { topic, index }: Pick<Partition, "topic" | "index">,
  { baseOffset, nextOffset }: Extent,
  log: string,
  random: string,
): string {
  const id = topic.id.toString("hex");
  return formatObjectName({ log, topic: id, partition: index, baseOffset, nextOffset, random });
}

/** The extents of a partition document. */
export function extentsOf(partition: Partition, document: PartitionDocument): Extent[] {
  const { objectsOf } = document;
  return document.extents.map(
    ([
      shared,
      file,
      generation,
      position,
      length,
      baseOffset,
      nextOffset,
      maxTimestamp,
      ...copy
    ]) => {
      const extent: Extent = {
        shared: shared === 1,
        file,
        generation,
        position,
        length,
        baseOffset,
        nextOffset,
        maxTimestamp,
      };
      const [object, isRemote] = copy;
      if (object !== undefined) {
        const isShort = !object.includes("/") && objectsOf !== undefined;
        extent.object = isShort ? expandObject(partition, extent, objectsOf, object) : object;
      }
      if (isRemote === 1) extent.isRemote = true;
      return extent;
    },
  );
}

/** The epochs of a partition document. */
export function epochsOf(document: PartitionDocument): EpochStart[] {
  return document.epochs.map(([epoch, startOffset]) => ({ epoch, startOffset }));
}
