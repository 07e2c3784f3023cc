// Group commit: one write and one sync for all waiting appends.
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
 * The path of an append: check → offsets and stamps (in call order, synchronously) → queue → its group
 * is written → synced → applied: visible, acknowledged. One group is in flight at a time; appends that
 * arrive meanwhile form the next one, so groups grow with the load.
 *
 * If a group has many bytes for a partition, they are written directly to its segment, in parallel with
 * the journal, which gets a reference; both must be on the medium before anything is applied. The modes
 * that do not wait for the medium therefore send everything through the journal: a power cut could keep
 * a reference and lose the bytes that it refers to.
 */

/** Options of a `Committer`; see `LogOptions` for the limits. */
export interface CommitterOptions {
  catalogue: Catalogue;
  journal: Journal;
  segments: Segments;
  space: FreeSpace;
  clock: Clock;
  mode: SyncMode;
  limits: CommitLimits;
  onEvent: (event: LogEvent) => void;
  /** Called with each durable, applied change of the catalogue. */
  onChange: (change: CatalogueOperation, topic: Topic) => void;
  /** Called after each group, with the partitions whose durable end moved. */
  onDurable: (partitions: ReadonlySet<Partition>) => void;
  /** Called after each group with records, with the time from its first write to its end. */
  onCommitted: (durationMs: number, nowMs: number) => void;
}

/** Bounds of a `Committer`. */
interface CommitLimits {
  batchBytesMax: number;
  pendingBytesMax: number;
  groupBytesMax: number;
  inPlaceBytesMin: number;
  journalFileBytes: number;
  journalBytesMax: number;
  producersMax: number;
}

/** Commits appends and changes in groups. */
export class Committer {
  readonly #options: CommitterOptions;
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;
  #refusal: LogError | undefined;
  #pendingBytes = 0;
  #syncTimer: (() => void) | undefined;
  readonly #mark: MarkSchedule;
  #room: { promise: Promise<void>; resolve: () => void } | undefined;
  /** Partitions with changes for the next checkpoint. */
  readonly dirty = new Set<Partition>();
  /** Bytes written in place since the last checkpoint. */
  inPlaceBytes = 0;
  leaderEpoch = 0;
  /** The end of the applied journal. */
  appliedPlace: JournalPlace;
  entries = 0;
  groups = 0;
  appendedBytes = 0;
  tailBytes = 0;

