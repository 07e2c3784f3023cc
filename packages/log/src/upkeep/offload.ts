// Offload: uploads closed segments, removes objects that nothing refers to, and drops local copies.
import type { Catalogue } from "../catalogue/catalogue.ts";
import type { ObjectLedger } from "../catalogue/object-ledger.ts";
import { ColdStoreError, type ColdStore } from "../cold-store.ts";
import { isDiskFull } from "../disk/disk-error.ts";
import type { FreeSpace } from "../disk/free-space.ts";
import type { Clock } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { extentEnd, extentPath, type Extent, type Partition } from "../partition/partition.ts";
import { formatObjectName, objectPrefix } from "../partition/object-name.ts";
import type { KeyIndex } from "../segment/key-index.ts";
import type { Segments } from "../segment/segments.ts";
import type { ColdOptions, LogEvent, OffloadOperation, OffloadStatus } from "../types.ts";
import type { Checkpointer } from "./checkpoint.ts";
import { applyLocalRetention } from "./retention.ts";
import { UploadCheck } from "./upload-check.ts";

const ROLL_MS = 3_600_000;
const PARALLEL_UPLOADS = 2;
/** Segments and bytes between two checkpoints. */
const ROUND_SEGMENTS_MAX = 64;
const ROUND_BYTES_MAX = 1024 * 1024 * 1024;
const PARALLEL_REMOVALS = 8;
/** Removals between two looks at the uploads. */
const ROUND_REMOVALS_MAX = 1_000;
/** Pause after a failed pass, doubling. */
const PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 300_000;
/** Interval of comparing the objects with the manifest. */
const COMPARE_MS = 6 * 3_600_000;

/** Options of an `Offloader`. */
export interface OffloaderOptions {
  catalogue: Catalogue;
  segments: Segments;
  keyIndex: KeyIndex;
  checkpointer: Checkpointer;
  ledger: ObjectLedger;
  space: FreeSpace;
  clock: Clock;
  randomId: () => Buffer;
  /** Makes everything up to the call durable in the manifest. */
  checkpoint: () => Promise<void>;
  noteDirty: (partition: Partition) => void;
  onEvent: (event: LogEvent) => void;
}

/** A segment to upload. */
interface Candidate {
  partition: Partition;
  extent: Extent;
  object: string;
}

