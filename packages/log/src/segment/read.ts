// Reads whole batches of a partition, by offset and by time, from files and from memory.
import {
  BATCH_HEADER_BYTES,
  isBatchIntact,
  isLargeBatchIntact,
  nextOffsetOf,
  readBatchHeader,
} from "../batch/header.ts";
import { nextTurn, SLICE_BYTES, Slices } from "../batch/slice.ts";
import { extentName, extentPath, type Extent, type Partition } from "../partition/partition.ts";
import { DamagedError } from "../damage/damaged-error.ts";
import { LogError } from "../errors.ts";
import type { Damage, ReadOptions, ReadResult } from "../types.ts";
import { BatchWindow } from "./batch-window.ts";
import { OffsetOrder } from "./offset-order.ts";
import { isDamage, type DamageRegistry } from "../damage/damage-registry.ts";
import { findRange } from "./find-range.ts";
import { exploreDamage } from "./explore-damage.ts";
import { INDEX_INTERVAL_BYTES } from "../partition/sparse-index.ts";
import type { Segments } from "./segments.ts";
import { findFirstCandidate, searchBatches } from "./time-search.ts";
import { VerifiedRanges } from "./verified-ranges.ts";

/** Minimum size of a read; it includes the following small batches. */
const READ_BYTES_MIN = 4096;
/** Positions kept for all readers together. */
const PLACES_KEPT = 4096;

/** Options of a `Reader`. */
export interface ReaderOptions {
  segments: Segments;
  damages: DamageRegistry;
  /** Called with newly found damage. Must not throw. */
  onDamage: (partition: Partition, damage: Damage) => void;
  /** Called with an extent whose file is damaged and whose object is to take its place. Must not throw. */
  onDamagedCopy: (partition: Partition, extent: Extent, reason: string) => void;
}

/** Bounds of a read in one extent. */
interface ExtentBounds {
  bytesMax: number;
  /** Bytes that were found in earlier extents. */
  bytesBefore: number;
  signal: ReadOptions["signal"];
  memory: ReadOptions["memory"];
}

/**
 * Reads whole batches. Data from files is verified against its checksums, again after a few minutes. Damage makes only
 * the batches that it touches unreadable.
 */
export class Reader {
  readonly #segments: Segments;
  readonly #damages: DamageRegistry;
  readonly #onDamage: ReaderOptions["onDamage"];
  readonly #onDamagedCopy: ReaderOptions["onDamagedCopy"];
  readonly #places = new ReadPlaces();
  readonly #verified = new VerifiedRanges();

  constructor({ segments, damages, onDamage, onDamagedCopy }: ReaderOptions) {
    this.#segments = segments;
    this.#damages = damages;
    this.#onDamage = onDamage;
    this.#onDamagedCopy = onDamagedCopy;
  }

  /**
   * Reads whole batches from the one that contains `offset` on, at most `bytesMax` bytes; a first batch that is larger
   * is returned alone. Returns nothing past the durable end.
   * Rejects with `offset-out-of-range`, `unknown-topic` after a deletion, `corrupt` (`DamagedError`), and with the reason of
   * `signal` while it reads an object. Bytes from files are read into `memory`, if it is given.
   */
  async read(
    partition: Partition,
    offset: number,
    bytesMax: number,
    { signal, memory }: ReadOptions = {},
  ): Promise<ReadResult> {
    const buffers: Buffer[] = [];
    let bytes = 0;
    let next = offset;
    let isLocal = true;
    for (;;) {
      checkRange(partition, next);
      const room = bytesMax - bytes;
      if (bytes > 0 && room < BATCH_HEADER_BYTES) break;
      const extent = partition.extents[findRange(partition.extents, next)];
      if (extent === undefined) {
        const fromMemory = readTail(partition, next, room, bytes === 0);
        buffers.push(...fromMemory.buffers);
        bytes += fromMemory.bytes;
        next = fromMemory.nextOffset;
        break;
      }
      // Records that were found on the disk do not wait for those in the store.
      if (bytes > 0 && extent.isRemote === true && isLocal) break;
      isLocal = extent.isRemote !== true;
      const bounds = { bytesMax: room, bytesBefore: bytes, signal, memory };
      const found = await this.#readOrExplain(partition, extent, next, bounds);
      // Compaction or retention replaced the file meanwhile, or there is damage after the batches found so far.
      if (found === "replaced") continue;
      if (found === "damaged") break;
      if (found.bytes > 0) buffers.push(...found.buffers);
      bytes += found.bytes;
      next = found.nextOffset;
      if (next < extent.nextOffset) break;
    }
    if (isLocal && bytes > 0) this.#segments.noteLocalRead();
    return { buffers, bytes, nextOffset: next };
  }

