// The log as its users have it: open, topics, append, read, housekeeping, close.
import { randomBytes } from "node:crypto";
import { checkConfig, type Catalogue, type Topic } from "../catalogue/catalogue.ts";
import { Manifest, prepareManifest, type CheckpointDocument } from "../catalogue/manifest.ts";
import type { Partition } from "../catalogue/partition.ts";
import { systemClock } from "../disk/node-disk.ts";
import type { Clock, Disk } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { fileHeaderBytes } from "../frame/frame.ts";
import { Journal, journalFolder } from "../journal/journal.ts";
import { findTimestamp, readBatches, ReadPlaces } from "../segment/read.ts";
import { Segments } from "../segment/segments.ts";
import {
  topicConfigDefault,
  type AppendBatch,
  type AppendResult,
  type LogEvent,
  type LogOptions,
  type LogStats,
  type PartitionView,
  type ReadResult,
  type RecoveryReport,
  type TopicConfig,
  type TopicView,
} from "../types.ts";
import { Checkpointer } from "./checkpoint.ts";
import { Committer, isDiskFull } from "./commit.ts";
import { compactPartition, type CompactionResult } from "./compaction.ts";
import { recover, removeOrphans, type Recovered } from "./recovery.ts";
import { applyRetention } from "./retention.ts";

const mebibyte = 1024 * 1024;
/** In-place bytes after which a checkpoint saves the indexes, so that a restart scans little. */
const inPlaceCheckpointBytes = 1024 * mebibyte;
/** Longest topic name, in bytes of UTF-8; Kafka's own limit is 249. */
const nameBytesMax = 1024;
/** Partitions that one topic may have. */
const topicPartitionsMax = 10_000;

const limitsDefault = {
  batchBytesMax: 8 * mebibyte,
  pendingBytesMax: 64 * mebibyte,
  groupBytesMax: 8 * mebibyte,
  inPlaceBytesMin: 128 * 1024,
  journalFileBytes: 64 * mebibyte,
  checkpointBytes: 64 * mebibyte,
  checkpointMs: 60_000,
  openFilesMax: 512,
  indexBytesMax: 32 * mebibyte,
  topicsMax: 200_000,
  partitionsMax: 400_000,
  producersMax: 1_000,
  producerExpiryMs: 24 * 60 * 60 * 1000,
  compactionKeysMax: 1_000_000,
};

type Limits = typeof limitsDefault;

type Parts = {
  disk: Disk;
  clock: Clock;
  randomId: () => Buffer;
  limits: Limits;
  onEvent: (event: LogEvent) => void;
  catalogue: Catalogue;
  journal: Journal;
  segments: Segments;
  manifest: Manifest;
  committer: Committer;
  checkpointer: Checkpointer;
  unlock: () => Promise<void>;
};

/** Called after each durable group with the partitions that have something new to read. */
export type DurableListener = (partitions: ReadonlySet<PartitionView>) => void;

/**
 * Opens the log in the disk's root folder, recovering what a crash left.
 * Rejects with `locked` while another process has it open, `corrupt` if the catalogue is unreadable.
 */
export async function openLog(options: LogOptions): Promise<Log> {
  const { disk } = options;
  const started = performance.now();
  const unlock = await disk.lock();
  try {
    return await build(options, unlock, started);
  } catch (error) {
    await unlock();
    throw error;
  }
}

/**
 * A durable log of many topics. One process has it open at a time. Appends become visible to
 * readers, and are acknowledged, when they are durable (see `SyncMode`); then listeners are called.
 */
export class Log {
  /** What opening found. */
  readonly recovery: RecoveryReport;
  readonly #parts: Parts;
  readonly #listeners: Set<DurableListener>;
  readonly #places = new ReadPlaces();
  readonly #creating = new Map<string, Promise<TopicView>>();
  #checkpoint: Promise<void> | undefined;
  #journalBytesAtCheckpoint = 0;
  #compacting: Promise<unknown> = Promise.resolve();
  #timer: (() => void) | undefined;
  #closed: Promise<void> | undefined;

