// Checkpoints: move tails to segments, write the manifest, trim the journal.
import type { Catalogue, Topic } from "../catalogue/catalogue.ts";
import {
  partitionDocument,
  topicDocument,
  type ManifestDocument,
} from "../catalogue/manifest-documents.ts";
import type { ObjectLedger } from "../catalogue/object-ledger.ts";
import type { Manifest } from "../catalogue/manifest.ts";
import { extentPath, type Extent, type Partition, type TailBatch } from "../partition/partition.ts";
import type { Disk } from "../disk/port.ts";
import type { CatalogueOperation } from "../journal/entry.ts";
import type { Journal } from "../journal/journal.ts";
import { readIntactBatches } from "../segment/intact-batches.ts";
import type { Segments } from "../segment/segments.ts";
import type { HeaderSource } from "../segment/segment-header.ts";
import { createSharedExtent, encodeSharedRun } from "../segment/shared-run.ts";
import type { Committer } from "../commit/committer.ts";
import { SharedSegments } from "../segment/shared-segments.ts";
import { DroppedFiles } from "./dropped-files.ts";

/** Size below which a partition uses shared segments. */
const SHARED_BYTES_MAX = 256 * 1024;
/** Extents in shared segments at which a partition's batches are merged. */
const SHARED_EXTENTS_MAX = 8;
/** Files of partitions that are flushed and synced in parallel; few, to leave threads for readers. */
const PARALLEL_FLUSHES = 2;

/** Options of a `Checkpointer`. */
export interface CheckpointerOptions {
  disk: Disk;
  catalogue: Catalogue;
  committer: Committer;
  journal: Journal;
  segments: Segments;
  manifest: Manifest;
  /** The highest number of a shared segment ever used. */
  sharedNumber: number;
  source: HeaderSource;
  ledger: ObjectLedger;
}

/** Moves tails to segments and writes the manifest. One checkpoint at a time. */
export class Checkpointer {
  readonly #options: CheckpointerOptions;
  readonly #changedTopics = new Set<Topic>();
  #removedTopics: string[] = [];
  readonly #dropped: DroppedFiles;
  readonly #shared: SharedSegments;

