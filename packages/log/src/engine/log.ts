// The log: topics, append, read, retention, close.
import {
  checkConfig,
  checkPartitionCount,
  checkTopicName,
  type Topic,
} from "../catalogue/catalogue.ts";
import { extentEnd, extentPath, type Partition } from "../partition/partition.ts";
import { LogError } from "../errors.ts";
import { DamageRegistry } from "../damage/damage-registry.ts";
import { Reader } from "../segment/read.ts";
import {
  TOPIC_CONFIG_DEFAULT,
  type AppendBatch,
  type AppendResult,
  type ColdOptions,
  type Damage,
  type LogSnapshot,
  type LogStats,
  type OffloadStatus,
  type PartitionView,
  type ReadOptions,
  type ReadResult,
  type RecoveryReport,
  type TopicConfig,
  type TopicView,
} from "../types.ts";
import type { ColdStoreError } from "../cold-store.ts";
import { readLogId, writeLogId } from "../catalogue/log-id.ts";
import { KeyIndex, type KeyPlace } from "../segment/key-index.ts";
import { KeyIndexer } from "../upkeep/key-indexer.ts";
import { Offloader } from "../upkeep/offload.ts";
import { CheckpointSchedule } from "../upkeep/checkpoint-schedule.ts";
import { compactPartition, type CompactionResult } from "../upkeep/compaction.ts";
import type { DurableListener, LogParts } from "./log-parts.ts";
import { takeSnapshot } from "./snapshot.ts";
import { applyRetention } from "../upkeep/retention.ts";
import { setDamageAside } from "../damage/set-damage-aside.ts";

/**
 * A durable log of many topics, opened by one process at a time. Appends are acknowledged and become visible to readers
 * when they are durable (see `SyncMode`); then listeners are called.
 */
