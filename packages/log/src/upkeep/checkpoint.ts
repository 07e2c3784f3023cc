// Checkpoints: the tails go into segments, the manifest says so, the journal is trimmed.
import type { Catalogue, Topic } from "../catalogue/catalogue.ts";
import {
  partitionDocument,
  topicDocument,
  type ManifestDocument,
} from "../catalogue/manifest-documents.ts";
import type { Manifest } from "../catalogue/manifest.ts";
import { extentPath, type Extent, type Partition, type TailBatch } from "../partition/partition.ts";
import type { Disk } from "../disk/port.ts";
import type { CatalogueOperation } from "../journal/entry.ts";
import type { Journal } from "../journal/journal.ts";
import { readIntactBatches } from "../segment/intact-batches.ts";
import type { Segments } from "../segment/segments.ts";
import type { HeaderSource } from "../segment/segment-header.ts";
import { encodeStretch } from "../segment/shared-stretch.ts";
import type { Committer } from "../commit/committer.ts";
import { SharedSegments } from "../segment/shared-segments.ts";

/** A partition with fewer bytes than this lives in shared segments. */
const sharedBytesMax = 256 * 1024;
/** Extents in shared segments that a partition may have before they are put together. */
const sharedExtentsMax = 8;
/** Own files flushed and synced at the same time, so that readers find a free thread. */
const parallelFlushes = 2;

/** What the checkpointer works with. */
export type CheckpointParts = {
  disk: Disk;
  catalogue: Catalogue;
  committer: Committer;
  journal: Journal;
  segments: Segments;
  manifest: Manifest;
  /** Highest number of a shared segment that was ever used. */
  sharedNumber: number;
  source: HeaderSource;
};

/** Moves tails to segments and writes the manifest. One checkpoint at a time. */
export class Checkpointer {
  readonly #parts: CheckpointParts;
  readonly #changedTopics = new Set<Topic>();
  #removedTopics: string[] = [];
  /** Files that nothing refers to any more once the next manifest is written. */
  #garbage: string[] = [];
  #garbageFolders: string[] = [];
  readonly #shared: SharedSegments;