  constructor(options: CommitterOptions) {
    this.#options = options;
    this.appliedPlace = options.journal.place;
    this.#mark = new MarkSchedule(options.journal, options.clock, (error) => {
      if (!isDiskFull(error)) this.poison(error);
    });
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Why writes are refused; `undefined` normally. */
  get refusal(): LogError | undefined {
    return this.#refusal;
  }

  /**
   * Appends batches as one atomic entry. Offsets are assigned synchronously, so successive calls keep their order.
   */
  async append(
    batches: readonly AppendBatch[],
    { mayUseReserve = false } = {},
  ): Promise<AppendResult[]> {
    this.#checkRoom();
    this.#options.space.requireRoom(mayUseReserve);
    const headers = batches.map((append) => this.#checkBatch(append));
    const partitions = batches.map((append) => this.#checkPartition(append));
    const earlier = this.#checkProducers(partitions, headers);
    const isRepeated = earlier.some((seen) => seen !== undefined);
    const fresh: Fresh[] = [];
    const results = batches.map(({ batch, unlessDuplicate }, index): AppendResult => {
      const seen = earlier[index] ?? (isRepeated && unlessDuplicate ? NOWHERE : undefined);
      if (seen !== undefined) {
        return { baseOffset: seen.baseOffset, lastOffset: seen.lastOffset, duplicate: true };
      }
      const assigned = this.#assign(partitions[index]!, headers[index]!, batch);
      fresh.push(assigned);
      const { baseOffset, nextOffset } = assigned.batch;
      return { baseOffset, lastOffset: nextOffset - 1, duplicate: false };
    });
    // A duplicate waits as well: the first one may still be in flight.
    await this.#enqueue(fresh, []);
    return results;
  }

  /** Commits changes of the catalogue or of log starts as one entry, then applies them. */
  async change(changes: (TrimOperation | CatalogueOperation)[]): Promise<void> {
    this.#checkRoom();
    await this.#enqueue([], changes);
  }

  /** Resolves when at most half of the allowed pending bytes are waiting. */
  whenRoom(): Promise<void> {
    if (this.#pendingBytes * 2 <= this.#options.limits.pendingBytesMax) return Promise.resolve();
    this.#room ??= Promise.withResolvers<void>();
    return this.#room.promise;
  }

  /** Resolves when no group is in flight; new ones may start right after. */
  async whenIdle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** Starts a new journal file between two groups. */
  async rollJournal(): Promise<void> {
    // Not `whenIdle`: a group could start between its end and the next line.
    while (this.#running !== undefined) await this.#running;
    const rolling = this.#options.journal.roll();
    this.#running = rolling
      .catch((error: unknown) => {
        if (!isDiskFull(error)) this.poison(error as Error);
      })
      .then(() => this.#run());
    await rolling;
  }

  /** Refuses further appends and waits for the queued ones. */
  async stop(): Promise<void> {
    this.#refusal ??= new LogError("closed", "the log is closed");
    await this.whenIdle();
    this.#syncTimer?.();
    this.#mark.stop();
  }

  /** Stops all writing until restart, after a disk failure that cannot be repaired here. */
  poison(error: Error): LogError {
    this.#refusal ??= new LogError("disk-failed", "writing has stopped until restart", {
      cause: error,
    });
    return this.#refusal;
  }

  #checkRoom(): void {
    if (this.#refusal !== undefined) throw this.#refusal;
    const { limits, journal } = this.#options;
    if (this.#pendingBytes > limits.pendingBytesMax) {
      throw new LogError(
        "overloaded",
        `more than ${limits.pendingBytesMax} bytes wait for the disk`,
      );
    }
    if (journal.bytes > limits.journalBytesMax) {
      throw new LogError("overloaded", "checkpoints are too slow; the journal is at its bound");
    }
  }

  #checkBatch({ batch, verified }: AppendBatch): BatchHeader {
    if (verified !== true) return validateBatch(batch, this.#options.limits.batchBytesMax);
    const header = readBatchHeader(batch);
    if (header === undefined || header.bytes !== batch.length) {
      throw new LogError("invalid-batch", "not a record batch");
    }
    if (batch.length > this.#options.limits.batchBytesMax) {
      throw new LogError("too-large", `a batch over ${this.#options.limits.batchBytesMax} bytes`);
    }
    return header;
  }

  #checkPartition({ partition }: AppendBatch): Partition {
    const own = partition as Partition;
    if (own.live && this.#options.catalogue.partition(own.uid) === own) return own;
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
      partition.producers.begin(header, baseOffset, this.#options.clock.now());
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
      // Starts in a later microtask, so that all appends of the current one join the first group.
      this.#running ??= this.#run();
    });
  }

  async #run(): Promise<void> {
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const group = this.#takeGroup();
      const { clock, onCommitted } = this.#options;
      const startMs = clock.now();
      try {
        await this.#commit(group);
        const nowMs = clock.now();
        if (group.waiting.some(({ fresh }) => fresh.length > 0))
          onCommitted(nowMs - startMs, nowMs);
        this.#apply(group);
      } catch (error) {
        this.#fail(group, error as Error);
      }
    }
    this.#running = undefined;
  }

  #takeGroup(): Group {
    const { mode, limits } = this.#options;
    const group = takeGroup(this.#queue, limits.groupBytesMax);
    const bytesMin = mode.kind === "group" ? limits.inPlaceBytesMin : Infinity;
    for (const [partition, { bytes }] of group.inPlace) {
      const isBusy = partition.writerWanted || partition.isUnrecorded;
      const isFree = partition.writer === undefined && !isBusy && partition.live;
      if (bytes >= bytesMin && isFree) partition.writer = "commit";
      else group.inPlace.delete(partition);
    }
    return group;
  }

  async #commit(group: Group): Promise<void> {
    if (this.#refusal?.code === "disk-failed") throw this.#refusal;
    const { journal, segments, space, mode, limits } = this.#options;
    if (space.noteWrite(group.bytes)) await space.refresh();
    if (journal.fileBytes >= limits.journalFileBytes) await journal.roll();
    const writes: OwnWrite[] = [];
    for (const [partition, { batches }] of group.inPlace) {
      writes.push(segments.planOwn(partition, [...partition.tail, ...batches]));
    }
    const durably = mode.kind === "group";
    const start = journal.place;
    const entries = groupEntries(group, writes, this.leaderEpoch, start.file);
    const steps = [
      durably ? journal.writeDurably(entries) : journal.write(entries),
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

  // Only a full disk leaves a consistent state. After any other failure, above all of a sync, the page
  // cache and the medium may differ, and a retry would hide it.
  #takeBack(start: JournalPlace, errors: Error[]): never {
    const other = errors.find((error) => !isDiskFull(error));
    if (other !== undefined) throw this.poison(other);
    this.#options.journal.takeBack(start);
    throw new LogError("disk-full", "no space left on the disk", { cause: errors[0] });
  }

  #apply(group: Group): void {
    const advanced = new Set<Partition>();
    const now = this.#options.clock.now();
    for (const { fresh, changes, bytes, settle } of group.waiting) {
      for (const change of changes) this.#applyChange(change);
      for (const { partition, header, batch } of fresh) {
        // An earlier deletion in the queue has removed the partition.
        if (!partition.live) continue;
        advanced.add(partition);
        partition.describedIn = this.#options.journal.place.file;
        partition.noteEpoch(this.leaderEpoch, batch.baseOffset);
        if (group.inPlace.has(partition)) partition.durableEnd = batch.nextOffset;
        else {
          partition.pushTail(batch);
          this.tailBytes += batch.bytes.length;
        }
        if (header.producerId >= 0) {
          const { producersMax } = this.#options.limits;
          partition.producers!.settle(header, batch.baseOffset, now, producersMax);
        }
        this.appendedBytes += batch.bytes.length;
        this.dirty.add(partition);
      }
      this.#pendingBytes -= bytes;
      this.entries++;
      settle();
    }
    for (const partition of group.inPlace.keys()) partition.writer = undefined;
    this.groups++;
    this.appliedPlace = this.#options.journal.place;
    this.#mark.arm(this.appliedPlace);
    this.#signalRoom();
    this.#options.onDurable(advanced);
  }

  #applyChange(change: TrimOperation | CatalogueOperation): void {
    if (change.kind !== "trim") {
      const topic = this.#options.catalogue.apply(change);
      if (topic !== undefined) this.#options.onChange(change, topic);
      return;
    }
    const partition = this.#options.catalogue.partition(change.uid);
    if (partition === undefined) return;
    partition.logStart = Math.max(partition.logStart, change.logStart);
    this.dirty.add(partition);
  }

  // Queued appends have offsets after those of the failed group, so they fail with it.
  #fail(group: Group, error: Error): void {
    for (const partition of group.inPlace.keys()) partition.writer = undefined;
    const failed = [...group.waiting, ...this.#queue.splice(0)];
    const reason = error instanceof LogError ? error : ioError(error);
    if (reason.code !== "disk-full") this.poison(error);
    this.#options.onEvent({
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
    if (this.#pendingBytes * 2 > this.#options.limits.pendingBytesMax) return;
    this.#room?.resolve();
    this.#room = undefined;
  }

  #armSync(ms: number): void {
    this.#syncTimer ??= this.#options.clock.after(ms, () => {
      this.#syncTimer = undefined;
      const both = [this.#options.journal.sync(), this.#options.segments.syncAll()];
      Promise.all(both).catch((error: Error) => this.poison(error));
    });
  }
}

const NOWHERE = { baseOffset: -1, lastOffset: -1 };
