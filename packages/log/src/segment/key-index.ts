// The filters of keys of closed segments: built once, kept beside the segment, read when a key is looked for.
import { setImmediate as nextTurn } from "node:timers/promises";
import { decodeBatch } from "../batch/compression.ts";
import { isDamage } from "../damage/damage-registry.ts";
import type { Disk } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { extentEnd, extentPath, type Extent, type Partition } from "../partition/partition.ts";
import { findRange } from "./find-range.ts";
import { hashKey, KeyRuns, KeyRunsBuilder } from "./key-runs.ts";
import { keysPath, type Segments } from "./segments.ts";
import { walkBatches, type ReadAt } from "./walk-batches.ts";

/** Memory for the filters that were used last. */
const MEMORY_BYTES_MAX = 32 * 1024 * 1024;

/** A place at which a key may be. */
export interface KeyPlace {
  readonly offset: number;
  /** Bytes to read there; `undefined` where no filters are. */
  readonly bytes: number | undefined;
  /** Highest time of the records that were passed, in epoch milliseconds; -1 without any. */
  readonly passedTime: number;
}

export class KeyIndex {
  readonly #disk: Disk;
  readonly #segments: Segments;
  /** By the path of the segment; map order is the order of use. */
  readonly #loaded = new Map<string, KeyRuns>();
  #loadedBytes = 0;
  /** Segments that are done: they have a file, or cannot have one because they are damaged. */
  readonly #done = new WeakSet<Extent>();

  constructor(disk: Disk, segments: Segments) {
    this.#disk = disk;
    this.#segments = segments;
  }

  /** True if the segment is closed, on this disk, and has no file yet as far as is known. */
  lacks(partition: Partition, extent: Extent): boolean {
    if (extent.shared || extent.isRemote === true || this.#done.has(extent)) return false;
    return extent !== partition.extents.at(-1) || partition.rollNext;
  }

  /**
   * Writes the file of a closed segment, unless it is there. A segment with a batch that cannot be read has none, since its keys
   * are not known.
   * `shouldStop` ends the work between two batches.
   */
  async build(partition: Partition, extent: Extent, shouldStop: () => boolean): Promise<void> {
    const path = extentPath(partition, extent);
    if ((await this.#load(path, extent)) === undefined) {
      const file = await this.#collect(partition, extent, shouldStop);
      if (shouldStop()) return;
      // Compaction, retention or a deletion may have come first.
      if (!partition.live || !partition.extents.includes(extent)) return;
      if (file !== undefined) await this.#write(keysPath(path), file);
    }
    this.#done.add(extent);
  }

  /** The first offset from `offset` on at which a record with a key may be; the durable end if there is none. */
  async find(partition: Partition, key: Buffer, offset: number): Promise<KeyPlace> {
    const wanted = hashKey(key);
    let from = offset;
    let passedTime = -1;
    for (;;) {
      const extent = partition.extents[findRange(partition.extents, from)];
      if (extent === undefined) break;
      from = Math.max(from, extent.baseOffset);
      const path = extentPath(partition, extent);
      const runs = extent.shared ? undefined : await this.#load(path, extent);
      if (runs === undefined) break;
      const found = runs.find(wanted, from);
      passedTime = Math.max(passedTime, found.passedTime);
      if (found.place !== undefined) return { ...found.place, passedTime };
      from = extent.nextOffset;
    }
    return { offset: from, bytes: undefined, passedTime };
  }

  async #load(path: string, extent: Extent): Promise<KeyRuns | undefined> {
    const known = this.#loaded.get(path);
    if (known !== undefined && known.coveredBytes === extentEnd(extent)) {
      this.#loaded.delete(path);
      this.#loaded.set(path, known);
      return known;
    }
    const bytes = await this.#read(keysPath(path));
    const runs = bytes === undefined ? undefined : KeyRuns.decode(bytes);
    if (runs?.coveredBytes !== extentEnd(extent)) return undefined;
    this.#keep(path, runs);
    return runs;
  }

  #keep(path: string, runs: KeyRuns): void {
    this.#drop(path);
    this.#loaded.set(path, runs);
    this.#loadedBytes += runs.memoryBytes;
    for (const oldest of this.#loaded.keys()) {
      if (this.#loadedBytes <= MEMORY_BYTES_MAX || oldest === path) return;
      this.#drop(oldest);
    }
  }

  #drop(path: string): void {
    const runs = this.#loaded.get(path);
    if (runs === undefined) return;
    this.#loaded.delete(path);
    this.#loadedBytes -= runs.memoryBytes;
  }

  async #read(path: string): Promise<Buffer | undefined> {
    let file;
    try {
      file = await this.#disk.open(path, "read");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
    try {
      const bytes = Buffer.alloc(await file.size());
      const count = await file.read(bytes, 0, bytes.length, 0);
      return bytes.subarray(0, count);
    } finally {
      await file.close();
    }
  }

  async #write(path: string, bytes: Buffer): Promise<void> {
    const file = await this.#disk.open(path, "create");
    try {
      await file.write([bytes], 0);
    } finally {
      await file.close();
    }
  }

  // Undefined if the segment has a batch that cannot be read.
  async #collect(
    partition: Partition,
    extent: Extent,
    shouldStop: () => boolean,
  ): Promise<Buffer | undefined> {
    try {
      return await this.#collectIntact(partition, extent, shouldStop);
    } catch (error) {
      // Retention may have removed the file, too.
      if (error instanceof LogError || isDamage(error)) return undefined;
      throw error;
    }
  }

  async #collectIntact(
    partition: Partition,
    extent: Extent,
    shouldStop: () => boolean,
  ): Promise<Buffer | undefined> {
    const end = extentEnd(extent);
    const lease = await this.#segments.useExtent(partition, extent);
    try {
      const read: ReadAt = (into, position) => lease.file.read(into, 0, into.length, position);
      const offsets = { first: extent.baseOffset, end: extent.nextOffset };
      const batches = walkBatches(read, extent.position, end, { offsets });
      const builder = new KeyRunsBuilder();
      for (;;) {
        const next = await batches.next();
        if (next.done === true) return next.value === end ? builder.encode(end) : undefined;
        if (shouldStop()) return undefined;
        const { header, bytes } = next.value;
        const { records } = await decodeBatch(bytes);
        builder.add(header.baseOffset + header.lastOffsetDelta + 1, header.bytes, records);
        // Requests come between two batches.
        await nextTurn();
      }
    } finally {
      lease.release();
    }
  }
}
