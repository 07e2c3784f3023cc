// Restores the catalogue from the manifest.
import type { Catalogue } from "../catalogue/catalogue.ts";
import {
  epochsOf,
  extentsOf,
  type CheckpointDocument,
  type ManifestDocument,
  type ObjectDocument,
  type PartitionDocument,
  type TopicDocument,
} from "../catalogue/manifest-documents.ts";
import type { Partition } from "../partition/partition.ts";
import { Producers } from "../partition/producers.ts";

/** Builds the catalogue from the manifest's documents; returns the last checkpoint, if there is one. */
export function applyDocuments(
  catalogue: Catalogue,
  documents: readonly ManifestDocument[],
  objects: RestoredObjects,
): CheckpointDocument | undefined {
  let checkpoint: CheckpointDocument | undefined;
  // Later documents replace earlier ones; a partition's may precede its topic's latest one.
  const topics = new Map<string, TopicDocument>();
  const partitions = new Map<number, PartitionDocument>();
  for (const document of documents) {
    switch (document.kind) {
      case "topic":
        topics.set(document.id, document);
        break;
      case "topic-removed":
        topics.delete(document.id);
        break;
      case "partition":
        partitions.set(document.uid, document);
        break;
      case "checkpoint":
        checkpoint = document;
        break;
      case "cold-intent":
      case "cold-removal":
      case "cold-settled":
        applyObject(objects, document);
        break;
    }
  }
  for (const topic of topics.values()) restoreTopic(catalogue, topic, partitions);
  settleObjects(catalogue, objects);
  if (checkpoint !== undefined) {
    catalogue.nextUid = Math.max(catalogue.nextUid, checkpoint.nextUid);
  }
  return checkpoint;
}

/** Names of objects that no extent names. */
export interface RestoredObjects {
  intents: Set<string>;
  removals: Set<string>;
}

function applyObject({ intents, removals }: RestoredObjects, document: ObjectDocument): void {
  intents.delete(document.object);
  removals.delete(document.object);
  if (document.kind === "cold-intent") intents.add(document.object);
  if (document.kind === "cold-removal") removals.add(document.object);
}

// The documents of partitions may be newer than those of intents and older than those of removals.
function settleObjects(catalogue: Catalogue, { intents, removals }: RestoredObjects): void {
  for (const { extents } of catalogue.partitions()) {
    for (const { object } of extents) {
      if (object === undefined) continue;
      intents.delete(object);
      removals.delete(object);
    }
  }
}

function restoreTopic(
  catalogue: Catalogue,
  document: TopicDocument,
  partitions: ReadonlyMap<number, PartitionDocument>,
): void {
  const { id, name, config, uids } = document;
  const topic = catalogue.apply({
    kind: "create-topic",
    id,
    name,
    config,
    firstUid: uids[0] ?? 0,
    partitions: 0,
  })!;
  for (const [index, uid] of uids.entries()) {
    catalogue.apply({
      kind: "add-partitions",
      id,
      firstUid: uid,
      firstIndex: index,
      count: 1,
    });
    const known = partitions.get(uid);
    if (known !== undefined) restorePartition(topic.partitions[index]!, known);
  }
}

function restorePartition(partition: Partition, document: PartitionDocument): void {
  partition.logStart = document.logStart;
  partition.flushedEnd = document.flushedEnd;
  partition.durableEnd = document.flushedEnd;
  partition.cleanedEnd = document.cleanedEnd;
  partition.epochs = epochsOf(document);
  partition.setExtents(extentsOf(partition, document));
  const last = partition.extents.at(-1);
  partition.hasFolder = last?.shared === false;
  // An object is a copy of its whole segment.
  partition.rollNext = last?.object !== undefined;
  if (document.producers !== undefined) partition.producers = Producers.restore(document.producers);
}