  /** True if the record at an offset is only in the object store. */
  isRemote(partition: Partition, offset: number): boolean {
    return partition.extents[findRange(partition.extents, offset)]?.isRemote === true;
  }

  /**
   * Offset and time of the first record at or after `timestamp` (epoch milliseconds); `undefined` if all are older.
   * Batches that cannot be decompressed count with their first offset; damaged ones are skipped.
   */
  async findTimestamp(
    partition: Partition,
    timestamp: number,
  ): Promise<{ offset: number; timestamp: number } | undefined> {
    let next = await findFirstCandidate(this.#segments, partition, timestamp);
    while (next < partition.durableEnd) {
      const { buffers, nextOffset } = await this.#readPastDamage(partition, next);
      for (const buffer of buffers) {
        const found = await searchBatches(buffer, timestamp, partition.logStart);
        if (found !== undefined) return found;
      }
      if (nextOffset <= next) return undefined;
      next = nextOffset;
    }
    return undefined;
  }

  async #readPastDamage(partition: Partition, offset: number): Promise<ReadResult> {
    try {
      return await this.read(partition, offset, 1 << 20);
    } catch (error) {
      if (!(error instanceof DamagedError)) throw error;
      return { buffers: [], bytes: 0, nextOffset: error.damage.resumeOffset };
    }
  }

