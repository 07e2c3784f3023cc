// The topics of all tenants: lookup, creation, changes, deletion, limits per tenant.
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

/** A topic. `stored` is the log's own view with live partitions and settings. */
export interface Topic {
  readonly tenant: Tenant;
  /** Name without the tenant. */
  readonly name: string;
  readonly stored: TopicView;
}

/** Limits for topics that clients create. */
export interface TopicLimits {
  topicsPerTenantMax: number;
  /** Partitions per topic. */
  partitionsMax: number;
}

/** Callbacks for parts that keep state about topics. */
export interface TopicListener {
  created?: (topic: Topic) => void;
  /** Called before partitions are added, from `first` to below `total`; a rejection prevents it. */
  growing?: (topic: Topic, first: number, total: number) => Promise<void>;
  /** Called when added partitions are durable. They may have messages already. */
  grown?: (topic: Topic) => void;
  /** Called once changed settings are durable. */
  configured?: (topic: Topic) => void;
  /** Called once the deletion is durable. */
  deleted?: (topic: Topic) => void;
}

/**
 * The catalogue of topics. Tenants see only their own topics; others are "not found".
 * Errors: `not_found`, `conflict` (the topic exists), `validation_failed`, `overloaded` (a limit is reached).
 */
export class Topics {
  readonly #log: Log;
  readonly #limits: TopicLimits;
  readonly #byStored = new Map<TopicView, Topic>();
  readonly #byTenant = new Map<Tenant, Map<string, Topic>>();
  readonly #listeners = new Set<TopicListener>();
  /** Number of partitions of an automatically created topic. */
  readonly partitionsDefault: number;
  readonly #isOffloaded: boolean;

  /** `defaults`: partitions of a new topic, and whether it has the setting `offload`. */
  constructor(
    log: Log,
    limits: TopicLimits,
    defaults: { partitions: number; isOffloaded: boolean } = { partitions: 1, isOffloaded: false },
  ) {
    this.#log = log;
    this.#limits = limits;
    this.partitionsDefault = defaults.partitions;
    this.#isOffloaded = defaults.isOffloaded;
    for (const stored of log.topics()) this.#adopt(stored);
  }

  /** A tenant's topic by name; `undefined` if it does not exist or the name is invalid. */
  find(tenant: Tenant, name: string): Topic | undefined {
    return this.#byTenant.get(tenant)?.get(name);
  }

  /** Like `find`, but throws `not_found`. */
  get(tenant: Tenant, name: string): Topic {
    const topic = this.find(tenant, name);
    if (topic !== undefined) return topic;
    throw new PlatformError("not_found", "The topic does not exist.");
  }

  /** A tenant's topic by its sixteen-byte id; `undefined` if it belongs to another tenant. */
  findById(tenant: Tenant, id: Buffer): Topic | undefined {
    const stored = this.#log.topicById(id.toString("hex"));
    const topic = stored === undefined ? undefined : this.#byStored.get(stored);
    return topic?.tenant === tenant ? topic : undefined;
  }

  /** A topic of any tenant by its id in hex; for internal use. */
  findByHexId(id: string): Topic | undefined {
    const stored = this.#log.topicById(id);
    return stored === undefined ? undefined : this.#byStored.get(stored);
  }

  /** The topic of a partition; `undefined` for internal topics. */
  ofPartition(partition: PartitionView): Topic | undefined {
    return this.#byStored.get(partition.topic);
  }

  /** A tenant's topics in order of creation. */
  list(tenant: Tenant): Iterable<Topic> {
    return this.#byTenant.get(tenant)?.values() ?? [];
  }

  /** All topics of all tenants, without internal ones. */
  all(): Iterable<Topic> {
    return this.#byStored.values();
  }

  get count(): number {
    return this.#byStored.size;
  }

  countOf(tenant: Tenant): number {
    return this.#byTenant.get(tenant)?.size ?? 0;
  }

