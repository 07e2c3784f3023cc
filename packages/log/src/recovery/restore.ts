// Restores the catalogue from the manifest.
import type { Catalogue } from "../catalogue/catalogue.ts";
import {
  epochsOf,
  extentsOf,
  type CheckpointDocument,
  type ManifestDocument,
  type PartitionDocument,
  type TopicDocument,
} from "../catalogue/manifest-documents.ts";
import type { Partition } from "../partition/partition.ts";
import { Producers } from "../partition/producers.ts";

/** Builds the catalogue from the manifest's documents; returns the last checkpoint, if there is one. */
export function applyDocuments(
  catalogue: Catalogue,
  documents: readonly ManifestDocument[],
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
    }
  }
  for (const topic of topics.values()) restoreTopic(catalogue, topic, partitions);
  if (checkpoint !== undefined) {
    catalogue.nextUid = Math.max(catalogue.nextUid, checkpoint.nextUid);
  }
  return checkpoint;
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
  partition.setExtents(extentsOf(document));
  partition.hasFolder = partition.extents.at(-1)?.shared === false;
  if (document.producers !== undefined) partition.producers = Producers.restore(document.producers);
}
