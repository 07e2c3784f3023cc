// The topics of all tenants over the log: found by name or id, made, changed and deleted, bounded per tenant.
import { PlatformError } from "@platform/kernel/errors";
import type { Log, PartitionView, TopicConfig, TopicView } from "@platform/log";
import {
  checkTopicName,
  isInternal,
  splitStoredName,
  TOPIC_NAME_BYTES_MAX,
  toStoredName,
  type Tenant,
} from "./name.ts";

/** A topic as faces see it. `stored` is the log's own view: partitions, settings and id are live in it. */
export interface Topic {
  readonly tenant: Tenant;
  /** Without the tenant. */
  readonly name: string;
  readonly stored: TopicView;
}

/** Bounds of what clients may make. */
export interface TopicLimits {
  /** Topics that one tenant may have. */
  topicsPerTenantMax: number;
  /** Partitions that one topic may have. */
  partitionsMax: number;
}

/** What is told to those who keep something about topics. */
export interface TopicListener {
  created?: (topic: Topic) => void;
  /** Called when the deletion is durable. */
  deleted?: (topic: Topic) => void;
}

/**
 * The catalogue of topics. Tenants see their own names alone; what is not theirs is "not found" to them.
 * Errors: `not_found`, `conflict` (it exists), `validation_failed`, `overloaded` (a bound is reached).
 */
export class Topics {
  readonly #log: Log;
  readonly #limits: TopicLimits;
  readonly #byStored = new Map<TopicView, Topic>();
  readonly #byTenant = new Map<Tenant, Map<string, Topic>>();
  readonly #listeners = new Set<TopicListener>();
  /** Partitions that a topic gets which is made in passing. */
  readonly partitionsDefault: number;

  constructor(log: Log, limits: TopicLimits, partitionsDefault = 1) {
    this.#log = log;
    this.#limits = limits;
    this.partitionsDefault = partitionsDefault;
    for (const stored of log.topics()) this.#adopt(stored);
  }

  /** A tenant's topic by name; undefined if there is none (or the name is none). */
  find(tenant: Tenant, name: string): Topic | undefined {
    return this.#byTenant.get(tenant)?.get(name);
  }

  /** As `find`, throwing `not_found`. */
  get(tenant: Tenant, name: string): Topic {
    const topic = this.find(tenant, name);
    if (topic !== undefined) return topic;
    throw new PlatformError("not_found", "There is no such topic.");
  }

  /** A tenant's topic by its sixteen-byte id; undefined also if it is another tenant's. */
  findById(tenant: Tenant, id: Buffer): Topic | undefined {
    const stored = this.#log.topicById(id.toString("hex"));
    const topic = stored === undefined ? undefined : this.#byStored.get(stored);
    return topic?.tenant === tenant ? topic : undefined;
  }

  /** Any tenant's topic by its id in hex; for the broker's own books. */
  findByHexId(id: string): Topic | undefined {
    const stored = this.#log.topicById(id);
    return stored === undefined ? undefined : this.#byStored.get(stored);
  }

  /** The topic that a partition belongs to; undefined for the broker's own. */
  ofPartition(partition: PartitionView): Topic | undefined {
    return this.#byStored.get(partition.topic);
  }

  /** A tenant's topics in the order in which they were made. */
  list(tenant: Tenant): Iterable<Topic> {
    return this.#byTenant.get(tenant)?.values() ?? [];
  }

  /** All topics of all tenants, without the broker's own. */
  all(): Iterable<Topic> {
    return this.#byStored.values();
  }

  get count(): number {
    return this.#byStored.size;
  }

  countOf(tenant: Tenant): number {
    return this.#byTenant.get(tenant)?.size ?? 0;
  }

