// Group commit: one write and one sync for everyone who waits.
import { readBatchHeader, stampBatch, validateBatch, type BatchHeader } from "../batch/header.ts";
import type { Catalogue, Topic } from "../catalogue/catalogue.ts";
import type { Partition } from "../partition/partition.ts";
import { Producers } from "../partition/producers.ts";
import type { Clock } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import type { CatalogueOperation, TrimOperation } from "../journal/entry.ts";
import type { Journal, JournalPlace } from "../journal/journal.ts";
import type { OwnWrite, Segments } from "../segment/segments.ts";
import type { AppendBatch, AppendResult, LogEvent, SyncMode } from "../types.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import { ioError, isDiskFull } from "../disk/disk-error.ts";
import { groupEntries, takeGroup, type Fresh, type Group, type Waiting } from "./group.ts";
import { MarkSchedule } from "../journal/mark-schedule.ts";

/*
 * An append's way: check → offsets and stamps (in call order, at once) → waits in the queue → its
 * group is written → synced → applied: visible, acknowledged. One group is under way at a time;
 * what comes meanwhile makes the next one, so that groups grow with the load.
 *
 * In a group, a partition with many bytes has them written straight into its segment, at the same
 * time as the journal gets the reference; both must be on the medium before anything is applied.
 * The modes that do not wait for the medium therefore send everything through the journal: a power
 * cut could keep a reference and lose the bytes that it refers to.
 */

/** What the committer works with and its limits; see `LogOptions` for their meaning. */
export type CommitParts = {
  catalogue: Catalogue;
  journal: Journal;
  segments: Segments;
  space: FreeSpace;
  clock: Clock;
  mode: SyncMode;
  limits: CommitLimits;
  onEvent: (event: LogEvent) => void;
  /** Called with each change of the catalogue that became durable and was applied. */
  onChange: (change: CatalogueOperation, topic: Topic) => void;
  /** Called after each group, with the partitions whose durable end moved. */
  onDurable: (partitions: ReadonlySet<Partition>) => void;
};

/** Bounds of the committer. */
export type CommitLimits = {
  batchBytesMax: number;
  pendingBytesMax: number;
  groupBytesMax: number;
  inPlaceBytesMin: number;
  journalFileBytes: number;
  journalBytesMax: number;
  producersMax: number;
};

/** Takes appends and changes, and makes them durable in groups. */
export class Committer {
  readonly #parts: CommitParts;
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;
  #refusal: LogError | undefined;
  #pendingBytes = 0;
  #syncTimer: (() => void) | undefined;
  readonly #mark: MarkSchedule;
  #groupDone = Promise.withResolvers<void>();
  #room: { promise: Promise<void>; resolve: () => void } | undefined;
  /** Partitions with anything that the next checkpoint has to write down. */
  readonly dirty = new Set<Partition>();
  /** Bytes that went into segments in place since the last checkpoint. */
  inPlaceBytes = 0;
  leaderEpoch = 0;
  /** The journal up to here has been applied. */
  appliedPlace: JournalPlace;
  entries = 0;
  groups = 0;
  appendedBytes = 0;
  tailBytes = 0;

