// Retained messages: an internal compacted topic with a copy of the last retained message of each topic.
import type { PartitionView } from "@platform/log";
import { decodeBatch, splitBatches, type StoredRecord } from "@platform/log/batch";
import { toMessage, toRecord, type Message } from "../message/message.ts";
import type { Companion, PublishInput } from "../publish/publish-input.ts";
import { readRecords } from "../store/read-records.ts";
import type { Store } from "../store/store.ts";
import { toLevelName } from "../topic/level-name.ts";
import { splitStoredName, toStoredName, type Tenant } from "../topic/name.ts";
import type { Topics } from "../topic/topics.ts";
import { MqttError, REASON } from "./packet/reason-codes.ts";
import { NameTree } from "./topic/level-trees.ts";

const TOPIC_NAME = "__retained";
/** Key of the message, since the record's key is the topic. */
const KEY_HEADER = "platform-retained-key";
/** Minimum of uncompacted bytes that start a compaction; grows with the live data. */
const UNCLEAN_BYTES_MIN = 16 * 1024 * 1024;

/** The retained message of a topic. */
export interface RetainedEntry {
  tenant: Tenant;
  /** The broker's name of the topic. */
  name: string;
  offset: number;
  /** Epoch ms; undefined for no expiry. */
  expiresAt: number | undefined;
}

/** The retained messages of all tenants. Only their positions are in memory. */
export class RetainedMessages {
  readonly #store: Store;
  readonly #topics: Topics;
  readonly #perTenantMax: number;
  readonly partition: PartitionView;
  readonly #byTenant = new Map<Tenant, { tree: NameTree<RetainedEntry>; count: number }>();
  #count = 0;
  #isCompacting = false;

  private constructor(store: Store, topics: Topics, partition: PartitionView, max: number) {
    this.#store = store;
    this.#topics = topics;
    this.partition = partition;
    this.#perTenantMax = max;
  }