  constructor(parts: CheckpointParts) {
    this.#parts = parts;
    this.#shared = new SharedSegments(parts.disk, parts.sharedNumber, parts.source, (path) =>
      this.#garbage.push(path),
    );
    for (const partition of parts.catalogue.partitions()) {
      for (const extent of partition.extents) if (extent.shared) this.#shared.add(extent);
    }
  }

  /** Whether there is anything that a checkpoint would write down. */
  get isDue(): boolean {
    return (
      this.#parts.committer.dirty.size > 0 ||
      this.#changedTopics.size > 0 ||
      this.#removedTopics.length > 0 ||
      this.#garbage.length > 0 ||
      this.#parts.journal.hasEarlier
    );
  }

  /** Whether a checkpoint would free files. */
  get hasGarbage(): boolean {
    return this.#garbage.length > 0;
  }

  /** Takes note of a durable change of the catalogue. */
  noteChange(change: CatalogueOperation, topic: Topic): void {
    if (change.kind !== "delete-topic") {
      this.#changedTopics.add(topic);
      return;
    }
    this.#changedTopics.delete(topic);
    this.#removedTopics.push(change.id);
    for (const partition of topic.partitions) {
      this.#parts.committer.dirty.delete(partition);
      this.#parts.committer.tailBytes -= partition.tailBytes;
      this.discard(partition, partition.extents);
      partition.setExtents([]);
      partition.tail = [];
      partition.tailBytes = 0;
      this.#garbageFolders.push(`topics/${change.id}/${partition.index}`);
    }
    this.#garbageFolders.push(`topics/${change.id}`);
  }

  /** Takes note of a topic that the manifest does not know as it is. */
  noteTopic(topic: Topic): void {
    this.#changedTopics.add(topic);
  }

  /** Takes note of extents that a partition gave up; their files go after the next manifest. */
  discard(partition: Partition, extents: readonly Extent[]): void {
    for (const extent of extents) {
      if (extent.shared) this.#shared.drop(extent);
      else this.#garbage.push(extentPath(partition, extent));
    }
  }

  /** One checkpoint. Rejects if the disk refuses; everything is then still due. */
  async run(): Promise<{ partitions: number; bytes: number }> {
    const { committer, journal, segments } = this.#parts;
    const place = committer.appliedPlace;
    committer.inPlaceBytes = 0;
    const topics = [...this.#changedTopics];
    const garbage = [...this.#garbage];
    const folders = [...this.#garbageFolders];
    this.#changedTopics.clear();
    const removed: string[] = [];
    const partitions = this.#takeDirty();
    try {
      const bytes = await this.#flush(partitions);
      // Of an entry over several partitions some may be in segments now: in the modes that do not
      // sync by themselves the journal has to be on the medium too, or the entry could be halved.
      await journal.sync();
      const { manifest } = this.#parts;
      const last: ManifestDocument = {
        kind: "checkpoint",
        generation: manifest.generation + 1,
        journal: place,
        leaderEpoch: committer.leaderEpoch,
        nextUid: this.#parts.catalogue.nextUid,
        sharedNumber: this.#shared.number,
        garbage: [...garbage, ...this.#shared.emptied()],
      };
      // What the documents say has to be on the medium before they are.
      const syncData = () => segments.syncAll();
      if (manifest.wantsRewrite) await manifest.rewrite(this.#describeAll(removed, last), syncData);
      else
        await manifest.append(this.#describeChanges(topics, partitions, removed, last), syncData);
      await journal.noteGeneration(manifest.generation, place);
      await this.#clear(garbage, folders, place.file);
      for (const partition of partitions) {
        partition.recordedRevision = partition.describedRevision;
        await segments.saveActiveIndex(partition);
        this.#restIfIdle(partition);
      }
      return { partitions: partitions.length, bytes };
    } catch (error) {
      for (const topic of topics) if (topic.live) this.#changedTopics.add(topic);
      this.#removedTopics.unshift(...removed);
      for (const partition of partitions) if (partition.live) committer.dirty.add(partition);
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#shared.close();
  }

  #takeDirty(): Partition[] {
    const { committer, catalogue } = this.#parts;
    const partitions = new Set(committer.dirty);
    committer.dirty.clear();
    const evacuated = this.#shared.evacuate(catalogue.partitions());
    return [...partitions.union(new Set(evacuated))];
  }

  async #flush(partitions: readonly Partition[]): Promise<number> {
    let bytes = 0;
    const own: Partition[] = [];
    const shared: Partition[] = [];
    for (const partition of partitions) {
      if (!partition.live) continue;
      const last = partition.extents.at(-1);
      if (last?.shared === false) {
        if (partition.tail.length > 0) own.push(partition);
        if (this.#needsMerge(partition)) shared.push(partition);
      } else if (partition.bytes >= sharedBytesMax) own.push(partition);
      else if (partition.tail.length > 0 || this.#needsMerge(partition)) shared.push(partition);
    }
    const queue = own.values();
    const lanes = Array.from({ length: parallelFlushes }, async () => {
      for (const partition of queue) bytes += await this.#flushOwn(partition);
    });
    const settled = await Promise.allSettled(lanes);
    const failed = settled.find((lane) => lane.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return bytes + (await this.#flushShared(shared));
  }

  async #claim(partition: Partition): Promise<boolean> {
    partition.writerWanted = true;
    while (partition.writer !== "nobody") await this.#parts.committer.whenGroupDone();
    partition.writerWanted = false;
    if (!partition.live) return false;
    partition.writer = "checkpoint";
    return true;
  }

  async #flushOwn(partition: Partition): Promise<number> {
    if (!(await this.#claim(partition))) return 0;
    try {
      const count = partition.tail.length;
      const sharedExtents = partition.extents.filter((extent) => extent.shared);
      const isAllShared = sharedExtents.length === partition.extents.length;
      const read = isAllShared
        ? await readIntactBatches(this.#parts.segments, partition, sharedExtents)
        : undefined;
      const movesShared = read !== undefined;
      const earlier = read ?? [];
      const batches = [...earlier, ...partition.tail];
      if (batches.length === 0) return 0;
      const write = this.#parts.segments.planOwn(partition, batches);
      await this.#parts.segments.writeOwn(write, true);
      if (!partition.live) {
        this.#garbage.push(extentPath(partition, write.extent));
        return 0;
      }
      partition.revision++;
      if (movesShared) {
        this.discard(partition, sharedExtents);
        partition.setExtents([]);
      }
      this.#dropTail(partition, count);
      this.#parts.segments.adoptOwn(write);
      return write.extent.length;
    } finally {
      partition.writer = "nobody";
    }
  }

  async #flushShared(partitions: readonly Partition[]): Promise<number> {
    let total = 0;
    let round: { partition: Partition; batches: TailBatch[]; count: number; old: Extent[] }[] = [];
    let roundBytes = 0;
    try {
      for (const partition of partitions) {
        if (!(await this.#claim(partition))) continue;
        const ownsLast = partition.extents.at(-1)?.shared === false;
        if (ownsLast && partition.tail.length > 0) {
          // Compaction gave it a segment of its own while it waited for its turn.
          partition.writer = "nobody";
          total += await this.#flushOwn(partition);
          if (!(await this.#claim(partition))) continue;
        }
        const count = ownsLast ? 0 : partition.tail.length;
        const merge = this.#needsMerge(partition);
        const shared = merge ? partition.extents.filter((extent) => extent.shared) : [];
        const member = { partition, batches: [] as TailBatch[], count, old: shared };
        round.push(member);
        const earlier = await readIntactBatches(this.#parts.segments, partition, shared);
        if (earlier === undefined) member.old = [];
        member.batches = [...(earlier ?? []), ...partition.tail.slice(0, count)];
        for (const batch of member.batches) roundBytes += batch.bytes.length;
        if (roundBytes >= 1024 * 1024) {
          await this.#writeShared(round);
          total += roundBytes;
          for (const done of round) done.partition.writer = "nobody";
          round = [];
          roundBytes = 0;
        }
      }
      if (round.length > 0) await this.#writeShared(round);
      return total + roundBytes;
    } finally {
      for (const { partition } of round) partition.writer = "nobody";
    }
  }

  async #writeShared(
    round: readonly { partition: Partition; batches: TailBatch[]; count: number; old: Extent[] }[],
  ): Promise<void> {
    const open = await this.#shared.open();
    let position = open.end;
    const stretches = round.map(({ partition, batches }) => {
      const stretch = encodeStretch(open.salt, position, partition, batches);
      position += stretch.bytes;
      return stretch;
    });
    const pieces = stretches.flatMap((stretch) => stretch.pieces);
    await open.file.write(pieces, open.end);
    // Before anything refers to the stretch: extents are read from here on.
    await open.file.sync();
    for (const [at, { partition, batches, count, old }] of round.entries()) {
      const extent = sharedExtent(open.number, stretches[at]!.position, batches);
      if (!partition.live) continue;
      partition.revision++;
      this.discard(partition, old);
      const kept = partition.extents.filter((before) => !old.includes(before));
      if (extent !== undefined) {
        const at = kept.findIndex((before) => before.baseOffset >= extent.nextOffset);
        kept.splice(at < 0 ? kept.length : at, 0, extent);
        partition.flushedEnd = Math.max(partition.flushedEnd, extent.nextOffset);
        this.#shared.add(extent);
      }
      partition.setExtents(kept);
      this.#dropTail(partition, count);
    }
    this.#shared.advance(open, position);
  }

  #needsMerge(partition: Partition): boolean {
    let count = 0;
    for (const extent of partition.extents) {
      if (!extent.shared) break;
      count++;
      if (this.#shared.isEvacuated(extent.file)) return true;
    }
    return count >= sharedExtentsMax;
  }

  *#describeChanges(
    topics: readonly Topic[],
    partitions: readonly Partition[],
    removed: string[],
    last: ManifestDocument,
  ): Generator<ManifestDocument> {
    for (const topic of topics) if (topic.live) yield topicDocument(topic);
    for (const partition of partitions) if (partition.live) yield describe(partition);
    // Last, as a topic may go while we write: then its partitions were not described to the end.
    removed.push(...this.#removedTopics.splice(0));
    for (const id of removed) yield { kind: "topic-removed", id };
    yield last;
  }

  // What is not mentioned is gone.
  *#describeAll(removed: string[], last: ManifestDocument): Generator<ManifestDocument> {
    for (const topic of this.#parts.catalogue.byName.values()) {
      yield topicDocument(topic);
      for (const partition of topic.partitions) yield describe(partition);
    }
    removed.push(...this.#removedTopics.splice(0));
    for (const id of removed) yield { kind: "topic-removed", id };
    yield last;
  }

  async #clear(garbage: string[], folders: string[], journalFile: number): Promise<void> {
    await this.#parts.segments.remove(garbage);
    for (const folder of folders) await this.#parts.disk.removeFolder(folder);
    this.#garbage.splice(0, garbage.length);
    this.#garbageFolders.splice(0, folders.length);
    await this.#parts.journal.trim(journalFile);
  }

  // Nothing new since the flush: the index is on the disk, memory need not hold it.
  #restIfIdle(partition: Partition): void {
    if (partition.writer === "nobody" && !this.#parts.committer.dirty.has(partition)) {
      this.#parts.segments.shelveActiveIndex(partition);
    }
  }

  #dropTail(partition: Partition, count: number): void {
    const before = partition.tailBytes;
    partition.dropTail(count);
    this.#parts.committer.tailBytes -= before - partition.tailBytes;
  }
}

function describe(partition: Partition): ManifestDocument {
  partition.describedRevision = partition.revision;
  return partitionDocument(partition);
}

function sharedExtent(
  file: number,
  position: number,
  batches: readonly TailBatch[],
): Extent | undefined {
  const first = batches[0];
  if (first === undefined) return undefined;
  let length = 0;
  let maxTimestamp = -1;
  for (const batch of batches) {
    length += batch.bytes.length;
    maxTimestamp = Math.max(maxTimestamp, batch.maxTimestamp);
  }
  return {
    shared: true,
    file,
    generation: 0,
    position,
    length,
    baseOffset: first.baseOffset,
    nextOffset: batches.at(-1)!.nextOffset,
    maxTimestamp,
  };
}
