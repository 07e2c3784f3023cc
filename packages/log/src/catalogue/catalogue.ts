// Topics and partitions by name, id and uid, and the operations that change them.
import { LogError } from "../errors.ts";
import type { CatalogueOperation } from "../journal/entry.ts";
import { TOPIC_CONFIG_DEFAULT, type TopicConfig, type TopicView } from "../types.ts";
import { Partition } from "../partition/partition.ts";

/** Longest topic name in bytes of UTF-8; Kafka's own limit is 249. */
const NAME_BYTES_MAX = 1024;
/** Maximum number of partitions of a topic. */
const TOPIC_PARTITIONS_MAX = 10_000;

/** A topic. Only the log modifies it; users see `TopicView`. */
export class Topic implements TopicView {
  readonly id: Buffer;
  readonly name: string;
  config: TopicConfig;
  readonly partitions: Partition[] = [];
  live = true;

  constructor(id: Buffer, name: string, config: TopicConfig) {
    this.id = id;
    this.name = name;
    this.config = config;
  }
}

/** All topics. Every change goes through `apply`, at run time and during recovery. */
export class Catalogue {
  readonly byName = new Map<string, Topic>();
  readonly #byId = new Map<string, Topic>();
  readonly #byUid = new Map<number, Partition>();
  /** The next unused partition uid. */
  nextUid = 1;

  get topicCount(): number {
    return this.byName.size;
  }

  get partitionCount(): number {
    return this.#byUid.size;
  }

  topicById(id: string): Topic | undefined {
    return this.#byId.get(id);
  }

  partition(uid: number): Partition | undefined {
    return this.#byUid.get(uid);
  }

  partitions(): IterableIterator<Partition> {
    return this.#byUid.values();
  }

  /** Applies a durable change and returns its topic. Applying a change twice has no effect. */
  apply(operation: CatalogueOperation): Topic | undefined {
    const known = this.#byId.get(operation.id);
    switch (operation.kind) {
      case "create-topic": {
        this.nextUid = Math.max(this.nextUid, operation.firstUid + operation.partitions);
        if (known !== undefined) return known;
        const topic = new Topic(
          Buffer.from(operation.id, "hex"),
          operation.name,
          complete(operation.config),
        );
        this.#byId.set(operation.id, topic);
        this.byName.set(operation.name, topic);
        this.#addPartitions(topic, operation.firstUid, 0, operation.partitions);
        return topic;
      }
      case "delete-topic":
        if (known !== undefined) this.#remove(operation.id, known);
        break;
      case "configure-topic":
        if (known !== undefined) known.config = complete(operation.config);
        break;
      case "add-partitions": {
        const { firstUid, firstIndex, count } = operation;
        this.nextUid = Math.max(this.nextUid, firstUid + count);
        if (known?.partitions.length === firstIndex) {
          this.#addPartitions(known, firstUid, firstIndex, count);
        }
        break;
      }
    }
    return known;
  }

  #addPartitions(topic: Topic, firstUid: number, firstIndex: number, count: number): void {
    for (let added = 0; added < count; added++) {
      const partition = new Partition(topic, firstUid + added, firstIndex + added);
      topic.partitions.push(partition);
      this.#byUid.set(partition.uid, partition);
    }
  }

  #remove(id: string, topic: Topic): void {
    this.#byId.delete(id);
    // During a replay a later topic may already have taken the name.
    if (this.byName.get(topic.name) === topic) this.byName.delete(topic.name);
    topic.live = false;
    for (const partition of topic.partitions) {
      partition.live = false;
      this.#byUid.delete(partition.uid);
    }
  }
}

/** Validates the name of a new topic. Throws `invalid-argument`. */
export function checkTopicName(name: string): void {
  if (name !== "" && Buffer.byteLength(name) <= NAME_BYTES_MAX) return;
  throw new LogError("invalid-argument", `a topic name has 1 to ${NAME_BYTES_MAX} bytes`);
}

/** Validates a number of partitions to add, and the total of the topic. Throws `invalid-argument`. */
export function checkPartitionCount(count: number, total: number): void {
  if (Number.isSafeInteger(count) && count >= 1 && total <= TOPIC_PARTITIONS_MAX) return;
  throw new LogError("invalid-argument", `a topic has 1 to ${TOPIC_PARTITIONS_MAX} partitions`);
}

/** Validates topic settings. Throws `invalid-argument`. */
export function checkConfig(config: TopicConfig): void {
  const policies: readonly string[] = ["delete", "compact", "compact,delete"];
  if (!policies.includes(config.cleanupPolicy))
    throw invalid("cleanupPolicy", config.cleanupPolicy);
  for (const key of ["retentionMs", "retentionBytes"] as const) {
    if (!Number.isSafeInteger(config[key]) || config[key] < -1) throw invalid(key, config[key]);
  }
  for (const key of ["localRetentionMs", "localRetentionBytes"] as const) {
    if (!Number.isSafeInteger(config[key]) || config[key] < -2) throw invalid(key, config[key]);
  }
  for (const key of ["offload", "keyIndex"] as const) {
    if (typeof config[key] !== "boolean") throw invalid(key, config[key]);
  }
  if (config.offload && config.cleanupPolicy !== "delete") {
    throw new LogError("invalid-argument", "compacted topics cannot be offloaded");
  }
  if (!Number.isSafeInteger(config.segmentBytes) || config.segmentBytes < 1024) {
    throw invalid("segmentBytes", config.segmentBytes);
  }
  if (!Number.isSafeInteger(config.deleteRetentionMs) || config.deleteRetentionMs < 0) {
    throw invalid("deleteRetentionMs", config.deleteRetentionMs);
  }
}

// Settings that were stored by an earlier version lack the newer ones.
function complete(config: TopicConfig): TopicConfig {
  return { ...TOPIC_CONFIG_DEFAULT, ...config };
}

function invalid(key: string, value: unknown): LogError {
  return new LogError("invalid-argument", `topic setting ${key} cannot be ${String(value)}`);
}