  /** Opens the topic and reads the positions of all messages. `perTenantMax`: retained messages of a tenant. */
  static async open(store: Store, topics: Topics, perTenantMax: number): Promise<RetainedMessages> {
    const stored = await store.log.createTopic(TOPIC_NAME, {
      config: { cleanupPolicy: "compact", segmentBytes: 32 * 1024 * 1024, deleteRetentionMs: 0 },
      orGet: true,
    });
    const partition = stored.partitions[0]!;
    const retained = new RetainedMessages(store, topics, partition, perTenantMax);
    for await (const record of readRecords(store, partition, partition.logStart)) {
      retained.#restore(record);
    }
    topics.watch({ deleted: ({ tenant, name }) => retained.#forget(tenant, name) });
    return retained;
  }

  get count(): number {
    return this.#count;
  }

  /**
   * The record that makes a message the retained one of its topic, or removes that of the topic if the payload is empty.
   * Throws 0x97 at the bound of the tenant.
   */
  createCompanion(tenant: Tenant, input: PublishInput, nowMs: number): Companion {
    const { topic, key, headers = [], ttlMs, mqtt, priority = 0 } = input;
    const own = this.#byTenant.get(tenant);
    const isNew = own?.tree.get(toLevels(topic)) === undefined;
    if (isNew && input.payload.length > 0 && (own?.count ?? 0) >= this.#perTenantMax) {
      throw new MqttError(REASON.quotaExceeded, "there are too many retained messages");
    }
    const expiresAt = ttlMs === undefined ? undefined : nowMs + ttlMs;
    const recordKey = Buffer.from(toStoredName(tenant, topic));
    let isRemoval = false;
    return {
      toPending: (payload) => {
        isRemoval = payload.length === 0;
        const all = key === undefined ? headers : [...headers, { key: KEY_HEADER, value: key }];
        const record = toRecord(
          { key: recordKey, payload, headers: all },
          { id: "", priority, expiresAt, retryCount: 0, mqtt },
          nowMs,
        );
        return {
          partition: this.partition,
          record: isRemoval ? { ...record, value: null, headers: [] } : record,
        };
      },
      settle: (offset) => {
        if (isRemoval) this.#remove(tenant, topic);
        else this.#put({ tenant, name: topic, offset, expiresAt });
      },
    };
  }

  /** The retained messages of the topics that match a filter, in order of publication, without expired ones. */
  match(tenant: Tenant, filter: readonly string[], nowMs: number): RetainedEntry[] {
    const found = this.#byTenant.get(tenant)?.tree.match(filter) ?? [];
    const live = found.filter(({ expiresAt }) => expiresAt === undefined || expiresAt > nowMs);
    return live.sort((one, other) => one.offset - other.offset);
  }

  /** Reads a retained message; undefined if it has been replaced or its topic deleted. */
  async read(offset: number): Promise<Message | undefined> {
    if (offset < this.partition.logStart || offset >= this.partition.durableEnd) return undefined;
    const { buffers } = await this.#store.readIntact(this.partition, offset, 1);
    for (const batch of buffers.flatMap((buffer) => [...splitBatches(buffer)])) {
      const { records } = await decodeBatch(batch);
      const record = records.find((other) => other.offset === offset);
      if (record !== undefined) return this.#toMessage(record);
    }
    return undefined;
  }

  /** Removes expired messages and compacts the topic if enough has been written since the last time. */
  async tidy(nowMs: number): Promise<void> {
    for (const [tenant, { tree }] of this.#byTenant) {
      for (const { name, expiresAt } of tree.match(["#"])) {
        if (expiresAt !== undefined && expiresAt <= nowMs) this.#forget(tenant, name);
      }
    }
    const { log } = this.#store;
    const unclean = log.uncleanBytes(this.partition);
    const clean = this.partition.bytes - unclean;
    if (this.#isCompacting || unclean < Math.max(UNCLEAN_BYTES_MIN, clean)) return;
    this.#isCompacting = true;
    try {
      await log.compact(this.partition);
    } finally {
      this.#isCompacting = false;
    }
  }

  #toMessage(record: StoredRecord): Message | undefined {
    if (record.key === null || record.value === null) return undefined;
    const { tenant, name } = splitStoredName(record.key.toString());
    const topic = this.#topics.find(tenant, name);
    if (topic === undefined) return undefined;
    const key = record.headers.find((header) => header.key === KEY_HEADER)?.value ?? null;
    return { ...toMessage(topic, 0, record), key };
  }

  #restore({ key, value, offset, headers }: StoredRecord): void {
    const { tenant, name } = splitStoredName(key!.toString());
    // The deletion of a topic and that of its retained message are not one entry.
    const topic = this.#topics.find(tenant, name);
    if (value === null || topic === undefined) return this.#remove(tenant, name);
    const { expiresAt } = toMessage(topic, 0, { key, value, offset, headers, timestamp: 0 });
    this.#put({ tenant, name, offset, expiresAt });
  }

  #put(entry: RetainedEntry): void {
    let own = this.#byTenant.get(entry.tenant);
    if (own === undefined)
      this.#byTenant.set(entry.tenant, (own = { tree: new NameTree(), count: 0 }));
    const levels = toLevels(entry.name);
    if (own.tree.get(levels) === undefined) {
      own.count++;
      this.#count++;
    }
    own.tree.set(levels, entry);
  }

  #remove(tenant: Tenant, name: string): void {
    const own = this.#byTenant.get(tenant);
    const levels = toLevels(name);
    if (own?.tree.get(levels) === undefined) return;
    own.tree.delete(levels);
    own.count--;
    this.#count--;
    if (own.count === 0) this.#byTenant.delete(tenant);
  }

  #forget(tenant: Tenant, name: string): void {
    if (this.#byTenant.get(tenant)?.tree.get(toLevels(name)) === undefined) return;
    this.#remove(tenant, name);
    const key = Buffer.from(toStoredName(tenant, name));
    const record = { key, value: null, headers: [], timestamp: Date.now() };
    // If this write is lost, the next start drops the message, or it expires again.
    this.#store
      .append([{ partition: this.partition, record, mayUseReserve: true }])
      .catch(() => undefined);
  }
}

function toLevels(name: string): string[] {
  return toLevelName(name).split("/");
}