  /** Calls `#readExtent`. Damage after batches that were already found is left to the next read. */
  async #readOrExplain(
    partition: Partition,
    extent: Extent,
    offset: number,
    bounds: ExtentBounds,
  ): Promise<ReadResult | "replaced" | "damaged"> {
    const { bytesBefore } = bounds;
    const wasRemote = extent.isRemote;
    try {
      this.#damages.check(partition, offset);
      return await this.#readExtent(partition, extent, offset, bounds);
    } catch (error) {
      if (error instanceof DamagedError || !isDamage(error)) {
        if (error instanceof DamagedError && bytesBefore > 0) return "damaged";
        throw error;
      }
      if (!partition.extents.includes(extent) || extent.isRemote !== wasRemote) return "replaced";
      if (extent.object !== undefined && extent.isRemote !== true) {
        this.#onDamagedCopy(partition, extent, error.message);
        return "replaced";
      }
      if (bytesBefore > 0) return "damaged";
      const damage = await this.#explore(partition, extent, offset, error);
      // Intact by now: the failure was transient, and the reader may retry.
      if (damage === undefined) throw new LogError("corrupt", error.message, { cause: error });
      const isNew = this.#damages.add(partition, damage);
      if (isNew) this.#onDamage(partition, damage);
      // The damage is before the offset: the next attempt starts after it.
      if (isNew && damage.resumeOffset <= offset) return "replaced";
      throw new DamagedError(damage);
    }
  }

  async #readExtent(
    partition: Partition,
    extent: Extent,
    offset: number,
    bounds: ExtentBounds,
  ): Promise<ReadResult> {
    if (extent.isRemote !== true) return this.#readFile(partition, extent, offset, bounds);
    try {
      return await this.#readFile(partition, extent, offset, bounds);
    } catch (error) {
      if (!isDamage(error) || isMissing(error)) throw error;
    }
    // The chunk on this disk may be damaged while the object is not.
    await this.#segments.refetch(partition, extent);
    return this.#readFile(partition, extent, offset, bounds);
  }

  async #readFile(
    partition: Partition,
    extent: Extent,
    offset: number,
    { bytesMax, bytesBefore, signal, memory }: ExtentBounds,
  ): Promise<ReadResult> {
    // The extent may grow during the read; its current end is enough.
    const end = extent.position + extent.length;
    const extentNext = extent.nextOffset;
    const start = await this.#findStart(partition, extent, offset);
    const path = extentPath(partition, extent);
    const lease = await this.#segments.useExtent(partition, extent, signal);
    try {
      const size = Math.max(bytesMax, READ_BYTES_MIN) + start.slack;
      const { position: from } = start;
      const window = new BatchWindow(lease.file, { position: from, end, size, memory });
      const order = new OffsetOrder(start.offset, extentNext);
      let header = await window.header();
      while (header !== undefined && header.baseOffset + header.lastOffsetDelta < offset) {
        if (!order.accepts(header, undefined)) throw outOfOrder(header.baseOffset);
        order.pass(header);
        window.skip(header.bytes);
        header = await window.header();
      }
      if (header === undefined) return { buffers: [], bytes: 0, nextOffset: extentNext };
      if (header.bytes > bytesMax && bytesBefore > 0) {
        return { buffers: [], bytes: 0, nextOffset: offset };
      }
      await window.need(header.bytes);
      const { position } = window;
      const taken = window.take(Math.max(bytesMax, header.bytes));
      const intact = await this.#verify(path, position, taken.bytes, order);
      if (intact === taken.bytes.length) {
        const atEnd = window.position >= end;
        if (!atEnd) this.#places.put(partition, taken.nextOffset, extent, window.position);
        const nextOffset = atEnd ? extentNext : taken.nextOffset;
        return { buffers: [taken.bytes], bytes: taken.bytes.length, nextOffset };
      }
      if (intact === 0) throw new LogError("corrupt", `a checksum is wrong at ${position}`);
      const bytes = taken.bytes.subarray(0, intact);
      return { buffers: [bytes], bytes: intact, nextOffset: endOffset(bytes) };
    } finally {
      lease.release();
    }
  }

  /** Verifies batches; returns the size of the intact ones from the start. */
  async #verify(
    path: string,
    position: number,
    bytes: Buffer,
    order: OffsetOrder,
  ): Promise<number> {
    if (this.#verified.covers(path, position, position + bytes.length)) return bytes.length;
    const slices = new Slices();
    let at = 0;
    for (;;) {
      const header = readBatchHeader(bytes, at);
      if (header === undefined) break;
      const isLarge = header.bytes > SLICE_BYTES;
      // No promise for each of many small ones.
      const isIntact = isLarge ? await isLargeBatchIntact(bytes, at) : isBatchIntact(bytes, at);
      if (!isIntact) break;
      if (!order.accepts(header, readBatchHeader(bytes, at + header.bytes))) break;
      order.pass(header);
      at += header.bytes;
      if (slices.uses(header.bytes) && at < bytes.length) await nextTurn();
    }
    if (at > 0) this.#verified.add(path, position, position + at);
    return at;
  }

  // A start close to the batch with `offset`; `slack` is the maximum distance.
  async #findStart(
    partition: Partition,
    extent: Extent,
    offset: number,
  ): Promise<{ position: number; offset: number; slack: number }> {
    const place = this.#places.take(partition, offset);
    if (place?.extent === extent) return { position: place.position, offset, slack: 0 };
    const known = await this.#findIndexed(partition, extent, offset);
    const behind = this.#damages.findResume(partition, extentName(partition, extent), offset);
    if (behind === undefined || behind.position <= known.position) return known;
    return { ...behind, slack: known.slack };
  }

  async #findIndexed(
    partition: Partition,
    extent: Extent,
    offset: number,
  ): Promise<{ position: number; offset: number; slack: number }> {
    const { position, baseOffset } = extent;
    if (extent.shared) return { position, offset: baseOffset, slack: 0 };
    const index = await this.#segments.indexOf(partition, extent);
    const found = index.findOffset(offset);
    return {
      position: Math.max(found.position, position),
      offset: Math.max(found.offset, baseOffset),
      slack: INDEX_INTERVAL_BYTES,
    };
  }

  // Reads the extent from its start to narrow the damage down.
  async #explore(
    partition: Partition,
    extent: Extent,
    offset: number,
    error: Error,
  ): Promise<Damage | undefined> {
    const { topic, index } = partition;
    const file = extentName(partition, extent);
    const whole: Damage = {
      topic: topic.name,
      partition: index,
      fromOffset: extent.baseOffset,
      resumeOffset: extent.nextOffset,
      file,
      position: extent.position,
      length: extent.length,
      reason: error.message,
    };
    if (isMissing(error)) return { ...whole, reason: "the file is missing" };
    try {
      const lease = await this.#segments.useExtent(partition, extent);
      try {
        return await exploreDamage(lease.file, whole, offset);
      } finally {
        lease.release();
      }
    } catch (failure) {
      if (failure instanceof LogError && failure.code === "cold-unavailable") throw failure;
      return whole;
    }
  }
}