export class Log {
  /** Report of `openLog`. */
  readonly recovery: RecoveryReport;
  readonly #parts: LogParts;
  readonly #listeners: Set<DurableListener>;
  readonly #damages = new DamageRegistry();
  readonly #reader: Reader;
  readonly #creating = new Map<string, Promise<TopicView>>();
  readonly #schedule: CheckpointSchedule;
  readonly #offloader: Offloader;
  readonly #keyIndex: KeyIndex;
  readonly #keyIndexer: KeyIndexer;
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
      onDamagedCopy: (partition, extent, reason) => {
        parts.checkpointer.discardCopy(partition, extent);
        const file = extentPath(partition, extent);
        const { position, length } = extent;
        parts.onEvent({ kind: "healed", report: { file, position, length, reason } });
      },
    });
    this.#schedule = new CheckpointSchedule(parts);
    this.#keyIndex = new KeyIndex(parts.disk, parts.segments);
    this.#keyIndexer = new KeyIndexer({ ...parts, keyIndex: this.#keyIndex });
    this.#offloader = new Offloader({
      ...parts,
      keyIndex: this.#keyIndex,
      checkpoint: () => this.#schedule.run(),
      noteDirty: (partition) => parts.committer.dirty.add(partition),
    });
    listeners.add(() => this.#schedule.consider());
    this.#schedule.consider();
  }

  /** All topics in the order of their creation. */
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
   * Creates a topic durably. With `orGet`, an existing topic is returned and concurrent calls share one result;
   * otherwise an existing name is `topic-exists`.
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

  /** Deletes a topic durably. Its files are removed by the next checkpoint, which a full disk starts immediately. */
  async deleteTopic(topic: TopicView): Promise<void> {
    this.#own(topic);
    await this.#parts.committer.change([{ kind: "delete-topic", id: topic.id.toString("hex") }]);
    if (this.#parts.space.isFull) this.#freeFiles().catch(() => undefined);
  }

  /** Adds partitions; they cannot be removed. */
  async addPartitions(topic: TopicView, count: number): Promise<void> {
    const own = this.#own(topic);
    const total = own.partitions.length + count;
    checkPartitionCount(count, total);
    this.#parts.space.requireRoom();
    const id = topic.id.toString("hex");
    const firstIndex = own.partitions.length;
    const firstUid = this.#takeUids(count);
    const operation = { kind: "add-partitions", id, firstUid, firstIndex, count } as const;
    await this.#parts.committer.change([operation]);
    if (own.partitions[firstIndex]?.uid === firstUid) return;
    throw new LogError("invalid-argument", "the partitions were changed concurrently");
  }

  /** Changes the given settings of a topic. */
  async configureTopic(topic: TopicView, changes: Partial<TopicConfig>): Promise<void> {
    const own = this.#own(topic);
    const config = { ...own.config, ...changes };
    checkConfig(config);
    if (config.cleanupPolicy !== "delete" && hasObjects(own)) {
      const text = "segments of this topic are in the object store; it cannot be compacted";
      throw new LogError("invalid-argument", text);
    }
    const id = topic.id.toString("hex");
    await this.#parts.committer.change([{ kind: "configure-topic", id, config }]);
  }

  /**
   * Appends batches to any partitions as one atomic entry: after a crash either all of them exist or none. Resolves when
   * durable. Offsets are assigned synchronously. `mayUseReserve` allows most of the reserve of a full disk, for records
   * that let readers make progress.
   * Rejects with `overloaded` above the bound of pending bytes (see `whenRoom`), `disk-full`, `disk-failed`,
   * `invalid-batch`, `too-large`, `unknown-topic`, and the producer codes.
   */
  append(
    batches: readonly AppendBatch[],
    options: { mayUseReserve?: boolean } = {},
  ): Promise<AppendResult[]> {
    return this.#parts.committer.append(batches, options);
  }

  /** Resolves when at most half of the allowed pending bytes are waiting. */
  whenRoom(): Promise<void> {
    return this.#parts.committer.whenRoom();
  }

  /** Deletes all records below `before`, durably; -1 means all. Returns the log start. */
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
   * Reads whole batches from the one that contains `offset` on: at most `bytesMax` bytes, but at least one batch. At the
   * durable end the result is empty. Rejects with `offset-out-of-range`, `unknown-topic`, or `corrupt`, a
   * `DamagedError` with the offset at which reading can resume. A read of the object store ends with the signal's reason
   * once that has fired.
   */
  read(
    partition: PartitionView,
    offset: number,
    bytesMax: number,
    options?: ReadOptions,
  ): Promise<ReadResult> {
    return this.#reader.read(partition as Partition, offset, bytesMax, options);
  }

  /**
   * True if a read at an offset has to ask the object store, or its cache. Such a read waits while the store fails, and
   * rejects with `cold-unavailable` once it has failed for 30 s, or at once without a store.
   */
  isRemote(partition: PartitionView, offset: number): boolean {
    return this.#reader.isRemote(partition as Partition, offset);
  }

  /**
   * The first offset from `offset` on at which a record with this key may be; the durable end, or what is in memory only, if
   * closed segments have none. Segments without filters (see `TopicConfig.keyIndex`) may have every key.
   */
  findKey(partition: PartitionView, key: Buffer, offset: number): Promise<KeyPlace> {
    return this.#keyIndex.find(partition as Partition, key, offset);
  }

  /** Builds the filters of keys of closed segments. To be called every few seconds. */
  indexKeys(): Promise<void> {
    return this.#keyIndexer.run();
  }

  /** Damaged ranges found by reads since startup, at most a thousand. */
  damages(): Damage[] {
    return this.#damages.all;
  }

  /** The first record at or after a time (epoch milliseconds); `undefined` if all are older. */
  findTimestamp(partition: PartitionView, timestamp: number) {
    return this.#reader.findTimestamp(partition as Partition, timestamp);
  }

  /** Calls `listener` after each durable group until the returned function is called. */
  watch(listener: DurableListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Runs a checkpoint that includes everything up to this call, which shortens the next start. */
  checkpoint(): Promise<void> {
    return this.#schedule.run();
  }

  /**
   * Returns the files of this moment, which contain everything that was acknowledged before the call. They can be read
   * while appends, retention, deletion and compaction continue; disk space is freed after `release`. Rejects with
   * `disk-failed` or `closed` if writing has stopped.
   */
  async snapshot(): Promise<LogSnapshot> {
    const { refusal } = this.#parts.committer;
    if (refusal !== undefined) throw refusal;
    const snapshot = await this.#schedule.runAndThen(() => takeSnapshot(this.#parts));
    const release = async () => {
      await snapshot.release();
      this.#schedule.consider();
    };
    return { ...snapshot, release };
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

  /**
   * Sets the object store for closed segments, or none: then their records are unavailable until there is one again. The
   * first store gives the log its id. Nothing is uploaded or removed but by `offload`.
   */
  async setColdStore(cold: ColdOptions | undefined): Promise<void> {
    const { coldReader, ledger } = this.#parts;
    if (cold !== undefined && ledger.logId === undefined) {
      ledger.logId = (await this.#makeId()).toString("hex");
    }
    await coldReader.use(cold);
    this.#offloader.resume();
  }

  /**
   * Uploads closed segments of topics with `offload`, removes objects that nothing refers to, and drops local copies, until
   * nothing is due or the store fails; then calls return immediately for a while. To be called every second.
   */
  offload(): Promise<void> {
    return this.#offloader.run(this.#parts.coldReader.cold);
  }

  /** The state of the offload. Looks at all segments. */
  offloadStatus(): OffloadStatus {
    const { cacheBytes, reads } = this.#parts.coldReader;
    return { ...this.#offloader.status(), cacheBytes, reads: { ...reads } };
  }

  /** True if segments of the topic are in the object store: then it cannot be compacted. */
  hasObjects(topic: TopicView): boolean {
    return hasObjects(this.#own(topic));
  }

  /** Names and sizes of all objects that the log refers to, in the order of topics and offsets. */
  *objects(): Generator<{ object: string; bytes: number }> {
    for (const partition of this.#parts.catalogue.partitions()) {
      for (const extent of partition.extents) {
        if (extent.object === undefined) continue;
        yield { object: extent.object, bytes: extentEnd(extent) };
      }
    }
  }

  /** Counts a failed read of the store. */
  noteReadFailure(error: ColdStoreError): void {
    this.#offloader.noteFailure("read", error);
  }

  /** Throws `disk-full` if appends are refused because less than the reserve is free. */
  requireRoom(): void {
    this.#parts.space.requireRoom();
  }

  /** If the disk is full: applies retention and deletes the dropped files. */
  async reclaimSpace(): Promise<void> {
    if (!this.#parts.space.isFull) return;
    this.applyRetention();
    // Without a store, a local copy is the only one that can be read.
    if (this.#parts.coldReader.cold !== undefined) this.#offloader.dropCopies();
    await this.#parts.coldReader.shrink();
    await this.#freeFiles();
  }

  /**
   * Runs one compaction pass over a partition of a `compact` topic, up to the offset `before`. Records in memory are
   * moved to a segment first.
   */
  async compact(partition: PartitionView, before?: number): Promise<CompactionResult> {
    const own = this.#ownPartition(partition);
    // One at a time: each may hold a whole key map, and two passes over one partition would collide.
    const run = this.#compacting.then(() => this.#compact(own, before));
    this.#compacting = run.catch(() => undefined);
    return run;
  }

  /** Bytes of a `compact` partition that have not been compacted yet. */
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

  /** Finishes pending appends, runs a checkpoint if possible, and unlocks the folder. */
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
    checkTopicName(name);
    checkPartitionCount(partitions, partitions);
    const config = { ...TOPIC_CONFIG_DEFAULT, ...changes };
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
    if (topic === undefined)
      throw new LogError("unknown-topic", `${name} was deleted concurrently`);
    return topic;
  }

  async #makeId(): Promise<Buffer> {
    const { disk, randomId } = this.#parts;
    const found = await readLogId(disk);
    const id = typeof found === "object" ? found.id : randomId();
    await writeLogId(disk, id);
    return id;
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
    if (own.extents.some(({ object }) => object !== undefined)) {
      return { bytesBefore: 0, bytesAfter: 0, more: false };
    }
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
    const { clock, committer, checkpointer, ledger } = this.#parts;
    this.#damages.forgetBelow(partition, partition.logStart);
    return applyRetention(partition, clock.now(), committer, checkpointer, ledger);
  }

  async #close(): Promise<void> {
    const { committer, checkpointer, journal, manifest, segments, coldReader, unlock } =
      this.#parts;
    await coldReader.close();
    await this.#offloader.stop().catch(() => undefined);
    await this.#keyIndexer.stop().catch(() => undefined);
    this.#schedule.stop();
    await committer.stop();
    try {
      await this.#compacting;
      await this.#schedule.finish();
    } catch {
      // Already reported as an event; the journal has everything.
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

function hasObjects({ partitions }: Topic): boolean {
  return partitions.some(({ extents }) => extents.some(({ object }) => object !== undefined));
}