  constructor(options: CheckpointerOptions) {
    this.#options = options;
    const { disk, segments, sharedNumber, source } = options;
    this.#dropped = new DroppedFiles(disk, segments);
    this.#shared = new SharedSegments(disk, sharedNumber, source, (path) =>
      this.#dropped.add(path),
    );
    for (const partition of options.catalogue.partitions()) {
      for (const extent of partition.extents) if (extent.shared) this.#shared.add(extent);
    }
  }

  /** True if a checkpoint would write anything. */
  get isDue(): boolean {
    return (
      this.#options.committer.dirty.size > 0 ||
      this.#changedTopics.size > 0 ||
      this.#removedTopics.length > 0 ||
      this.hasGarbage ||
      this.#options.ledger.isDue ||
      this.#options.journal.hasEarlier
    );
  }

  /** True if a checkpoint would free files. */
  get hasGarbage(): boolean {
    return this.#dropped.hasRemovable;
  }

  /** Notes a durable change of the catalogue. */
  noteChange(change: CatalogueOperation, topic: Topic): void {
    if (change.kind !== "delete-topic") {
      this.#changedTopics.add(topic);
      return;
    }
    this.#changedTopics.delete(topic);
    this.#removedTopics.push(change.id);
    for (const partition of topic.partitions) {
      this.#options.committer.dirty.delete(partition);
      this.#options.committer.tailBytes -= partition.tailBytes;
      this.discard(partition, partition.extents);
      partition.setExtents([]);
      partition.tail = [];
      partition.tailBytes = 0;
      this.#dropped.addFolder(`topics/${change.id}/${partition.index}`);
    }
    this.#dropped.addFolder(`topics/${change.id}`);
  }

  /** Notes a topic whose manifest entry is out of date. */
  noteTopic(topic: Topic): void {
    this.#changedTopics.add(topic);
  }

  /** Notes extents that a partition dropped; their files are removed after the next manifest. */
  discard(partition: Partition, extents: readonly Extent[]): void {
    for (const extent of extents) {
      if (extent.shared) this.#shared.drop(extent);
      // Of a remote extent only the index is a file.
      else this.#dropped.add(extentPath(partition, extent));
      if (extent.object !== undefined) this.#options.ledger.addRemoval(extent.object);
    }
  }

  /** Drops the file of an extent with an object, after the next manifest. */
  discardCopy(partition: Partition, extent: Extent): void {
    extent.isRemote = true;
    this.#dropped.addCopy(extentPath(partition, extent));
    this.#options.committer.dirty.add(partition);
  }

  /**
   * The segment files that the last manifest and the journal after it refer to: those of all partitions with their
   * ends, and with `undefined` those that may be referred to as a whole. They are not removed until `release`. Call it
   * while no checkpoint runs.
   */
  hold(): { ends: Map<string, number | undefined>; release: () => void } {
    const ends = new Map<string, number | undefined>();
    for (const partition of this.#options.catalogue.partitions()) {
      for (const extent of partition.extents) {
        if (extent.shared || extent.isRemote === true) continue;
        const path = extentPath(partition, extent);
        ends.set(path, Math.max(ends.get(path) ?? 0, extent.position + extent.length));
      }
    }
    // Dropped since the last manifest, which still refers to them.
    for (const path of [...this.#shared.listPaths(), ...this.#dropped.paths]) {
      ends.set(path, undefined);
    }
    return { ends, release: this.#dropped.hold(ends.keys()) };
  }

  /** Runs a checkpoint. If it rejects, everything is still due. */
  async run(): Promise<{ partitions: number; bytes: number }> {
    const { committer, journal, segments } = this.#options;
    await this.#prepareVersion();
    const { ledger } = this.#options;
    const place = committer.appliedPlace;
    committer.inPlaceBytes = 0;
    const topics = [...this.#changedTopics];
    const dropped = this.#dropped.batch();
    this.#changedTopics.clear();
    const removed: string[] = [];
    const partitions = this.#takeDirty();
    ledger.begin();
    try {
      const bytes = await this.#flush(partitions);
      // Some partitions of an entry may be in segments now. In the modes without group sync the journal
      // must be on the medium too, otherwise the entry could be split.
      await journal.sync();
      const { manifest } = this.#options;
      const last: ManifestDocument = {
        kind: "checkpoint",
        generation: manifest.generation + 1,
        journal: place,
        leaderEpoch: committer.leaderEpoch,
        nextUid: this.#options.catalogue.nextUid,
        sharedNumber: this.#shared.number,
        garbage: [...dropped.paths, ...dropped.copies, ...this.#shared.emptied()],
      };
      // Data must be on the medium before the documents that refer to it.
      const syncData = () => segments.syncAll();
      if (manifest.wantsRewrite) await manifest.rewrite(this.#describeAll(removed, last), syncData);
      else
        await manifest.append(this.#describeChanges(topics, partitions, removed, last), syncData);
      ledger.confirm();
      await journal.noteGeneration(manifest.generation, place);
      await this.#dropped.remove(dropped);
      await journal.trim(place.file);
      for (const partition of partitions) {
        partition.recordedRevision = partition.describedRevision;
        await segments.saveActiveIndex(partition);
        this.#restIfIdle(partition);
      }
      return { partitions: partitions.length, bytes };
    } catch (error) {
      ledger.putBack();
      for (const topic of topics) if (topic.live) this.#changedTopics.add(topic);
      this.#removedTopics.unshift(...removed);
      for (const partition of partitions) if (partition.live) committer.dirty.add(partition);
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#shared.close();
  }

  // A program that does not know objects must not open this log: it would lose the segments without files. It refuses
  // the journal, and would rebuild a log of which it cannot read the manifest alone: so the journal comes first.
  async #prepareVersion(): Promise<void> {
    const { ledger, manifest, journal, committer } = this.#options;
    if (manifest.version === 3 && journal.version === 3) return;
    if (manifest.version !== 3 && !ledger.isUsed) return;
    journal.useVersion3();
    if (journal.version !== 3) await committer.rollJournal();
    manifest.useVersion3();
  }

  #takeDirty(): Partition[] {
    const { committer, catalogue } = this.#options;
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
      } else if (partition.bytes >= SHARED_BYTES_MAX) own.push(partition);
      else if (partition.tail.length > 0 || this.#needsMerge(partition)) shared.push(partition);
    }
    const queue = own.values();
    const lanes = Array.from({ length: PARALLEL_FLUSHES }, async () => {
      for (const partition of queue) bytes += await this.#flushOwn(partition);
    });
    const settled = await Promise.allSettled(lanes);
    const failed = settled.find((lane) => lane.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return bytes + (await this.#flushShared(shared));
  }

  async #claim(partition: Partition): Promise<boolean> {
    partition.writerWanted = true;
    while (partition.writer !== undefined) await partition.freed;
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
        ? await readIntactBatches(this.#options.segments, partition, sharedExtents)
        : undefined;
      const movesShared = read !== undefined;
      const earlier = read ?? [];
      const batches = [...earlier, ...partition.tail];
      if (batches.length === 0) return 0;
      const write = this.#options.segments.planOwn(partition, batches);
      await this.#options.segments.writeOwn(write, true);
      if (!partition.live) {
        this.#dropped.add(extentPath(partition, write.extent));
        return 0;
      }
      partition.revision++;
      if (movesShared) {
        this.discard(partition, sharedExtents);
        partition.setExtents([]);
      }
      this.#dropTail(partition, count);
      this.#options.segments.adoptOwn(write);
      return write.extent.length;
    } finally {
      partition.writer = undefined;
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
          // Compaction created a segment in the partition's own files while this checkpoint waited to become the writer.
          partition.writer = undefined;
          total += await this.#flushOwn(partition);
          if (!(await this.#claim(partition))) continue;
        }
        const count = ownsLast ? 0 : partition.tail.length;
        const merge = this.#needsMerge(partition);
        const shared = merge ? partition.extents.filter((extent) => extent.shared) : [];
        const member = { partition, batches: [] as TailBatch[], count, old: shared };
        round.push(member);
        const earlier = await readIntactBatches(this.#options.segments, partition, shared);
        if (earlier === undefined) member.old = [];
        member.batches = [...(earlier ?? []), ...partition.tail.slice(0, count)];
        for (const batch of member.batches) roundBytes += batch.bytes.length;
        if (roundBytes >= 1024 * 1024) {
          await this.#writeShared(round);
          total += roundBytes;
          for (const done of round) done.partition.writer = undefined;
          round = [];
          roundBytes = 0;
        }
      }
      if (round.length > 0) await this.#writeShared(round);
      return total + roundBytes;
    } finally {
      for (const { partition } of round) partition.writer = undefined;
    }
  }

  async #writeShared(
    round: readonly { partition: Partition; batches: TailBatch[]; count: number; old: Extent[] }[],
  ): Promise<void> {
    const open = await this.#shared.open();
    let position = open.end;
    const runs = round.map(({ partition, batches }) => {
      const run = encodeSharedRun(open.salt, position, partition, batches);
      position += run.bytes;
      return run;
    });
    const pieces = runs.flatMap((run) => run.pieces);
    await open.file.write(pieces, open.end);
    // Before anything refers to the batches: from here on they are read from the segment.
    await open.file.sync();
    for (const [at, { partition, batches, count, old }] of round.entries()) {
      const extent = createSharedExtent(open.number, runs[at]!.position, batches);
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
    return count >= SHARED_EXTENTS_MAX;
  }

  *#describeChanges(
    topics: readonly Topic[],
    partitions: readonly Partition[],
    removed: string[],
    last: ManifestDocument,
  ): Generator<ManifestDocument> {
    const { ledger } = this.#options;
    yield* ledger.describeIntents();
    for (const topic of topics) if (topic.live) yield topicDocument(topic);
    for (const partition of partitions) if (partition.live) yield describe(partition);
    // Last, since a topic may be deleted during the write: then not all of its partitions were described.
    removed.push(...this.#removedTopics.splice(0));
    for (const id of removed) yield { kind: "topic-removed", id };
    yield* ledger.describeRemovals();
    yield last;
  }

  // Everything that is not described is removed.
  *#describeAll(removed: string[], last: ManifestDocument): Generator<ManifestDocument> {
    const { ledger } = this.#options;
    yield* ledger.describeAllIntents();
    for (const topic of this.#options.catalogue.byName.values()) {
      yield topicDocument(topic);
      for (const partition of topic.partitions) yield describe(partition);
    }
    removed.push(...this.#removedTopics.splice(0));
    for (const id of removed) yield { kind: "topic-removed", id };
    yield* ledger.describeAllRemovals();
    yield last;
  }

  // Nothing new since the flush: the index is on the disk and need not stay in memory.
  #restIfIdle(partition: Partition): void {
    if (partition.writer === undefined && !this.#options.committer.dirty.has(partition)) {
      this.#options.segments.shelveActiveIndex(partition);
    }
  }

  #dropTail(partition: Partition, count: number): void {
    const before = partition.tailBytes;
    partition.dropTail(count);
    this.#options.committer.tailBytes -= before - partition.tailBytes;
  }
}

function describe(partition: Partition): ManifestDocument {
  partition.describedRevision = partition.revision;
  return partitionDocument(partition);
}
