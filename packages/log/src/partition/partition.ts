// One partition's state: what is on its segments, what only the journal holds, what is in flight.
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
 * Extents are ascending; the first ones may lie in shared files, the later ones in files of the
 * partition's own. Only the last own extent grows. Gaps between batches are legal (compaction,
 * quarantine); readers step over them.
 */

/** A stretch of a segment file that holds batches of one partition. Positions and lengths in bytes. */
export type Extent = {
  /** In a file that many small partitions share, or in one of the partition's own. */
  shared: boolean;
  /** Shared: the file's number. Own: the base offset in the file's name. */
  file: number;
  /** Own: raised each time compaction rewrites the file. */
  generation: number;
  position: number;
  length: number;
  baseOffset: number;
  nextOffset: number;
  maxTimestamp: number;
};

/** A durable batch that is in the journal and in memory, not yet in a segment. */
export type TailBatch = {
  baseOffset: number;
  nextOffset: number;
  maxTimestamp: number;
  bytes: Buffer;
};

/** A partition. The engine changes it, everyone else sees `PartitionView`. */
export class Partition implements PartitionView {
  readonly topic: TopicView;
  readonly uid: number;
  readonly index: number;
  logStart = 0;
  flushedEnd = 0;
  durableEnd = 0;
  nextOffset = 0;
  /** Compaction has looked at everything below. */
  cleanedEnd = 0;
  epochs: EpochStart[] = [];
  extents: Extent[] = [];
  tail: TailBatch[] = [];
  tailBytes = 0;
  extentBytes = 0;
  producers: Producers | undefined;
  /** The index of the last own extent while it grows. */
  activeIndex: SparseIndex | undefined;
  /** Who writes to the partition's files right now. */
  writer: "nobody" | "commit" | "checkpoint" = "nobody";
  /**
   * Counts changes of the extents that the journal does not know: a checkpoint moved the tail to a
   * segment, compaction replaced segments. `describedRevision` went into the manifest that is being
   * written, `recordedRevision` is durable there.
   */
  revision = 0;
  describedRevision = 0;
  recordedRevision = 0;
  /** A checkpoint waits to be the writer, so the next group leaves it alone. */
  writerWanted = false;
  /** The next write to an own file begins a new one. */
  rollNext = false;
  /** The partition's folder is there and durable. */
  hasFolder = false;
  /** The journal file that says whose uid this is; 0 if none does. */
  describedIn = 0;
  live = true;

  constructor(topic: TopicView, uid: number, index: number) {
    this.topic = topic;
    this.uid = uid;
    this.index = index;
  }

  get bytes(): number {
    return this.extentBytes + this.tailBytes;
  }

  /**
   * Whether the manifest is behind the extents. While it is, groups must not write in place behind
   * them: a recovery could not tell how the two join.
   */
  get isUnrecorded(): boolean {
    return this.revision !== this.recordedRevision;
  }

  /** Makes a durable batch visible from memory. */
  pushTail(batch: TailBatch): void {
    this.tail.push(batch);
    this.tailBytes += batch.bytes.length;
    this.durableEnd = batch.nextOffset;
  }

  /** Drops the first `count` tail batches: they are in a segment now. */
  dropTail(count: number): void {
    const dropped = this.tail.slice(0, count);
    this.tail = this.tail.slice(count);
    for (const batch of dropped) this.tailBytes -= batch.bytes.length;
  }

  /** Replaces the extents. */
  setExtents(extents: Extent[]): void {
    this.extents = extents;
    this.extentBytes = 0;
    for (const extent of extents) this.extentBytes += extent.length;
  }

  /** Notes that `epoch` begins at `startOffset`, if it is a new one. */
  noteEpoch(epoch: number, startOffset: number): void {
    const last = this.epochs.at(-1);
    if (last === undefined || last.epoch < epoch) this.epochs.push({ epoch, startOffset });
  }
}

/** The folder of a partition's own segments. */
export function partitionFolder(partition: Partition): string {
  return `topics/${partition.topic.id.toString("hex")}/${partition.index}`;
}

/** The file that an extent lies in. */
export function extentPath(partition: Partition, extent: Extent): string {
  if (extent.shared) return sharedPath(extent.file);
  return `${partitionFolder(partition)}/${segmentName(extent.file, extent.generation)}.log`;
}

/** The file of the shared segment `number`. */
export function sharedPath(number: number): string {
  return `shared/${String(number).padStart(16, "0")}.log`;
}

/** The name of an own segment without its ending. */
export function segmentName(base: number, generation: number): string {
  return `${String(base).padStart(20, "0")}-${generation}`;
}
