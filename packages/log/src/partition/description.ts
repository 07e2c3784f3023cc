// Describes a partition inside the files that hold its batches, so that the catalogue can be rebuilt from them.
import type { TopicConfig } from "../types.ts";
import type { Partition } from "./partition.ts";

/** A partition and its topic at the time of writing. */
export interface PartitionDescription {
  uid: number;
  index: number;
  logStart: number;
  /** The topic's id in hex. */
  id: string;
  name: string;
  config: TopicConfig;
  /** Number of partitions of the topic. */
  partitions: number;
}

export function describePartition(partition: Partition): PartitionDescription {
  const { uid, index, logStart, topic } = partition;
  const { name, config, partitions } = topic;
  const id = topic.id.toString("hex");
  return { uid, index, logStart, id, name, config, partitions: partitions.length };
}
