// The log as its users have it: topics, append, read, housekeeping, close.
import { checkConfig, type Catalogue, type Topic } from "../catalogue/catalogue.ts";
import type { Manifest } from "../catalogue/manifest.ts";
import type { Partition } from "../partition/partition.ts";
import type { Clock, Disk } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import type { Journal } from "../journal/journal.ts";
import { DamageRegistry } from "../damage/damage-registry.ts";
import { Reader } from "../segment/read.ts";
import type { Segments } from "../segment/segments.ts";
import {
  topicConfigDefault,
  type AppendBatch,
  type AppendResult,
  type Damage,
  type LogEvent,
  type LogStats,
  type PartitionView,
  type ReadResult,
  type RecoveryReport,
  type TopicConfig,
  type TopicView,
} from "../types.ts";
import type { Checkpointer } from "../upkeep/checkpoint.ts";
import { CheckpointSchedule } from "../upkeep/checkpoint-schedule.ts";
import type { Committer } from "../commit/committer.ts";
import { compactPartition, type CompactionResult } from "../upkeep/compaction.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import type { Limits } from "./limits.ts";
import type { QuarantineStore } from "../damage/quarantine.ts";
import { applyRetention } from "../upkeep/retention.ts";
import { setDamageAside } from "../damage/set-damage-aside.ts";

/** Longest topic name, in bytes of UTF-8; Kafka's own limit is 249. */
const nameBytesMax = 1024;
/** Partitions that one topic may have. */
const topicPartitionsMax = 10_000;

/** What a log is made of. */
export type LogParts = {
  disk: Disk;
  clock: Clock;
  randomId: () => Buffer;
  limits: Limits;
  onEvent: (event: LogEvent) => void;
  catalogue: Catalogue;
  journal: Journal;
  segments: Segments;
  space: FreeSpace;
  manifest: Manifest;
  committer: Committer;
  checkpointer: Checkpointer;
  quarantine: QuarantineStore;
  unlock: () => Promise<void>;
};

/** Called after each durable group with the partitions that have something new to read. */
export type DurableListener = (partitions: ReadonlySet<PartitionView>) => void;

/**
 * A durable log of many topics. One process has it open at a time. Appends become visible to
 * readers, and are acknowledged, when they are durable (see `SyncMode`); then listeners are called.
 */
export class Log {
  /** What opening found. */
  readonly recovery: RecoveryReport;
  readonly #parts: LogParts;
  readonly #listeners: Set<DurableListener>;
  readonly #damages = new DamageRegistry();
  readonly #reader: Reader;
  readonly #creating = new Map<string, Promise<TopicView>>();
  readonly #schedule: CheckpointSchedule;
  #compacting: Promise<unknown> = Promise.resolve();
  #closed: Promise<void> | undefined;

