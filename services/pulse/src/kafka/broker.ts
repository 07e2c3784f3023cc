// What the Kafka face asks of the rest of the broker.
import type { PartitionView } from "@platform/log";
import type { Backlog } from "../dispatch/backlog.ts";
import type { GroupCoordinator } from "../consumer-group/index.ts";
import type { BatchProducer } from "../publish/produce.ts";
import type { Offsets } from "../store/offsets.ts";
import type { TopicState } from "./config-entries.ts";
import type { ByteQuota } from "./quota.ts";
import type { TopicSettings } from "./topic-settings.ts";
import type { ProducerIds } from "../store/producer-ids.ts";
import type { Store } from "../store/store.ts";
import { explainTopicName, fromKafkaName, type Tenant } from "../topic/name.ts";
import type { Topic, Topics } from "../topic/topics.ts";

/** The parts of the broker that answer Kafka's requests. */
export interface KafkaBroker {
  topics: Topics;
  store: Store;
  producer: BatchProducer;
  producerIds: ProducerIds;
  offsets: Offsets;
  /** Told what was fetched: that is a taking, as any other. */
  backlog: Backlog;
  groups: GroupCoordinator;
  /** What Kafka's tools have set of topics beside what the log keeps. */
  settings: TopicSettings;
  /** Names this broker and its data; 22 characters, as Kafka's cluster ids. */
  clusterId: string;
  /** Whether Metadata may make topics. */
  isAutoCreating: boolean;
  /** Bytes of batches that one Fetch answers with, at most; always a whole batch. */
  fetchBytesMax: number;
  /** What a tenant may write, and what it may read. */
  quotas: { produce: ByteQuota; fetch: ByteQuota };
}

/** The only broker's id. */
export const NODE_ID = 1;
const KAFKA_NAME = /^[a-zA-Z0-9._-]{1,249}$/;

/** A tenant's topic by the name that Kafka clients use. */
export function findTopic(topics: Topics, tenant: Tenant, name: string): Topic | undefined {
  return KAFKA_NAME.test(name) ? topics.find(tenant, fromKafkaName(name)) : undefined;
}

/** The broker's name of a topic that a Kafka client names; undefined with a reason if it cannot be one. */
export function readTopicName(name: string): { name: string } | { reason: string } {
  if (!KAFKA_NAME.test(name)) return { reason: "A topic's name has 1 to 249 of a-z A-Z 0-9 . _ -" };
  const own = fromKafkaName(name);
  const reason = explainTopicName(own);
  return reason === undefined ? { name: own } : { reason };
}

/** What a topic is set to. */
export function stateOf({ settings }: KafkaBroker, topic: Topic): TopicState {
  const { batchBytesMax } = settings;
  return { config: topic.stored.config, extras: settings.of(topic), batchBytesMax };
}

/** The epoch under which a partition is written now. */
export function leaderEpochOf(partition: PartitionView): number {
  return partition.epochs.at(-1)?.epoch ?? 0;
}

/** The epoch under which the record at `offset` was written. */
export function epochAt(partition: PartitionView, offset: number): number {
  return partition.epochs.findLast(({ startOffset }) => startOffset <= offset)?.epoch ?? 0;
}
