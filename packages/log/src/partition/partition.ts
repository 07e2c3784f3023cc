// The state of one partition: extents in segments, the tail in the journal, appends in flight.
import type { EpochStart, PartitionView, TopicView } from "../types.ts";
import type { SparseIndex } from "./sparse-index.ts";
import type { Producers } from "./producers.ts";

/*
 * Offsets of a partition, left to right:
 *
 *   logStart          flushedEnd          durableEnd          nextOffset
 *      ├── extents ───────┼── tail ────────────┼── in flight ──────┤
 *      │ in segment files │ in the journal and │ has an offset,    │
 *      │ (read from disk) │ in memory (read    │ waits for the     │
 *      │                  │ from memory)       │ disk (invisible)  │
 *
 * Extents are ascending; the first ones may be in shared files, the later ones in the partition's own
 * files. Only the last extent in such a file grows. Gaps between batches are legal (compaction, quarantine);
 * readers skip them.
 */

/** A range of a segment file with batches of one partition. Positions and lengths in bytes. */
export interface Extent {
  /** True: the extent is in a file shared by many small partitions. False: in the partition's own file. */
  shared: boolean;
  /** The number of a shared file; for the partition's own file, the base offset in its name. */
  file: number;
  /** Incremented each time compaction rewrites the partition's own file. */
  generation: number;
  position: number;
  length: number;
  baseOffset: number;
  nextOffset: number;
  maxTimestamp: number;
  /** The name of the object with a copy of the partition's own file; `undefined` without one. */
  object?: string;
  /** True: the file was removed, and the object is the only copy. */
  isRemote?: boolean;
}

/** A durable batch in the journal and in memory, not yet in a segment. */
export interface TailBatch {
  baseOffset: number;
  nextOffset: number;
  maxTimestamp: number;
  bytes: Buffer;
}

/** A partition. Only the log modifies it; users see `PartitionView`. */
export class Partition implements PartitionView {
  readonly topic: TopicView;
  readonly uid: number;
  readonly index: number;
  logStart = 0;
  flushedEnd = 0;
  durableEnd = 0;
  nextOffset = 0;
  /** Compaction has processed everything below this offset. */
  cleanedEnd = 0;
  epochs: EpochStart[] = [];
  extents: Extent[] = [];
  tail: TailBatch[] = [];
  tailBytes = 0;
  extentBytes = 0;
  producers: Producers | undefined;
  /** Index of the last extent in the partition's own files, while that extent is still growing. */
  activeIndex: SparseIndex | undefined;
  /**
   * Counts changes of the extents that the journal does not contain: a checkpoint moved the tail to a
   * segment, compaction replaced segments. `describedRevision` is in the manifest being written,
   * `recordedRevision` is durable there.
   */
  revision = 0;
  describedRevision = 0;
  recordedRevision = 0;
  /** A checkpoint is waiting to become the writer, so the next group must not write in place. */
  writerWanted = false;
  /** The next write to the partition's own files starts a new file. */
  rollNext = false;
  /** When the growing segment was begun, or found by a start; epoch milliseconds. */
  growingSinceMs: number | undefined;
  /** True once the partition's folder is durable on disk. */
  hasFolder = false;
  /** The journal file that describes this uid; 0 if none does. */
  describedIn = 0;
  live = true;
  #writer: "commit" | "checkpoint" | undefined;
  #freed: PromiseWithResolvers<void> | undefined;

  constructor(topic: TopicView, uid: number, index: number) {
    this.topic = topic;
    this.uid = uid;
    this.index = index;
  }

  /** The current writer to the partition's files. */
  get writer(): "commit" | "checkpoint" | undefined {
    return this.#writer;
  }

  set writer(writer: "commit" | "checkpoint" | undefined) {
    this.#writer = writer;
    if (writer !== undefined) return;
    this.#freed?.resolve();
    this.#freed = undefined;
  }

  /** Resolves when the present writer has finished. Another one may be first: check `writer` again. */
  get freed(): Promise<void> {
    this.#freed ??= Promise.withResolvers<void>();
    return this.#freed.promise;
  }

  get bytes(): number {
    return this.extentBytes + this.tailBytes;
  }

  /**
   * True if the manifest is behind the extents. Commit groups must not write in place then: recovery could
   * not tell how the manifest and the extents fit together.
   */
  get isUnrecorded(): boolean {
    return this.revision !== this.recordedRevision;
  }

  /** Makes a durable batch readable from memory. */
  pushTail(batch: TailBatch): void {
    this.tail.push(batch);
    this.tailBytes += batch.bytes.length;
    this.durableEnd = batch.nextOffset;
  }

  /** Drops the first `count` tail batches, which are in a segment now. */
  dropTail(count: number): void {
    const dropped = this.tail.slice(0, count);
    this.tail = this.tail.slice(count);
    for (const batch of dropped) this.tailBytes -= batch.bytes.length;
  }

  setExtents(extents: Extent[]): void {
    this.extents = extents;
    this.extentBytes = 0;
    for (const extent of extents) this.extentBytes += extent.length;
  }

  /** Records the start of `epoch` if it is new. */
  noteEpoch(epoch: number, startOffset: number): void {
    const last = this.epochs.at(-1);
    if (last === undefined || last.epoch < epoch) this.epochs.push({ epoch, startOffset });
  }
}

/** The folder of a partition's own segments. */
export function partitionFolder(partition: Partition): string {
  return `topics/${partition.topic.id.toString("hex")}/${partition.index}`;
}

/** The file of an extent. */
export function extentPath(partition: Partition, extent: Extent): string {
  if (extent.shared) return sharedPath(extent.file);
  return `${partitionFolder(partition)}/${segmentName(extent.file, extent.generation)}.log`;
}

/** The name under which damage of an extent is reported: its file, or its object if there is no file. */
export function extentName(partition: Partition, extent: Extent): string {
  return extent.isRemote === true ? extent.object! : extentPath(partition, extent);
}

/** The size of the file of an extent that does not grow, as far as it belongs to the extent. */
export function extentEnd(extent: Extent): number {
  return extent.position + extent.length;
}

/** The file of the shared segment `number`. */
export function sharedPath(number: number): string {
  return `shared/${String(number).padStart(16, "0")}.log`;
}

/** The name of a segment in the partition's folder, without its extension. */
export function segmentName(base: number, generation: number): string {
  return `${String(base).padStart(20, "0")}-${generation}`;
}
