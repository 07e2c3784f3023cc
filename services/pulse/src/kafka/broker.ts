// The parts of the broker that the Kafka server uses.
import type { PartitionView } from "@platform/log";
import type { TopicRules } from "../access/topic-rules.ts";
import type { Backlog } from "../dispatch/backlog.ts";
import type { GroupCoordinator } from "../consumer-group/index.ts";
import type { BatchProducer } from "../publish/produce.ts";
import type { Offsets } from "../store/offsets.ts";
import type { TopicState } from "./config-entries.ts";
import type { Principal } from "../user/principal.ts";
import type { ByteQuota } from "../tenant/byte-quota.ts";
import type { TopicSettings } from "./topic-settings.ts";
import type { ProducerIds } from "../store/producer-ids.ts";
import type { Store } from "../store/store.ts";
import { explainTopicName, fromKafkaName } from "../topic/name.ts";
import { coversAny, type Right, type Rights } from "../topic/rights.ts";
import type { Topic, Topics } from "../topic/topics.ts";

/** Parts of the broker for handlers of Kafka requests. */
export interface KafkaBroker {
  topics: Topics;
  topicRules: TopicRules;
  store: Store;
  producer: BatchProducer;
  producerIds: ProducerIds;
  offsets: Offsets;
  /** Notified of fetches, which consume messages. */
  backlog: Backlog;
  groups: GroupCoordinator;
  /** Topic settings of Kafka's tools that the log does not keep. */
  settings: TopicSettings;
  /** Identifies this broker and its data; 22 characters, like Kafka's cluster ids. */
  clusterId: string;
  /** True if Metadata may create topics. */
  isAutoCreating: boolean;
  /** Maximum bytes of batches in the answer to a Fetch; always at least one batch. */
  fetchBytesMax: number;
  /** Quotas per tenant for writing and reading. */
  quotas: { produce: ByteQuota; fetch: ByteQuota };
}

/** The id of the only broker. */
export const NODE_ID = 1;
const KAFKA_NAME = /^[a-zA-Z0-9._-]{1,249}$/;

/** A topic by its Kafka name; undefined if there is none, or the client has not the right for it. */
export function findTopic(
  topics: Topics,
  { tenant, rights }: Principal,
  right: Right | "any",
  name: string,
): Topic | undefined {
  if (!KAFKA_NAME.test(name)) return undefined;
  const topic = topics.find(tenant, fromKafkaName(name));
  return topic !== undefined && isCovered(rights, right, topic.name) ? topic : undefined;
}

/** As `findTopic`, by the topic's id. */
export function findTopicById(
  topics: Topics,
  { tenant, rights }: Principal,
  right: Right | "any",
  id: string,
): Topic | undefined {
  const topic = topics.findById(tenant, Buffer.from(id, "hex"));
  return topic !== undefined && isCovered(rights, right, topic.name) ? topic : undefined;
}

/** True if the client has the right for a topic of this Kafka name, whether it exists or not. */
export function mayUse({ rights }: Principal, right: Right | "any", name: string): boolean {
  return !KAFKA_NAME.test(name) || isCovered(rights, right, fromKafkaName(name));
}

function isCovered(rights: Rights, right: Right | "any", topic: string): boolean {
  return right === "any" ? coversAny(rights, topic) : rights.covers(right, topic);
}

/** The broker's name for a Kafka topic name; `undefined` with a reason if it is invalid. */
export function readTopicName(name: string): { name: string } | { reason: string } {
  if (!KAFKA_NAME.test(name)) return { reason: "A topic's name has 1 to 249 of a-z A-Z 0-9 . _ -" };
  const own = fromKafkaName(name);
  const reason = explainTopicName(own);
  return reason === undefined ? { name: own } : { reason };
}

/** The settings of a topic. */
export function stateOf({ settings }: KafkaBroker, topic: Topic): TopicState {
  const { messageBytesMax } = settings.limits;
  return { config: topic.stored.config, extras: settings.of(topic), messageBytesMax };
}

/** The current leader epoch of a partition. */
export function leaderEpochOf(partition: PartitionView): number {
  return partition.epochs.at(-1)?.epoch ?? 0;
}

/** The leader epoch of the record at `offset`. */
export function epochAt(partition: PartitionView, offset: number): number {
  return partition.epochs.findLast(({ startOffset }) => startOffset <= offset)?.epoch ?? 0;
}
