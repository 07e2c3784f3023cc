// The segment files: appends, syncs, indexes, removal.
import type { ColdReader, ReadableFile } from "../cold/cold-reader.ts";
import { OpenFiles, type FileLease } from "@platform/kernel/files";
import { readBatchHeader } from "../batch/header.ts";
import {
  extentEnd,
  extentName,
  extentPath,
  partitionFolder,
  segmentName,
  type Extent,
  type Partition,
  type TailBatch,
} from "../partition/partition.ts";
import type { Disk, DiskFile } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { encodeSegmentHeader, SEGMENT_HEADER_BYTES, type HeaderSource } from "./segment-header.ts";
import { SparseIndex } from "../partition/sparse-index.ts";

/** Bytes per read when an index is built. */
const SCAN_BYTES = 256 * 1024;

/** Batches written to a partition's own files, but not yet part of its extents. */
export interface OwnWrite {
  partition: Partition;
  extent: Extent;
  fresh: boolean;
  batches: readonly TailBatch[];
}

/** The segment files of all partitions. */
export class Segments {
  readonly #disk: Disk;
  readonly #cold: ColdReader;
  readonly #indexBytesMax: number;
  readonly files: OpenFiles<DiskFile>;
  /** Loaded indexes of extents that do not grow, by path; map order is the order of use. */
  readonly #indexes = new Map<string, SparseIndex>();
  #indexBytes = 0;
  /** Files of partitions with unsynced writes; the value is the file's folder if that needs a sync as well. */
  readonly #unsynced = new Map<string, string | undefined>();
  readonly #folders = new Set<string>();
  readonly #source: HeaderSource;

  constructor(
    disk: Disk,
    limits: { openFilesMax: number; indexBytesMax: number },
    source: HeaderSource,
    cold: ColdReader,
  ) {
    this.#disk = disk;
    this.#cold = cold;
    this.#source = source;
    this.#indexBytesMax = limits.indexBytesMax;
    this.files = new OpenFiles({
      filesMax: limits.openFilesMax,
      open: (path) => disk.open(path, "write"),
      close: (file) => file.close(),
    });
  }

  /**
   * Decides where batches go in the partition's own files: at the end of the last one, or into a new segment. The
   * returned extent describes only the new batches.
   */
  planOwn(partition: Partition, batches: readonly TailBatch[]): OwnWrite {
    const first = batches[0]!;
    let length = 0;
    let maxTimestamp = -1;
    for (const batch of batches) {
      length += batch.bytes.length;
      maxTimestamp = Math.max(maxTimestamp, batch.maxTimestamp);
    }
    const last = partition.extents.at(-1);
    const nextOffset = batches.at(-1)!.nextOffset;
    const fresh =
      last === undefined ||
      last.shared ||
      partition.rollNext ||
      last.length >= partition.topic.config.segmentBytes;
    const extent: Extent = {
      shared: false,
      file: fresh ? first.baseOffset : last.file,
      generation: fresh ? 0 : last.generation,
      position: fresh ? SEGMENT_HEADER_BYTES : last.position + last.length,
      length,
      baseOffset: first.baseOffset,
      nextOffset,
      maxTimestamp,
    };
    return { partition, extent, fresh, batches };
  }