  /** See `openLog`. */
  constructor(parts: Parts, listeners: Set<DurableListener>, recovery: RecoveryReport) {
    this.#parts = parts;
    this.recovery = recovery;
    this.#listeners = listeners;
    listeners.add(() => this.#considerCheckpoint());
    this.#considerCheckpoint();
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

  /** Deletes a topic durably; its files go with the next checkpoint. */
  async deleteTopic(topic: TopicView): Promise<void> {
    this.#own(topic);
    await this.#parts.committer.change([{ kind: "delete-topic", id: topic.id.toString("hex") }]);
  }

  /** Adds partitions; a topic never loses any. */
  async addPartitions(topic: TopicView, count: number): Promise<void> {
    const own = this.#own(topic);
    const total = own.partitions.length + count;
    if (!Number.isSafeInteger(count) || count < 1 || total > topicPartitionsMax) {
      throw new LogError("invalid-argument", `a topic has 1 to ${topicPartitionsMax} partitions`);
    }
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
   * Rejects with `overloaded` above the bound of waiting bytes (see `whenRoom`), `disk-full`,
   * `disk-failed`, `invalid-batch`, `too-large`, `unknown-topic`, and the producer codes.
   */
  append(batches: readonly AppendBatch[]): Promise<AppendResult[]> {
    return this.#parts.committer.append(batches);
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
   * Rejects with `offset-out-of-range`, `unknown-topic`, `corrupt`.
   */
  read(partition: PartitionView, offset: number, bytesMax: number): Promise<ReadResult> {
    const own = partition as Partition;
    return readBatches(this.#parts.segments, this.#places, own, offset, bytesMax);
  }

  /** The first record at or after a time (epoch milliseconds); undefined if all are older. */
  findTimestamp(partition: PartitionView, timestamp: number) {
    const own = partition as Partition;
    return findTimestamp(this.#parts.segments, this.#places, own, timestamp);
  }

  /** Calls `listener` after each group that became durable; the returned function ends that. */
  watch(listener: DurableListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Writes down where everything is, so that a restart has little to do. Shares one under way. */
  checkpoint(): Promise<void> {
    this.#checkpoint ??= this.#runCheckpoint().finally(() => {
      this.#checkpoint = undefined;
      this.#armTimer();
    });
    return this.#checkpoint;
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
    const { catalogue, committer, journal, segments } = this.#parts;
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
    const id = randomId().toString("hex");
    const firstUid = this.#takeUids(partitions);
    const operation = { kind: "create-topic", id, name, firstUid, partitions, config } as const;
    await committer.change([operation]);
    const topic = catalogue.topicById(id);
    if (topic === undefined) throw new LogError("unknown-topic", `${name} was deleted at once`);
    return topic;
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
    return applyRetention(partition, clock.now(), committer, checkpointer);
  }

  #considerCheckpoint(): void {
    const { committer, journal, limits } = this.#parts;
    const journalBytes = journal.bytes - this.#journalBytesAtCheckpoint;
    const isLarge =
      journalBytes > limits.checkpointBytes ||
      committer.tailBytes > limits.checkpointBytes ||
      committer.inPlaceBytes > inPlaceCheckpointBytes;
    if (isLarge) this.#checkpointInBackground();
    else this.#armTimer();
  }

  #armTimer(): void {
    if (this.#timer !== undefined || this.#closed !== undefined) return;
    if (!this.#parts.checkpointer.isDue) return;
    this.#timer = this.#parts.clock.after(this.#parts.limits.checkpointMs, () => {
      this.#timer = undefined;
      this.#checkpointInBackground();
    });
  }

  #checkpointInBackground(): void {
    if (this.#checkpoint !== undefined || this.#closed !== undefined) return;
    // Reported as an event; what matters to writers they learn from their own appends.
    this.checkpoint().catch(() => undefined);
  }

  async #runCheckpoint(): Promise<void> {
    const { checkpointer, committer, journal, onEvent } = this.#parts;
    if (committer.refusal?.code === "disk-failed") throw committer.refusal;
    const started = performance.now();
    this.#journalBytesAtCheckpoint = journal.bytes;
    try {
      const done = await checkpointer.run();
      this.#journalBytesAtCheckpoint = Math.min(this.#journalBytesAtCheckpoint, journal.bytes);
      onEvent({ kind: "checkpoint", durationMs: performance.now() - started, ...done });
    } catch (error) {
      if (!isDiskFull(error)) committer.poison(error as Error);
      onEvent({ kind: "checkpoint-failed", error: error as Error });
      throw error;
    }
  }

  async #close(): Promise<void> {
    const { committer, checkpointer, journal, manifest, segments, unlock } = this.#parts;
    this.#timer?.();
    await committer.stop();
    try {
      await this.#compacting;
      await this.#checkpoint;
      if (committer.refusal?.code === "closed" && checkpointer.isDue) await this.#runCheckpoint();
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

async function build(
  options: LogOptions,
  unlock: () => Promise<void>,
  started: number,
): Promise<Log> {
  const { disk } = options;
  const clock = options.clock ?? systemClock;
  const limits = limitsOf(options);
  const onEvent = options.onEvent ?? (() => undefined);
  const randomId = options.randomId ?? (() => randomBytes(16));
  const salt = () => randomId().subarray(0, 8);
  await prepareFolders(disk);
  const recovered = await recover({
    disk,
    nowMs: clock.now(),
    producersMax: limits.producersMax,
  });
  const manifest = new Manifest(disk, salt, recovered.manifestNumber);
  const { nextJournal, catalogue } = recovered;
  if (recovered.manifestNumber === 0) await beginManifest(manifest);
  const journal = await Journal.start(
    disk,
    salt,
    nextJournal.number,
    nextJournal.previousEnd,
    nextJournal.earlier,
  );
  const segments = new Segments(disk, limits);
  const listeners = new Set<DurableListener>();
  const committer: Committer = new Committer({
    catalogue,
    journal,
    segments,
    clock,
    mode: options.sync ?? { kind: "group" },
    limits: { ...limits, journalBytesMax: limits.checkpointBytes * 4 },
    onEvent,
    onChange: (change, topic) => checkpointer.noteChange(change, topic),
    onDurable: (partitions) => {
      for (const listener of listeners) listener(partitions);
    },
  });
  committer.leaderEpoch = recovered.leaderEpoch;
  const { sharedNumber } = recovered;
  const checkpointer = new Checkpointer({
    disk,
    catalogue,
    committer,
    journal,
    segments,
    manifest,
    sharedNumber,
  });
  takeOver(recovered, committer, checkpointer);
  await removeOrphans(disk, recovered);
  for (const report of recovered.quarantined) onEvent({ kind: "quarantined", report });
  // A new leader epoch has to be durable before anything is stamped with it.
  if (recovered.quarantined.length > 0) await checkpointer.run();
  return new Log(
    {
      disk,
      clock,
      randomId,
      limits,
      onEvent,
      catalogue,
      journal,
      segments,
      manifest,
      committer,
      checkpointer,
      unlock,
    },
    listeners,
    report(recovered, performance.now() - started),
  );
}

async function prepareFolders(disk: Disk): Promise<void> {
  await prepareManifest(disk);
  for (const folder of [journalFolder, "shared", "topics"]) await disk.makeFolder(folder);
  await disk.syncFolder("");
}

async function beginManifest(manifest: Manifest): Promise<void> {
  const first: CheckpointDocument = {
    kind: "checkpoint",
    journal: { file: 1, position: fileHeaderBytes },
    leaderEpoch: 0,
    nextUid: 1,
    sharedNumber: 0,
    garbage: [],
  };
  await manifest.rewrite([first], () => Promise.resolve());
}

function takeOver(recovered: Recovered, committer: Committer, checkpointer: Checkpointer): void {
  for (const partition of recovered.dirty) {
    committer.dirty.add(partition);
    committer.tailBytes += partition.tailBytes;
  }
  for (const topic of recovered.changedTopics) checkpointer.noteTopic(topic);
}

function report(recovered: Recovered, durationMs: number): RecoveryReport {
  return {
    durationMs,
    topics: recovered.catalogue.topicCount,
    partitions: recovered.catalogue.partitionCount,
    dirtyPartitions: recovered.dirty.size,
    journalBytes: recovered.journalBytes,
    cutBytes: recovered.cutBytes,
    quarantined: recovered.quarantined,
    leaderEpoch: recovered.leaderEpoch,
  };
}

function limitsOf(options: LogOptions): Limits {
  const limits = { ...limitsDefault };
  for (const key of Object.keys(limitsDefault) as (keyof Limits)[]) {
    const value = options[key];
    if (value === undefined) continue;
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new LogError("invalid-argument", `${key} cannot be ${String(value)}`);
    }
    limits[key] = value;
  }
  return limits;
}
