// What each file says about the partition whose batches it holds, so that a catalogue can be rebuilt.
import type { TopicConfig } from "../types.ts";
import type { Partition } from "./partition.ts";

/** A partition and its topic, as of the moment of writing. */
export type PartitionDescription = {
  uid: number;
  index: number;
  logStart: number;
  /** The topic's id in hex. */
  id: string;
  name: string;
  config: TopicConfig;
  /** Partitions of the topic. */
  partitions: number;
};

/** Describes a partition. */
export function describePartition(partition: Partition): PartitionDescription {
  const { uid, index, logStart, topic } = partition;
  const { name, config, partitions } = topic;
  const id = topic.id.toString("hex");
  return { uid, index, logStart, id, name, config, partitions: partitions.length };
}