  /** Writes planned batches. They are durable afterwards with `sync`, otherwise after `syncAll`. */
  async writeOwn(write: OwnWrite, sync: boolean): Promise<void> {
    const { partition, extent, fresh } = write;
    if (fresh && !partition.hasFolder) await this.#disk.makeFolder(partitionFolder(partition));
    if (!fresh) await this.#loadActiveIndex(partition);
    const path = extentPath(partition, extent);
    const lease = await (fresh ? this.#create(path) : this.files.use(path));
    try {
      const pieces = write.batches.map((batch) => batch.bytes);
      if (fresh) pieces.unshift(encodeSegmentHeader(this.#source, partition, extent.file));
      await lease.file.write(pieces, fresh ? 0 : extent.position);
      if (!sync) {
        const folder = fresh ? partitionFolder(partition) : this.#unsynced.get(path);
        this.#unsynced.set(path, folder);
        return;
      }
      await lease.file.sync();
      if (fresh) await this.#syncFolders(partition);
    } finally {
      lease.release();
    }
  }

  /** Makes written batches part of the partition. The caller guarantees that they are durable. */
  adoptOwn(write: OwnWrite): void {
    const { partition, extent, fresh, batches } = write;
    if (fresh) {
      this.#shelveActiveIndex(partition);
      partition.activeIndex = new SparseIndex(extent.position);
      partition.hasFolder = true;
      partition.rollNext = false;
      partition.extents.push({ ...extent });
    } else {
      const last = partition.extents.at(-1)!;
      last.length += extent.length;
      last.nextOffset = extent.nextOffset;
      last.maxTimestamp = Math.max(last.maxTimestamp, extent.maxTimestamp);
    }
    partition.extentBytes += extent.length;
    partition.flushedEnd = extent.nextOffset;
    for (const batch of batches) {
      partition.activeIndex?.add(batch.baseOffset, batch.bytes.length, batch.maxTimestamp);
    }
  }

  /** Syncs everything that was written without `sync`. */
  async syncAll(): Promise<void> {
    const pending = [...this.#unsynced];
    for (const [path, folder] of pending) {
      const lease = await this.#useIfThere(path);
      if (lease !== undefined) {
        try {
          await lease.file.sync();
          if (folder !== undefined) await this.#syncFolderTree(folder);
        } finally {
          lease.release();
        }
      }
      this.#unsynced.delete(path);
    }
  }

  /** Creates the folder of a partition's own segments. */
  makeFolder(partition: Partition): Promise<void> {
    return this.#disk.makeFolder(partitionFolder(partition));
  }

  /** The header of a complete segment that ends at `nextOffset`. */
  headerOf(partition: Partition, baseOffset: number, nextOffset: number): Buffer {
    return encodeSegmentHeader(this.#source, partition, baseOffset, nextOffset);
  }

  /** Makes a partition's folder and its file names durable. */
  syncPartitionFolder(partition: Partition): Promise<void> {
    return this.#syncFolders(partition);
  }

  /** The index of an extent in the partition's own files: the growing one, a loaded one, or one that is read or built now. */
  async indexOf(partition: Partition, extent: Extent): Promise<SparseIndex> {
    if (partition.activeIndex !== undefined && extent === partition.extents.at(-1)) {
      return partition.activeIndex;
    }
    const path = extentPath(partition, extent);
    const loaded = this.#indexes.get(path);
    if (loaded !== undefined && loaded.coveredBytes >= extentEnd(extent)) {
      this.#indexes.delete(path);
      this.#indexes.set(path, loaded);
      return loaded;
    }
    const index = await this.#buildIndex(partition, extent);
    this.#keepIndex(path, index);
    return index;
  }

  /** Writes the index of the growing extent, so that a restart need not scan it. */
  async saveActiveIndex(partition: Partition): Promise<void> {
    const extent = partition.extents.at(-1);
    const index = partition.activeIndex;
    if (extent === undefined || extent.shared || index === undefined) return;
    await this.#saveIndex(extentPath(partition, extent), index);
  }

  /** Writes the index of an extent that does not grow, so that it need not be read for it again. */
  async saveIndexOf(partition: Partition, extent: Extent): Promise<void> {
    await this.#saveIndex(extentPath(partition, extent), await this.indexOf(partition, extent));
  }

  /** The file of an extent for reading, or its object, whose reads end with the reason of `signal`. */
  async useExtent(
    partition: Partition,
    extent: Extent,
    signal?: AbortSignal,
  ): Promise<FileLease<ReadableFile>> {
    if (extent.isRemote !== true) return this.files.use(extentPath(partition, extent));
    const file = this.#cold.open(coldFileOf(partition, extent), signal);
    return { file, release: () => undefined };
  }

  /** Notes a read of local records: those of the store leave it room. */
  noteLocalRead(): void {
    this.#cold.noteLocalRead();
  }

  /** Makes the next read of an object fetch it again. */
  async refetch(partition: Partition, extent: Extent): Promise<void> {
    await this.#cold.drop(coldFileOf(partition, extent));
  }

  /** Moves the growing index of an idle partition to the cache. */
  shelveActiveIndex(partition: Partition): void {
    this.#shelveActiveIndex(partition);
  }

  /** Removes segment files, their indexes and the filters of their keys. */
  async remove(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      this.forget(path);
      await this.#disk.remove(path);
      await this.#disk.remove(indexPath(path));
      await this.#disk.remove(keysPath(path));
    }
  }

  /** Removes segment files whose contents are in objects; the indexes stay. */
  async removeCopies(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      this.files.forget(path);
      await this.#disk.remove(path);
    }
  }

  /** Drops open handles and indexes of a file. */
  forget(path: string): void {
    this.files.forget(path);
    const index = this.#indexes.get(path);
    if (index !== undefined) {
      this.#indexes.delete(path);
      this.#indexBytes -= index.memoryBytes;
    }
    this.#unsynced.delete(path);
  }

  async #buildIndex(partition: Partition, extent: Extent): Promise<SparseIndex> {
    const path = extentPath(partition, extent);
    const end = extentEnd(extent);
    const index = (await this.#readIndex(path, end)) ?? new SparseIndex(extent.position);
    if (index.coveredBytes >= end) return index;
    await this.#extendIndex(partition, extent, index, end);
    // Otherwise the next start would read the whole object again.
    if (extent.isRemote === true) await this.#saveIndex(path, index);
    return index;
  }

  async #readIndex(path: string, segmentBytes: number): Promise<SparseIndex | undefined> {
    let file;
    try {
      file = await this.#disk.open(indexPath(path), "read");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
    try {
      const bytes = Buffer.alloc(await file.size());
      await file.read(bytes, 0, bytes.length, 0);
      const index = SparseIndex.decode(bytes, segmentBytes);
      // An index that covers more than the file would seem to fit again once the segment has grown.
      if (index === undefined) await this.#disk.remove(indexPath(path));
      return index;
    } finally {
      await file.close();
    }
  }

  // Reads batch headers from the end of the index to the end of the extent.
  async #extendIndex(
    partition: Partition,
    extent: Extent,
    index: SparseIndex,
    end: number,
  ): Promise<void> {
    const lease = await this.useExtent(partition, extent);
    try {
      const chunk = Buffer.allocUnsafe(Math.min(SCAN_BYTES, end - index.coveredBytes));
      while (index.coveredBytes < end) {
        const start = index.coveredBytes;
        const wanted = Math.min(chunk.length, end - start);
        const count = await lease.file.read(chunk, 0, wanted, start);
        for (;;) {
          const at = index.coveredBytes - start;
          const header = at < count ? readBatchHeader(chunk.subarray(0, count), at) : undefined;
          if (header === undefined) break;
          index.add(header.baseOffset, header.bytes, header.maxTimestamp);
        }
        if (index.coveredBytes === start) {
          const name = extentName(partition, extent);
          throw new LogError("corrupt", `no batch at ${start} in ${name}`);
        }
      }
    } finally {
      lease.release();
    }
  }

  async #saveIndex(path: string, index: SparseIndex): Promise<void> {
    const bytes = index.encode();
    const file = await this.#disk.open(indexPath(path), "create");
    try {
      await file.write([bytes], 0);
    } finally {
      await file.close();
    }
  }

  // The growing index must cover the extent before batches are added.
  async #loadActiveIndex(partition: Partition): Promise<void> {
    if (partition.activeIndex !== undefined) return;
    const extent = partition.extents.at(-1)!;
    partition.activeIndex = await this.#buildIndex(partition, extent);
    const path = extentPath(partition, extent);
    const cached = this.#indexes.get(path);
    if (cached !== undefined) {
      this.#indexes.delete(path);
      this.#indexBytes -= cached.memoryBytes;
    }
  }