  /** See `openLog`. */
  constructor(parts: LogParts, listeners: Set<DurableListener>, recovery: RecoveryReport) {
    this.#parts = parts;
    this.recovery = recovery;
    this.#listeners = listeners;
    this.#reader = new Reader({
      segments: parts.segments,
      damages: this.#damages,
      onDamage: (partition, damage) => {
        const skip = () => this.deleteRecords(partition, damage.resumeOffset);
        void setDamageAside(parts, partition, damage, skip);
      },
    });
    this.#schedule = new CheckpointSchedule(parts);
    listeners.add(() => this.#schedule.consider());
    this.#schedule.consider();
  }

  /** All topics, in the order of their creation. */
  topics(): IterableIterator<TopicView> {
    return this.#parts.catalogue.byName.values();
  }

  topic(name: string): TopicView | undefined {
    return this.#parts.catalogue.byName.get(name);
  }

  /** A topic by its id in hex. */
  topicById(id: string): TopicView | undefined {
    return this.#parts.catalogue.topicById(id);
  }

  /**
   * Creates a topic durably. Two calls at once for one name share the first one's outcome if
   * `orGet` is set; otherwise an existing name is `topic-exists`.
   */
  async createTopic(
    name: string,
    options: { partitions?: number; config?: Partial<TopicConfig>; orGet?: boolean } = {},
  ): Promise<TopicView> {
    const known = this.topic(name) ?? this.#creating.get(name);
    if (known !== undefined) {
      if (options.orGet === true) return known;
      throw new LogError("topic-exists", `topic ${name} exists`);
    }
    const creating = this.#create(name, options.partitions ?? 1, options.config ?? {});
    this.#creating.set(name, creating);
    try {
      return await creating;
    } finally {
      this.#creating.delete(name);
    }
  }

  /** Deletes a topic durably; its files go with the next checkpoint, which a full disk starts immediately. */
  async deleteTopic(topic: TopicView): Promise<void> {
    this.#own(topic);
    await this.#parts.committer.change([{ kind: "delete-topic", id: topic.id.toString("hex") }]);
    if (this.#parts.space.isFull) this.#freeFiles().catch(() => undefined);
  }

  /** Adds partitions; a topic never loses any. */
  async addPartitions(topic: TopicView, count: number): Promise<void> {
    const own = this.#own(topic);
    const total = own.partitions.length + count;
    if (!Number.isSafeInteger(count) || count < 1 || total > topicPartitionsMax) {
      throw new LogError("invalid-argument", `a topic has 1 to ${topicPartitionsMax} partitions`);
    }
    this.#parts.space.requireRoom();
    const id = topic.id.toString("hex");
    const firstIndex = own.partitions.length;
    const firstUid = this.#takeUids(count);
    const operation = { kind: "add-partitions", id, firstUid, firstIndex, count } as const;
    await this.#parts.committer.change([operation]);
    if (own.partitions[firstIndex]?.uid === firstUid) return;
    throw new LogError("invalid-argument", "another change of the partitions came first");
  }

  /** Changes settings of a topic; what is not named stays. */
  async configureTopic(topic: TopicView, changes: Partial<TopicConfig>): Promise<void> {
    const config = { ...this.#own(topic).config, ...changes };
    checkConfig(config);
    const id = topic.id.toString("hex");
    await this.#parts.committer.change([{ kind: "configure-topic", id, config }]);
  }

  /**
   * Appends batches, to any number of partitions, as one atomic entry: after a crash all of them
   * are there or none. Resolves when durable. Offsets are given at once, in the order of calls.
   * With `mayUseReserve` most of the reserve of a full disk may be used: for records that let readers move on.
   * Rejects with `overloaded` above the bound of waiting bytes (see `whenRoom`), `disk-full`,
   * `disk-failed`, `invalid-batch`, `too-large`, `unknown-topic`, and the producer codes.
   */
  append(
    batches: readonly AppendBatch[],
    options: { mayUseReserve?: boolean } = {},
  ): Promise<AppendResult[]> {
    return this.#parts.committer.append(batches, options);
  }

  /** Resolves when the disk has caught up to less than half of the bytes that may wait. */
  whenRoom(): Promise<void> {
    return this.#parts.committer.whenRoom();
  }

  /** Makes everything below `before` unreadable, durably; -1 means all. Returns the log start. */
  async deleteRecords(partition: PartitionView, before: number): Promise<number> {
    const own = this.#ownPartition(partition);
    const logStart = before === -1 ? own.durableEnd : before;
    if (!Number.isSafeInteger(logStart) || logStart < 0 || logStart > own.durableEnd) {
      throw new LogError("offset-out-of-range", `cannot delete up to offset ${before}`);
    }
    await this.#parts.committer.change([{ kind: "trim", uid: own.uid, logStart }]);
    this.#retain(own);
    return own.logStart;
  }

  /**
   * Reads whole batches from the one that holds `offset` on: at most `bytesMax` bytes, but always
   * one batch if there is any. An offset at the durable end gives nothing.
   * Rejects with `offset-out-of-range`, `unknown-topic`, `corrupt`: a `DamagedError` says where reading can resume.
   */
  read(partition: PartitionView, offset: number, bytesMax: number): Promise<ReadResult> {
    return this.#reader.read(partition as Partition, offset, bytesMax);
  }

  /** Damaged ranges that reading has found since the start, a thousand at most. */
  damages(): Damage[] {
    return this.#damages.all;
  }

  /** The first record at or after a time (epoch milliseconds); undefined if all are older. */
  findTimestamp(partition: PartitionView, timestamp: number) {
    return this.#reader.findTimestamp(partition as Partition, timestamp);
  }

  /** Calls `listener` after each group that became durable; the returned function ends that. */
  watch(listener: DurableListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Writes down where everything is, so that a restart has little to do. Shares one under way. */
  checkpoint(): Promise<void> {
    return this.#schedule.run();
  }

  /** Applies the topics' retention once; returns the bytes dropped. */
  applyRetention(): number {
    let dropped = 0;
    const { producerExpiryMs } = this.#parts.limits;
    const expired = this.#parts.clock.now() - producerExpiryMs;
    for (const partition of this.#parts.catalogue.partitions()) {
      dropped += this.#retain(partition);
      partition.producers?.expire(expired);
    }
    return dropped;
  }

  /** Throws `disk-full` if appends are refused because less than the reserve is free on the disk. */
  requireRoom(): void {
    this.#parts.space.requireRoom();
  }

  /** If the disk is full: applies retention and deletes the files of what was dropped. */
  async reclaimSpace(): Promise<void> {
    if (!this.#parts.space.isFull) return;
    this.applyRetention();
    await this.#freeFiles();
  }

  /**
   * Compacts a partition of a `compact` topic, one pass; nothing at or above `before` is looked at.
   * What is in memory only is moved to a segment first.
   */
  async compact(partition: PartitionView, before?: number): Promise<CompactionResult> {
    const own = this.#ownPartition(partition);
    // One at a time: each may hold a whole key map, and two on one partition would collide.
    const run = this.#compacting.then(() => this.#compact(own, before));
    this.#compacting = run.catch(() => undefined);
    return run;
  }

  /** Bytes of a `compact` partition that no compaction has looked at yet. */
  uncleanBytes(partition: PartitionView): number {
    const own = this.#ownPartition(partition);
    let bytes = own.tailBytes;
    for (const extent of own.extents) {
      if (extent.nextOffset > own.cleanedEnd) bytes += extent.length;
    }
    return bytes;
  }

  stats(): LogStats {
    const { catalogue, committer, journal, segments, quarantine, space } = this.#parts;
    const refusal = committer.refusal?.code;
    return {
      topics: catalogue.topicCount,
      partitions: catalogue.partitionCount,
      entries: committer.entries,
      groups: committer.groups,
      appendedBytes: committer.appendedBytes,
      pendingBytes: committer.pendingBytes,
      tailBytes: committer.tailBytes,
      journalBytes: journal.bytes,
      openFiles: segments.files.count,
      diskFreeBytes: space.freeBytes,
      diskReserveBytes: space.reserveBytes,
      diskFull: space.isFull,
      damageFound:
        this.recovery.quarantined.length + this.recovery.healed.length + this.#damages.found,
      damagedRanges: this.#damages.all.length,
      quarantineFiles: quarantine.size.files,
      quarantineBytes: quarantine.size.bytes,
      state: refusal === undefined ? "open" : refusal === "closed" ? "closed" : "read-only",
    };
  }

  /** Finishes what waits, writes a checkpoint if the disk allows, and lets the folder go. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #create(
    name: string,
    partitions: number,
    changes: Partial<TopicConfig>,
  ): Promise<TopicView> {
    const { catalogue, limits, committer, randomId } = this.#parts;
    if (name === "" || Buffer.byteLength(name) > nameBytesMax) {
      throw new LogError("invalid-argument", `a topic name has 1 to ${nameBytesMax} bytes`);
    }
    if (!Number.isSafeInteger(partitions) || partitions < 1 || partitions > topicPartitionsMax) {
      throw new LogError("invalid-argument", `a topic has 1 to ${topicPartitionsMax} partitions`);
    }
    const config = { ...topicConfigDefault, ...changes };
    checkConfig(config);
    if (catalogue.topicCount + this.#creating.size >= limits.topicsMax) {
      throw new LogError("overloaded", `more than ${limits.topicsMax} topics`);
    }
    this.#parts.space.requireRoom();
    const id = randomId().toString("hex");
    const firstUid = this.#takeUids(partitions);
    const operation = { kind: "create-topic", id, name, firstUid, partitions, config } as const;
    await committer.change([operation]);
    const topic = catalogue.topicById(id);
    if (topic === undefined) throw new LogError("unknown-topic", `${name} was deleted at once`);
    return topic;
  }

  async #freeFiles(): Promise<void> {
    const { checkpointer, space } = this.#parts;
    while (checkpointer.hasGarbage && !this.#schedule.isStopped) {
      await this.checkpoint();
      await space.refresh();
    }
  }

  #takeUids(count: number): number {
    const { catalogue, limits } = this.#parts;
    if (catalogue.partitionCount + count > limits.partitionsMax) {
      throw new LogError("overloaded", `more than ${limits.partitionsMax} partitions`);
    }
    const first = catalogue.nextUid;
    catalogue.nextUid += count;
    return first;
  }

  #own(topic: TopicView): Topic {
    if (topic.live) return topic as Topic;
    throw new LogError("unknown-topic", `no topic ${topic.name}`);
  }

  #ownPartition(partition: PartitionView): Partition {
    if (partition.live) return partition as Partition;
    throw new LogError("unknown-topic", `no topic ${partition.topic.name}`);
  }

  async #compact(own: Partition, before: number | undefined): Promise<CompactionResult> {
    if (own.tail.length > 0) await this.checkpoint();
    const { disk, segments, committer, checkpointer, limits, clock, onEvent } = this.#parts;
    const result = await compactPartition(
      { disk, segments, committer, checkpointer, keysMax: limits.compactionKeysMax },
      own,
      clock.now(),
      before ?? own.durableEnd,
    );
    onEvent({
      kind: "compacted",
      topic: own.topic.name,
      partition: own.index,
      before: result.bytesBefore,
      after: result.bytesAfter,
    });
    return result;
  }

  #retain(partition: Partition): number {
    const { clock, committer, checkpointer } = this.#parts;
    this.#damages.forgetBelow(partition, partition.logStart);
    return applyRetention(partition, clock.now(), committer, checkpointer);
  }

  async #close(): Promise<void> {
    const { committer, checkpointer, journal, manifest, segments, unlock } = this.#parts;
    this.#schedule.stop();
    await committer.stop();
    try {
      await this.#compacting;
      await this.#schedule.finish();
    } catch {
      // Reported as an event already; the journal has everything.
    }
    await Promise.allSettled([
      checkpointer.close(),
      journal.close(),
      manifest.close(),
      segments.files.close(),
    ]);
    await unlock();
  }
}