  /** The topic, made durably if it is not there: how publish, subscribe and Metadata bring topics about. */
  async ensure(tenant: Tenant, name: string): Promise<Topic> {
    const known = this.find(tenant, name);
    if (known !== undefined) return known;
    this.#checkNew(tenant, name, this.partitionsDefault);
    const stored = await this.#log.createTopic(toStoredName(tenant, name), {
      partitions: this.partitionsDefault,
      orGet: true,
    });
    return this.#adopt(stored)!;
  }

  /** Makes a topic durably. */
  async create(
    tenant: Tenant,
    name: string,
    options: { partitions?: number; config?: Partial<TopicConfig> } = {},
  ): Promise<Topic> {
    if (this.find(tenant, name) !== undefined) throw alreadyThere();
    const partitions = options.partitions ?? this.partitionsDefault;
    this.#checkNew(tenant, name, partitions);
    const stored = await this.#log.createTopic(toStoredName(tenant, name), {
      partitions,
      config: options.config ?? {},
    });
    return this.#adopt(stored)!;
  }

  /** Checks whether `create` would do, without doing it. */
  checkCreate(tenant: Tenant, name: string, partitions: number): void {
    if (this.find(tenant, name) !== undefined) throw alreadyThere();
    this.#checkNew(tenant, name, partitions);
  }

  /** Raises the number of partitions to `total`; a topic never loses any. */
  async addPartitions(topic: Topic, total: number): Promise<void> {
    const has = topic.stored.partitions.length;
    if (!Number.isSafeInteger(total) || total <= has || total > this.#limits.partitionsMax) {
      throw new PlatformError(
        "validation_failed",
        `The topic has ${has} partitions; more, up to ${this.#limits.partitionsMax}, can be asked for.`,
      );
    }
    await this.#log.addPartitions(topic.stored, total - has);
  }

  /** Changes settings durably; what is not named stays. */
  configure(topic: Topic, changes: Partial<TopicConfig>): Promise<void> {
    return this.#log.configureTopic(topic.stored, changes);
  }

  /** Deletes a topic durably, with everything in it. */
  async delete(topic: Topic): Promise<void> {
    await this.#log.deleteTopic(topic.stored);
    if (!this.#byStored.delete(topic.stored)) return;
    const own = this.#byTenant.get(topic.tenant);
    own?.delete(topic.name);
    if (own?.size === 0) this.#byTenant.delete(topic.tenant);
    for (const listener of this.#listeners) listener.deleted?.(topic);
  }

  /** Hears of topics that come and go; the returned function ends that. */
  watch(listener: TopicListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #checkNew(tenant: Tenant, name: string, partitions: number): void {
    checkTopicName(name);
    const { topicsPerTenantMax, partitionsMax } = this.#limits;
    if (!Number.isSafeInteger(partitions) || partitions < 1 || partitions > partitionsMax) {
      throw new PlatformError("validation_failed", `A topic has 1 to ${partitionsMax} partitions.`);
    }
    if (this.countOf(tenant) >= topicsPerTenantMax) {
      throw new PlatformError("overloaded", `There are ${topicsPerTenantMax} topics, no more fit.`);
    }
  }

  #adopt(stored: TopicView): Topic | undefined {
    const known = this.#byStored.get(stored);
    if (known !== undefined || isInternal(stored.name)) return known;
    const topic: Topic = { ...splitStoredName(stored.name), stored };
    this.#byStored.set(stored, topic);
    const own = this.#byTenant.get(topic.tenant) ?? new Map<string, Topic>();
    own.set(topic.name, topic);
    this.#byTenant.set(topic.tenant, own);
    for (const listener of this.#listeners) listener.created?.(topic);
    return topic;
  }
}

/** Whether a topic keeps the last message of each key, so that every message needs one. */
export function isCompacted({ stored }: Topic): boolean {
  return stored.config.cleanupPolicy !== "delete";
}

/** The name of a topic's dead letters unless another one was registered. */
export function defaultDeadLetterName(name: string): string {
  const suffix = ".dlq";
  if (Buffer.byteLength(name) + suffix.length <= TOPIC_NAME_BYTES_MAX) return `${name}${suffix}`;
  return `${Buffer.from(name).toString("utf8", 0, 200).replaceAll("\ufffd", "")}${suffix}`;
}

function alreadyThere(): PlatformError {
  return new PlatformError("conflict", "There is a topic of that name.");
}