  #shelveActiveIndex(partition: Partition): void {
    const extent = partition.extents.at(-1);
    const index = partition.activeIndex;
    partition.activeIndex = undefined;
    if (extent !== undefined && index !== undefined && !extent.shared) {
      this.#keepIndex(extentPath(partition, extent), index);
    }
  }

  #keepIndex(path: string, index: SparseIndex): void {
    const before = this.#indexes.get(path);
    if (before !== undefined) this.#indexBytes -= before.memoryBytes;
    this.#indexes.delete(path);
    this.#indexes.set(path, index);
    this.#indexBytes += index.memoryBytes;
    for (const [oldest, dropped] of this.#indexes) {
      if (this.#indexBytes <= this.#indexBytesMax || oldest === path) return;
      this.#indexes.delete(oldest);
      this.#indexBytes -= dropped.memoryBytes;
    }
  }

  #create(path: string): Promise<FileLease<DiskFile>> {
    return this.files.use(path, (anew) => this.#disk.open(anew, "create"));
  }

  async #useIfThere(path: string): Promise<FileLease<DiskFile> | undefined> {
    try {
      return await this.files.use(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  #syncFolders(partition: Partition): Promise<void> {
    return this.#syncFolderTree(partitionFolder(partition));
  }

  // Syncs the folder each time; its parents only once, since they only hold its name.
  async #syncFolderTree(folder: string): Promise<void> {
    await this.#disk.syncFolder(folder);
    if (this.#folders.has(folder)) return;
    const topicFolder = folder.slice(0, folder.lastIndexOf("/"));
    await this.#disk.syncFolder(topicFolder);
    await this.#disk.syncFolder("topics");
    this.#folders.add(folder);
  }
}

function coldFileOf(partition: Partition, extent: Extent) {
  return { object: extent.object!, bytes: extentEnd(extent), partition: partition.uid };
}

/** The index file of a segment file. */
export function indexPath(path: string): string {
  return `${path.slice(0, -".log".length)}.index`;
}

/** The file with the filters of keys of a segment file. */
export function keysPath(path: string): string {
  return `${path.slice(0, -".log".length)}.keys`;
}

/** The name of a compacted segment until it is complete. */
export function cleanedPath(partition: Partition, base: number, generation: number): string {
  return `${partitionFolder(partition)}/${segmentName(base, generation)}.cleaned`;
}