/** Uploads and removes one pass at a time. Failures of the store and the disk are events. */
export class Offloader {
  readonly #options: OffloaderOptions;
  /** Segments with a damaged batch. They stay local. */
  readonly #damaged = new WeakSet<Extent>();
  readonly #pendingSince = new WeakMap<Extent, number>();
  readonly #errors = new Map<string, number>();
  #isPaused = false;
  #pauseMs = 0;
  #pausedUntilMs = 0;
  #comparedAtMs: number | undefined;
  #wasFull = false;
  #isStopped = false;
  #running: Promise<void> | undefined;
  readonly #counts = {
    uploads: { ok: 0, failed: 0 },
    removals: { ok: 0, failed: 0 },
    uploadedBytes: 0,
    unknownObjects: 0,
  };
  #lastUploadAtMs: number | undefined;
  #lastError: OffloadStatus["lastError"];

  constructor(options: OffloaderOptions) {
    this.#options = options;
  }

  /** Runs a pass, or joins the one that runs: everything that is due, until the store fails. */
  run(cold: ColdOptions | undefined): Promise<void> {
    this.#running ??= this.#pass(cold).finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Ends the pause after a failure: the store is another one. */
  resume(): void {
    this.#pauseMs = 0;
    this.#pausedUntilMs = 0;
    this.#isPaused = false;
  }

  /** Stops after the segments that are being uploaded. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** Counts a failure of the store. */
  noteFailure(operation: OffloadOperation, error: unknown, object?: string): void {
    const code = codeOf(error);
    const key = `${operation} ${code}`;
    this.#errors.set(key, (this.#errors.get(key) ?? 0) + 1);
    this.#lastError = { operation, code, atMs: this.#options.clock.now() };
    this.#options.onEvent({
      kind: "offload-failed",
      operation,
      code,
      ...(object === undefined ? {} : { object }),
    });
  }

  /** The state of the offload, without the figures of readers. */
  status(): Omit<OffloadStatus, "cacheBytes" | "reads"> {
    const { catalogue, ledger } = this.#options;
    const status = {
      remoteSegments: 0,
      remoteBytes: 0,
      pendingSegments: 0,
      pendingBytes: 0,
      oldestPendingAtMs: undefined as number | undefined,
    };
    for (const partition of catalogue.partitions()) {
      for (const extent of partition.extents) {
        if (extent.object !== undefined) {
          status.remoteSegments += 1;
          status.remoteBytes += extentEnd(extent);
        } else if (this.#isPending(partition, extent)) {
          status.pendingSegments += 1;
          status.pendingBytes += extentEnd(extent);
          const since = this.#sinceOf(extent);
          status.oldestPendingAtMs = Math.min(status.oldestPendingAtMs ?? since, since);
        }
      }
    }
    return {
      ...status,
      ...this.#counts,
      lastUploadAtMs: this.#lastUploadAtMs,
      lastError: this.#lastError,
      waitingRemovals: ledger.removals.size,
      errors: this.#errors,
    };
  }

  /** Drops local copies that local retention or a full disk does not allow; returns their bytes. */
  dropCopies(): number {
    const { catalogue, clock, checkpointer } = this.#options;
    let dropped = 0;
    for (const partition of catalogue.partitions()) {
      dropped += applyLocalRetention(partition, clock.now(), checkpointer);
    }
    return dropped + this.#relieveDisk(dropped);
  }

  async #pass(cold: ColdOptions | undefined): Promise<void> {
    this.#reportRemovals();
    if (cold === undefined || this.#isStopped) return;
    try {
      await this.#options.space.refresh();
      // Their files are removed after a checkpoint.
      if (this.dropCopies() > 0) await this.#options.checkpoint();
      if (this.#options.clock.now() < this.#pausedUntilMs) return;
      this.#isPaused = false;
      await this.#resolveIntents(cold.store);
      await this.#removeObjects(cold.store);
      if (cold.isUploading) await this.#upload(cold);
      await this.#compare(cold.store);
      if (!this.#isPaused) this.#pauseMs = 0;
    } catch (error) {
      // Checkpoints report their failures themselves.
      if (error instanceof ColdStoreError) this.#pause();
      else if (!(error instanceof LogError) && !isDiskFull(error)) throw error;
    }
  }

  #pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#pauseMs = Math.min(PAUSE_MS_MAX, Math.max(PAUSE_MS, this.#pauseMs * 2));
    // Jitter: brokers that share a store do not return all at once.
    const factor = 0.5 + this.#options.randomId()[0]! / 512;
    this.#pausedUntilMs = this.#options.clock.now() + this.#pauseMs * factor;
  }

  async #upload(cold: ColdOptions): Promise<void> {
    while (!this.#isStopped && !this.#isPaused) {
      const round = this.#choose(cold.rollMs ?? ROLL_MS);
      if (round.length === 0) return;
      for (const { object } of round) this.#options.ledger.addIntent(object);
      await this.#options.checkpoint();
      const queue = round.values();
      const lane = async () => {
        for (const candidate of queue) {
          if (this.#isStopped || this.#isPaused) await this.#giveUp(cold.store, candidate.object);
          else await this.#uploadOne(cold.store, candidate);
        }
      };
      await Promise.all(Array.from({ length: PARALLEL_UPLOADS }, lane));
      this.dropCopies();
      await this.#options.checkpoint();
    }
  }

  // Closed segments without an object, the oldest of each partition first.
  #choose(rollMs: number): Candidate[] {
    const { catalogue, ledger, randomId } = this.#options;
    const round: Candidate[] = [];
    let bytes = 0;
    for (const partition of catalogue.partitions()) {
      if (!partition.topic.config.offload) continue;
      this.#closeOld(partition, rollMs);
      for (const extent of partition.extents) {
        if (!this.#isPending(partition, extent) || this.#damaged.has(extent)) continue;
        if (round.length >= ROUND_SEGMENTS_MAX || bytes >= ROUND_BYTES_MAX) return round;
        this.#sinceOf(extent);
        const object = formatObjectName({
          log: ledger.logId!,
          topic: partition.topic.id.toString("hex"),
          partition: partition.index,
          baseOffset: extent.baseOffset,
          nextOffset: extent.nextOffset,
          random: randomId().toString("hex", 0, 4),
        });
        round.push({ partition, extent, object });
        bytes += extentEnd(extent);
      }
    }
    return round;
  }

  /** True if the extent is a closed segment that should have an object. */
  #isPending(partition: Partition, extent: Extent): boolean {
    if (!partition.topic.config.offload || extent.shared || extent.object !== undefined)
      return false;
    if (extent.nextOffset <= partition.logStart || !partition.live) return false;
    if (extent !== partition.extents.at(-1)) return true;
    if (partition.rollNext) return true;
    // A write that is under way may have been planned for this segment.
    if (extent.length < partition.topic.config.segmentBytes || partition.writer !== undefined) {
      return false;
    }
    // It is full now, but the topic's setting may grow.
    partition.rollNext = true;
    return true;
  }

  #closeOld(partition: Partition, rollMs: number): void {
    const last = partition.extents.at(-1);
    if (!partition.topic.config.offload || last === undefined || last.shared) return;
    if (partition.rollNext || partition.writer !== undefined) return;
    partition.growingSinceMs ??= this.#options.clock.now();
    if (this.#options.clock.now() - partition.growingSinceMs >= rollMs) partition.rollNext = true;
  }

  async #uploadOne(store: ColdStore, candidate: Candidate): Promise<void> {
    const { partition, extent, object } = candidate;
    const { segments, keyIndex, ledger, clock, onEvent, noteDirty } = this.#options;
    try {
      await segments.saveIndexOf(partition, extent);
      // Afterwards the segment may leave this disk.
      if (partition.topic.config.keyIndex) {
        await keyIndex.build(partition, extent, () => this.#isStopped);
      }
      await this.#send(store, candidate);
      const bytes = await store.head(object);
      if (bytes !== extentEnd(extent)) {
        throw new ColdStoreError("wrong_size", `${object} has ${bytes} bytes after its upload`);
      }
    } catch (error) {
      this.#counts.uploads.failed += 1;
      if (isDamage(error)) this.#reportDamage(candidate, error);
      else {
        this.noteFailure("upload", error, object);
        if (!isDiskFull(error)) this.#pause();
      }
      return this.#giveUp(store, object);
    }
    const { live, extents, topic } = partition;
    // Deleted, expired or compacted meanwhile, or about to be.
    if (!live || !extents.includes(extent) || topic.config.cleanupPolicy !== "delete") {
      return this.#giveUp(store, object);
    }
    extent.object = object;
    ledger.settleIntent(object);
    noteDirty(partition);
    this.#counts.uploads.ok += 1;
    this.#counts.uploadedBytes += extentEnd(extent);
    this.#lastUploadAtMs = clock.now();
    onEvent({
      kind: "offloaded",
      topic: topic.name,
      partition: partition.index,
      object,
      bytes: extentEnd(extent),
    });
  }

  async #send(store: ColdStore, { partition, extent, object }: Candidate): Promise<void> {
    const { segments } = this.#options;
    const path = extentPath(partition, extent);
    const lease = await segments.files.use(path);
    const check = new UploadCheck(extent, path);
    try {
      await store.put(object, {
        bytes: extentEnd(extent),
        read: async (position, length) => {
          const part = Buffer.allocUnsafe(length);
          const count = await lease.file.read(part, 0, length, position);
          check.add(part.subarray(0, count), position);
          if (count < length) throw check.damageAt(position + count);
          return part;
        },
      });
      check.end();
    } finally {
      lease.release();
    }
  }

  #reportDamage({ partition, extent }: Candidate, error: unknown): void {
    this.#damaged.add(extent);
    this.#options.onEvent({
      kind: "offload-damaged",
      topic: partition.topic.name,
      partition: partition.index,
      file: extentPath(partition, extent),
      position: (error as { position?: number }).position ?? 0,
    });
  }

  // The object may exist in spite of the failure. Otherwise the next pass or start removes it.
  async #giveUp(store: ColdStore, object: string): Promise<void> {
    try {
      await store.remove(object, true);
      this.#options.ledger.settleIntent(object);
    } catch (error) {
      this.noteFailure("remove", error, object);
      this.#pause();
    }
  }

  // Between passes there is no upload: these are of a killed process or of failed removals.
  async #resolveIntents(store: ColdStore): Promise<void> {
    for (const object of this.#options.ledger.intents) {
      if (this.#isStopped || this.#isPaused) return;
      await this.#giveUp(store, object);
    }
  }

  async #removeObjects(store: ColdStore): Promise<void> {
    const { ledger, checkpoint } = this.#options;
    if (ledger.removals.size === 0) return;
    // Objects may be removed only after a manifest without them.
    if ([...ledger.removals.values()].includes(false)) await checkpoint();
    const ready = [...ledger.removals].flatMap(([object, isReady]) => (isReady ? [object] : []));
    const queue = ready.slice(0, ROUND_REMOVALS_MAX).values();
    const lane = async () => {
      for (const object of queue) {
        if (this.#isStopped || this.#isPaused) return;
        try {
          await store.remove(object);
          ledger.settleRemoval(object);
          this.#counts.removals.ok += 1;
        } catch (error) {
          this.#counts.removals.failed += 1;
          this.noteFailure("remove", error, object);
          this.#pause();
        }
      }
    };
    await Promise.all(Array.from({ length: PARALLEL_REMOVALS }, lane));
  }

  async #compare(store: ColdStore): Promise<void> {
    const { clock, ledger, catalogue, onEvent } = this.#options;
    const nowMs = clock.now();
    if (this.#isPaused || ledger.logId === undefined) return;
    if (this.#comparedAtMs !== undefined && nowMs - this.#comparedAtMs < COMPARE_MS) return;
    const known = new Set<string>();
    for (const { extents } of catalogue.partitions()) {
      for (const { object } of extents) if (object !== undefined) known.add(object);
    }
    let count = 0;
    let example = "";
    try {
      for await (const { object } of store.list(objectPrefix(ledger.logId))) {
        if (known.has(object) || ledger.intents.has(object) || ledger.removals.has(object))
          continue;
        count += 1;
        example ||= object;
        if (this.#isStopped) return;
      }
    } catch (error) {
      this.noteFailure("list", error);
      throw error;
    }
    this.#comparedAtMs = nowMs;
    this.#counts.unknownObjects = count;
    if (count > 0) onEvent({ kind: "unknown-objects", count, example });
  }

  // The oldest copies go first, whatever the topics say, while the disk has less than twice the reserve.
  #relieveDisk(droppedBytes: number): number {
    const { space, catalogue, checkpointer } = this.#options;
    let missing = space.reserveBytes * 2 - space.freeBytes - droppedBytes;
    if (space.reserveBytes === 0 || missing <= 0) return 0;
    const copies: { partition: Partition; extent: Extent }[] = [];
    for (const partition of catalogue.partitions()) {
      for (const extent of partition.extents) {
        if (extent.object !== undefined && extent.isRemote !== true) {
          copies.push({ partition, extent });
        }
      }
    }
    copies.sort((one, other) => one.extent.maxTimestamp - other.extent.maxTimestamp);
    let dropped = 0;
    for (const { partition, extent } of copies) {
      if (missing <= 0) break;
      checkpointer.discardCopy(partition, extent);
      missing -= extent.length;
      dropped += extent.length;
    }
    return dropped;
  }

  #reportRemovals(): void {
    const { ledger, onEvent } = this.#options;
    if (ledger.isFull && !this.#wasFull) {
      onEvent({ kind: "removals-full", waiting: ledger.removals.size });
    }
    this.#wasFull = ledger.isFull;
  }

  #sinceOf(extent: Extent): number {
    let since = this.#pendingSince.get(extent);
    if (since === undefined) {
      since = this.#options.clock.now();
      this.#pendingSince.set(extent, since);
    }
    return since;
  }
}

/** True if a segment cannot be uploaded because of its contents. */
function isDamage(error: unknown): boolean {
  if (error instanceof LogError) return error.code === "corrupt";
  const { code } = error as NodeJS.ErrnoException;
  return code === "EIO" || code === "ENOENT";
}

function codeOf(error: unknown): string {
  if (error instanceof ColdStoreError || error instanceof LogError) return error.code;
  return (error as NodeJS.ErrnoException).code ?? "unknown";
}