/** Known positions of batches, so that sequential readers need not search. */
class ReadPlaces {
  readonly #places = new Map<string, { extent: Extent; position: number }>();

  take(partition: Partition, offset: number): { extent: Extent; position: number } | undefined {
    const key = `${partition.uid}:${offset}`;
    const place = this.#places.get(key);
    if (place !== undefined) this.#places.delete(key);
    return place;
  }

  put(partition: Partition, offset: number, extent: Extent, position: number): void {
    const key = `${partition.uid}:${offset}`;
    this.#places.delete(key);
    this.#places.set(key, { extent, position });
    if (this.#places.size > PLACES_KEPT) {
      const oldest = this.#places.keys().next();
      if (oldest.done !== true) this.#places.delete(oldest.value);
    }
  }
}

function outOfOrder(baseOffset: number): LogError {
  return new LogError("corrupt", `a batch with offset ${baseOffset} is out of order`);
}

function checkRange(partition: Partition, offset: number): void {
  if (!partition.live) throw new LogError("unknown-topic", `${partition.topic.name} is deleted`);
  if (offset >= partition.logStart && offset <= partition.durableEnd) return;
  const range = `${partition.logStart} to ${partition.durableEnd}`;
  throw new LogError("offset-out-of-range", `offset ${offset} is outside of ${range}`);
}

function readTail(
  partition: Partition,
  offset: number,
  bytesMax: number,
  isFirst: boolean,
): ReadResult {
  const { tail } = partition;
  const first = findRange(tail, offset);
  const buffers: Buffer[] = [];
  let bytes = 0;
  let nextOffset = offset;
  for (let at = first; at < tail.length; at++) {
    const batch = tail[at]!;
    if (bytes + batch.bytes.length > bytesMax && !(isFirst && at === first)) break;
    buffers.push(batch.bytes);
    bytes += batch.bytes.length;
    nextOffset = batch.nextOffset;
  }
  if (first === tail.length) nextOffset = partition.durableEnd;
  return { buffers, bytes, nextOffset };
}

function isMissing(error: Error): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}

/** The offset after the last batch. */
function endOffset(batches: Buffer): number {
  let end = -1;
  for (let at = 0; at + BATCH_HEADER_BYTES <= batches.length;) {
    const header = readBatchHeader(batches, at)!;
    end = nextOffsetOf(header);
    at += header.bytes;
  }
  return end;
}