  /** Returns the topic, creating it durably if needed. Used by publish, subscribe and Metadata. */
  async ensure(tenant: Tenant, name: string): Promise<Topic> {
    const known = this.find(tenant, name);
    if (known !== undefined) return known;
    this.#checkNew(tenant, name, this.partitionsDefault);
    const stored = await this.#log.createTopic(toStoredName(tenant, name), {
      partitions: this.partitionsDefault,
      config: { offload: this.#isOffloaded },
      orGet: true,
    });
    return this.#adopt(stored)!;
  }

  /** Creates a topic durably. */
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
      config: this.#complete(options.config ?? {}),
    });
    return this.#adopt(stored)!;
  }

  /** Validates a `create` without performing it. */
  checkCreate(tenant: Tenant, name: string, partitions: number): void {
    if (this.find(tenant, name) !== undefined) throw alreadyThere();
    this.#checkNew(tenant, name, partitions);
  }

  /** Raises the number of partitions to `total`; partitions cannot be removed. */
  async addPartitions(topic: Topic, total: number): Promise<void> {
    const has = topic.stored.partitions.length;
    if (!Number.isSafeInteger(total) || total <= has || total > this.#limits.partitionsMax) {
      throw new PlatformError(
        "validation_failed",
        `The topic has ${has} partitions; more, up to ${this.#limits.partitionsMax}, can be asked for.`,
      );
    }
    for (const listener of this.#listeners) await listener.growing?.(topic, has, total);
    if (topic.stored.partitions.length !== has) {
      throw new PlatformError("conflict", "The partitions were changed concurrently.");
    }
    await this.#log.addPartitions(topic.stored, total - has);
    for (const listener of this.#listeners) listener.grown?.(topic);
  }

  /** Changes the given settings durably. `offload_compacted` for a compacted topic with `offload` or remote segments. */
  async configure(topic: Topic, changes: Partial<TopicConfig>): Promise<void> {
    const { config } = topic.stored;
    refuseCompacted({ ...config, ...changes });
    const isCompacted = (changes.cleanupPolicy ?? config.cleanupPolicy) !== "delete";
    if (isCompacted && this.#log.hasObjects(topic.stored)) throw compacted();
    await this.#log.configureTopic(topic.stored, changes);
    for (const listener of this.#listeners) listener.configured?.(topic);
  }

  /** Deletes a topic and its messages durably. */
  async delete(topic: Topic): Promise<void> {
    await this.#log.deleteTopic(topic.stored);
    if (!this.#byStored.delete(topic.stored)) return;
    const own = this.#byTenant.get(topic.tenant);
    own?.delete(topic.name);
    if (own?.size === 0) this.#byTenant.delete(topic.tenant);
    for (const listener of this.#listeners) listener.deleted?.(topic);
  }

  /** Watches creations, changes and deletions until the returned function is called. */
  watch(listener: TopicListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Most partitions of a topic. */
  get partitionsMax(): number {
    return this.#limits.partitionsMax;
  }

  #complete(config: Partial<TopicConfig>): Partial<TopicConfig> {
    const isCompacted = (config.cleanupPolicy ?? "delete") !== "delete";
    const complete = { offload: this.#isOffloaded && !isCompacted, ...config };
    refuseCompacted(complete);
    return complete;
  }

  #checkNew(tenant: Tenant, name: string, partitions: number): void {
    checkTopicName(name);
    const { topicsPerTenantMax, partitionsMax } = this.#limits;
    if (!Number.isSafeInteger(partitions) || partitions < 1 || partitions > partitionsMax) {
      throw new PlatformError("validation_failed", `A topic has 1 to ${partitionsMax} partitions.`);
    }
    if (this.countOf(tenant) >= topicsPerTenantMax) {
      throw new PlatformError(
        "overloaded",
        `The limit of ${topicsPerTenantMax} topics is reached.`,
      );
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

/** True if a topic keeps the last message of each key, so that every message needs a key. */
export function isCompacted({ stored }: Topic): boolean {
  return stored.config.cleanupPolicy !== "delete";
}

/** Default name of a topic's dead letter topic. */
export function defaultDeadLetterName(name: string): string {
  const suffix = ".dlq";
  if (Buffer.byteLength(name) + suffix.length <= TOPIC_NAME_BYTES_MAX) return `${name}${suffix}`;
  return `${Buffer.from(name).toString("utf8", 0, 200).replaceAll("\ufffd", "")}${suffix}`;
}

function alreadyThere(): PlatformError {
  return new PlatformError("conflict", "A topic with this name exists.");
}

function refuseCompacted({ offload, cleanupPolicy = "delete" }: Partial<TopicConfig>): void {
  if (offload === true && cleanupPolicy !== "delete") throw compacted();
}

function compacted(): PlatformError {
  return new PlatformError(
    "offload_compacted",
    "Compacted topics are not offloaded, and topics with offloaded segments cannot be compacted.",
  );
}