  constructor(parts: CommitParts) {
    this.#parts = parts;
    this.appliedPlace = parts.journal.place;
    this.#mark = new MarkSchedule(parts.journal, parts.clock, (error) => {
      if (!isDiskFull(error)) this.poison(error);
    });
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Why nothing is written any more; undefined while all is well. */
  get refusal(): LogError | undefined {
    return this.#refusal;
  }

  /**
   * Appends batches to partitions as one atomic entry. Offsets are given in call order, before the
   * first await, so callers that append one after another keep their order.
   */
  async append(
    batches: readonly AppendBatch[],
    { mayUseReserve = false } = {},
  ): Promise<AppendResult[]> {
    this.#checkRoom();
    this.#parts.space.requireRoom(mayUseReserve);
    const headers = batches.map((append) => this.#checkBatch(append));
    const partitions = batches.map((append) => this.#checkPartition(append));
    const earlier = this.#checkProducers(partitions, headers);
    const isRepeated = earlier.some((seen) => seen !== undefined);
    const fresh: Fresh[] = [];
    const results = batches.map(({ batch, unlessDuplicate }, index): AppendResult => {
      const seen = earlier[index] ?? (isRepeated && unlessDuplicate ? nowhere : undefined);
      if (seen !== undefined) {
        return { baseOffset: seen.baseOffset, lastOffset: seen.lastOffset, duplicate: true };
      }
      const assigned = this.#assign(partitions[index]!, headers[index]!, batch);
      fresh.push(assigned);
      const { baseOffset, nextOffset } = assigned.batch;
      return { baseOffset, lastOffset: nextOffset - 1, duplicate: false };
    });
    // A duplicate waits as well: the first one may still be under way.
    await this.#enqueue(fresh, []);
    return results;
  }

  /** Makes changes of the catalogue or of log starts durable as one entry, then applies them. */
  async change(changes: (TrimOperation | CatalogueOperation)[]): Promise<void> {
    this.#checkRoom();
    await this.#enqueue([], changes);
  }

  /** Resolves when less than half of the bytes that may wait are waiting; at once if that is so. */
  whenRoom(): Promise<void> {
    if (this.#pendingBytes * 2 <= this.#parts.limits.pendingBytesMax) return Promise.resolve();
    this.#room ??= Promise.withResolvers<void>();
    return this.#room.promise;
  }

  /** Resolves when no group is under way; new ones may start right after. */
  async whenIdle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** Resolves when the group that is under way has been applied or has failed. */
  async whenGroupDone(): Promise<void> {
    if (this.#running !== undefined) await this.#groupDone.promise;
  }

  /** Refuses everything from now on; what waits already is finished. */
  async stop(): Promise<void> {
    this.#refusal ??= new LogError("closed", "the log is closed");
    await this.whenIdle();
    this.#syncTimer?.();
    this.#mark.stop();
  }

  /** Stops all writing until restart: the disk did something that cannot be repaired here. */
  poison(error: Error): LogError {
    this.#refusal ??= new LogError("disk-failed", "writing has stopped until restart", {
      cause: error,
    });
    return this.#refusal;
  }

  #checkRoom(): void {
    if (this.#refusal !== undefined) throw this.#refusal;
    const { limits, journal } = this.#parts;
    if (this.#pendingBytes > limits.pendingBytesMax) {
      throw new LogError(
        "overloaded",
        `more than ${limits.pendingBytesMax} bytes wait for the disk`,
      );
    }
    if (journal.bytes > limits.journalBytesMax) {
      throw new LogError("overloaded", "checkpoints do not keep up; the journal is at its bound");
    }
  }

  #checkBatch({ batch, verified }: AppendBatch): BatchHeader {
    if (verified !== true) return validateBatch(batch, this.#parts.limits.batchBytesMax);
    const header = readBatchHeader(batch);
    if (header === undefined || header.bytes !== batch.length) {
      throw new LogError("invalid-batch", "not a record batch");
    }
    if (batch.length > this.#parts.limits.batchBytesMax) {
      throw new LogError("too-large", `a batch over ${this.#parts.limits.batchBytesMax} bytes`);
    }
    return header;
  }

  #checkPartition({ partition }: AppendBatch): Partition {
    const own = partition as Partition;
    if (own.live && this.#parts.catalogue.partition(own.uid) === own) return own;
    throw new LogError("unknown-topic", `no topic ${partition.topic.name}`);
  }

  #checkProducers(partitions: Partition[], headers: BatchHeader[]) {
    const seen = new Set<string>();
    return headers.map((header, index) => {
      if (header.producerId < 0) return undefined;
      const partition = partitions[index]!;
      const key = `${partition.uid}:${header.producerId}`;
      if (seen.has(key)) {
        const text = "one entry cannot hold two batches of a producer for one partition";
        throw new LogError("invalid-argument", text);
      }
      seen.add(key);
      return partition.producers?.check(header);
    });
  }

  #assign(partition: Partition, header: BatchHeader, bytes: Buffer): Fresh {
    const baseOffset = partition.nextOffset;
    stampBatch(bytes, baseOffset, this.leaderEpoch);
    partition.nextOffset = baseOffset + header.lastOffsetDelta + 1;
    if (header.producerId >= 0) {
      partition.producers ??= new Producers();
      partition.producers.begin(header, baseOffset, this.#parts.clock.now());
    }
    const { nextOffset } = partition;
    const { maxTimestamp } = header;
    return { partition, header, batch: { baseOffset, nextOffset, maxTimestamp, bytes } };
  }

  #enqueue(fresh: Fresh[], changes: Waiting["changes"]): Promise<void> {
    let bytes = 64;
    for (const { batch } of fresh) bytes += batch.bytes.length;
    this.#pendingBytes += bytes;
    return new Promise((settle, fail) => {
      this.#queue.push({ fresh, changes, bytes, settle, fail });
      // Starting in a later turn lets everyone of this turn into the first group.
      this.#running ??= this.#run();
    });
  }

  async #run(): Promise<void> {
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const group = this.#takeGroup();
      try {
        await this.#commit(group);
        this.#apply(group);
      } catch (error) {
        this.#fail(group, error as Error);
      }
      this.#groupDone.resolve();
      this.#groupDone = Promise.withResolvers<void>();
    }
    this.#running = undefined;
  }

  #takeGroup(): Group {
    const { mode, limits } = this.#parts;
    const group = takeGroup(this.#queue, limits.groupBytesMax);
    const bytesMin = mode.kind === "group" ? limits.inPlaceBytesMin : Infinity;
    for (const [partition, { bytes }] of group.inPlace) {
      const isBusy = partition.writerWanted || partition.isUnrecorded;
      const isFree = partition.writer === "nobody" && !isBusy && partition.live;
      if (bytes >= bytesMin && isFree) partition.writer = "commit";
      else group.inPlace.delete(partition);
    }
    return group;
  }

  async #commit(group: Group): Promise<void> {
    if (this.#refusal?.code === "disk-failed") throw this.#refusal;
    const { journal, segments, space, mode, limits } = this.#parts;
    if (space.noteWrite(group.bytes)) await space.refresh();
    if (journal.fileBytes >= limits.journalFileBytes) await journal.roll();
    const writes: OwnWrite[] = [];
    for (const [partition, { batches }] of group.inPlace) {
      writes.push(segments.planOwn(partition, [...partition.tail, ...batches]));
    }
    const durably = mode.kind === "group";
    const start = journal.place;
    const steps = [
      this.#writeJournal(groupEntries(group, writes, this.leaderEpoch, start.file), durably),
      ...writes.map((write) => segments.writeOwn(write, durably)),
    ];
    const failed = (await Promise.allSettled(steps)).filter((step) => step.status === "rejected");
    if (failed.length > 0) {
      this.#takeBack(
        start,
        failed.map((step) => step.reason as Error),
      );
    }
    for (const write of writes) {
      this.tailBytes -= write.partition.tailBytes;
      write.partition.dropTail(write.partition.tail.length);
      segments.adoptOwn(write);
      this.inPlaceBytes += write.extent.length;
    }
    if (mode.kind === "interval") this.#armSync(mode.ms);
  }

  async #writeJournal(entries: Buffer[][], durably: boolean): Promise<void> {
    await this.#parts.journal.write(entries);
    if (durably) await this.#parts.journal.sync();
  }

  // Only a full disk leaves things as they were; after any other failure, of a sync above all, the
  // page cache may say one thing and the medium another, and asking again would hide it.
  #takeBack(start: JournalPlace, errors: Error[]): never {
    const other = errors.find((error) => !isDiskFull(error));
    if (other !== undefined) throw this.poison(other);
    this.#parts.journal.takeBack(start);
    throw new LogError("disk-full", "no space left on the disk", { cause: errors[0] });
  }

  #apply(group: Group): void {
    const advanced = new Set<Partition>();
    const now = this.#parts.clock.now();
    for (const { fresh, changes, bytes, settle } of group.waiting) {
      for (const change of changes) this.#applyChange(change);
      for (const { partition, header, batch } of fresh) {
        // A deletion earlier in the queue has taken the partition away.
        if (!partition.live) continue;
        advanced.add(partition);
        partition.describedIn = this.#parts.journal.place.file;
        partition.noteEpoch(this.leaderEpoch, batch.baseOffset);
        if (group.inPlace.has(partition)) partition.durableEnd = batch.nextOffset;
        else {
          partition.pushTail(batch);
          this.tailBytes += batch.bytes.length;
        }
        if (header.producerId >= 0) {
          const { producersMax } = this.#parts.limits;
          partition.producers!.settle(header, batch.baseOffset, now, producersMax);
        }
        this.appendedBytes += batch.bytes.length;
        this.dirty.add(partition);
      }
      this.#pendingBytes -= bytes;
      this.entries++;
      settle();
    }
    for (const partition of group.inPlace.keys()) partition.writer = "nobody";
    this.groups++;
    this.appliedPlace = this.#parts.journal.place;
    this.#mark.arm(this.appliedPlace);
    this.#signalRoom();
    this.#parts.onDurable(advanced);
  }

  #applyChange(change: TrimOperation | CatalogueOperation): void {
    if (change.kind !== "trim") {
      const topic = this.#parts.catalogue.apply(change);
      if (topic !== undefined) this.#parts.onChange(change, topic);
      return;
    }
    const partition = this.#parts.catalogue.partition(change.uid);
    if (partition === undefined) return;
    partition.logStart = Math.max(partition.logStart, change.logStart);
    this.dirty.add(partition);
  }

  // Everything that waits stands on offsets after the failed group's, so it fails with it.
  #fail(group: Group, error: Error): void {
    for (const partition of group.inPlace.keys()) partition.writer = "nobody";
    const failed = [...group.waiting, ...this.#queue.splice(0)];
    const reason = error instanceof LogError ? error : ioError(error);
    if (reason.code !== "disk-full") this.poison(error);
    this.#parts.onEvent({
      kind: "group-failed",
      error: reason,
      appends: failed.length,
      fatal: reason.code !== "disk-full",
    });
    for (const { fresh, bytes, fail } of failed) {
      for (const { partition } of fresh) {
        partition.nextOffset = partition.durableEnd;
        partition.producers?.abandon();
      }
      this.#pendingBytes -= bytes;
      fail(reason);
    }
    this.#signalRoom();
  }

  #signalRoom(): void {
    if (this.#pendingBytes * 2 > this.#parts.limits.pendingBytesMax) return;
    this.#room?.resolve();
    this.#room = undefined;
  }

  #armSync(ms: number): void {
    this.#syncTimer ??= this.#parts.clock.after(ms, () => {
      this.#syncTimer = undefined;
      const both = [this.#parts.journal.sync(), this.#parts.segments.syncAll()];
      Promise.all(both).catch((error: Error) => this.poison(error));
    });
  }
}

const nowhere = { baseOffset: -1, lastOffset: -1 };
