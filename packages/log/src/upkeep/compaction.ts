// Key compaction: keeps the last record of each key; offsets never change.
import { createHash } from "node:crypto";
import { decodeBatch } from "../batch/compression.ts";
import { readBatchHeader } from "../batch/header.ts";
import { encodeKept, type StoredRecord } from "../batch/records.ts";
import { extentPath, type Extent, type Partition } from "../partition/partition.ts";
import type { Disk, DiskFile } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { SEGMENT_HEADER_BYTES } from "../segment/segment-header.ts";
import { cleanedPath, type Segments } from "../segment/segments.ts";
import { walkBatches, type FoundBatch, type ReadAt } from "../segment/walk-batches.ts";
import type { Checkpointer } from "./checkpoint.ts";
import type { Committer } from "../commit/committer.ts";

/** Maximum length of keys that are stored as they are in the key map; longer ones are hashed (SHA-256). */
const KEY_BYTES_PLAIN = 32;
/** Bytes collected before they are written to a cleaned segment. */
const WRITE_BYTES = 1024 * 1024;

/** Options of `compactPartition`. */
export interface CompactionOptions {
  disk: Disk;
  segments: Segments;
  committer: Committer;
  checkpointer: Checkpointer;
  keysMax: number;
}

/** Result of a pass; `more`: the key map was full and another pass is needed. */
export interface CompactionResult {
  bytesBefore: number;
  bytesAfter: number;
  more: boolean;
}

/** The highest offset of each key below `end`. */
interface KeyMap {
  offsets: Map<string, number>;
  end: number;
}

/**
 * Runs one pass over all segments below `before` (records that dispatch still needs must not be removed). Tombstones
 * older than the topic's `deleteRetentionMs` are removed as well. Rewritten segments are written as `.cleaned`, synced
 * and renamed, and replace the old ones, which are removed after the next checkpoint.
 */
export async function compactPartition(
  options: CompactionOptions,
  partition: Partition,
  nowMs: number,
  before: number,
): Promise<CompactionResult> {
  while (partition.writer !== undefined) await partition.freed;
  // From here on new batches go to a new segment, so the present extents no longer change.
  partition.rollNext = partition.extents.at(-1)?.shared === false;
  const extents = partition.extents.filter((extent) => extent.nextOffset <= before);
  const last = extents.at(-1);
  const nothing = { bytesBefore: 0, bytesAfter: 0, more: false };
  if (last === undefined || !partition.live) return nothing;
  const keys = await collectKeys(options, partition, extents, last.nextOffset);
  const cleaned: Extent[] = [];
  const replaced: Extent[] = [];
  for (const group of groupExtents(extents, keys.end, partition.topic.config.segmentBytes)) {
    const extent = await rewrite(options, partition, group, keys, nowMs);
    replaced.push(...group);
    if (extent !== undefined) cleaned.push(extent);
  }
  while (partition.writer !== undefined) await partition.freed;
  const stillThere = replaced.every((extent) => partition.extents.includes(extent));
  if (!stillThere || !partition.live) {
    // Retention or a deletion came first; the written files are unused.
    await options.segments.remove(cleaned.map((extent) => extentPath(partition, extent)));
    return nothing;
  }
  const kept = partition.extents.filter((extent) => !replaced.includes(extent));
  if (partition.extents.at(-1) === replaced.at(-1)) partition.activeIndex = undefined;
  options.checkpointer.discard(partition, replaced);
  partition.setExtents([...cleaned, ...kept]);
  partition.revision++;
  partition.cleanedEnd = Math.max(partition.cleanedEnd, keys.end);
  options.committer.dirty.add(partition);
  return {
    bytesBefore: sumBytes(replaced),
    bytesAfter: sumBytes(cleaned),
    more: keys.end < last.nextOffset,
  };
}

async function collectKeys(
  options: CompactionOptions,
  partition: Partition,
  extents: readonly Extent[],
  end: number,
): Promise<KeyMap> {
  const offsets = new Map<string, number>();
  for (const extent of extents) {
    // Below the cleaned end each key has at most one record; later ones can only replace it.
    if (extent.nextOffset <= partition.cleanedEnd) continue;
    for await (const { header, bytes } of walkExtent(options.segments, partition, extent)) {
      if (header.baseOffset + header.lastOffsetDelta < partition.cleanedEnd) continue;
      if (offsets.size >= options.keysMax) return { offsets, end: header.baseOffset };
      for (const record of (await decodeBatch(bytes)).records) {
        if (record.key !== null) offsets.set(keyName(record.key), record.offset);
      }
    }
  }
  return { offsets, end };
}

// Merges small neighbours; a segment beyond the key map stays as it is.
function groupExtents(extents: readonly Extent[], end: number, segmentBytes: number): Extent[][] {
  const groups: Extent[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const extent of extents) {
    if (extent.baseOffset >= end) break;
    if (bytes + extent.length > segmentBytes) {
      groups.push([]);
      bytes = 0;
    }
    groups.at(-1)!.push(extent);
    bytes += extent.length;
  }
  return groups;
}

async function rewrite(
  options: CompactionOptions,
  partition: Partition,
  group: readonly Extent[],
  keys: KeyMap,
  nowMs: number,
): Promise<Extent | undefined> {
  const base = group[0]!.baseOffset;
  const generation =
    1 + Math.max(...group.map((extent) => (extent.shared ? 0 : extent.generation)));
  const cleaned: Extent = {
    shared: false,
    file: base,
    generation,
    position: SEGMENT_HEADER_BYTES,
    length: 0,
    baseOffset: base,
    nextOffset: group.at(-1)!.nextOffset,
    maxTimestamp: -1,
  };
  const path = cleanedPath(partition, base, generation);
  if (!partition.hasFolder) await options.segments.makeFolder(partition);
  const file = await options.disk.open(path, "create");
  try {
    await file.write([options.segments.headerOf(partition, base, cleaned.nextOffset)], 0);
    await writeKept(options, partition, group, keys, nowMs, file, cleaned);
    await file.sync();
  } finally {
    await file.close();
  }
  if (cleaned.length === 0) {
    await options.disk.remove(path);
    return undefined;
  }
  options.segments.forget(extentPath(partition, cleaned));
  await options.disk.rename(path, extentPath(partition, cleaned));
  await options.segments.syncPartitionFolder(partition);
  return cleaned;
}

async function writeKept(
  options: CompactionOptions,
  partition: Partition,
  group: readonly Extent[],
  keys: KeyMap,
  nowMs: number,
  file: DiskFile,
  cleaned: Extent,
): Promise<void> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  const flush = async () => {
    await file.write(pieces, cleaned.position + cleaned.length);
    cleaned.length += bytes;
    pieces = [];
    bytes = 0;
  };
  const tombstonesBefore = nowMs - partition.topic.config.deleteRetentionMs;
  for (const extent of group) {
    for await (const batch of walkExtent(options.segments, partition, extent)) {
      const kept = await keepOf(batch.bytes, keys, partition.logStart, tombstonesBefore);
      if (kept === undefined) continue;
      pieces.push(kept);
      bytes += kept.length;
      cleaned.maxTimestamp = Math.max(cleaned.maxTimestamp, readBatchHeader(kept)!.maxTimestamp);
      if (bytes >= WRITE_BYTES) await flush();
    }
  }
  if (bytes > 0) await flush();
}

// Returns the batch, a smaller one with the same offsets and producer, or `undefined` if no record is kept.
async function keepOf(
  batch: Buffer,
  keys: KeyMap,
  logStart: number,
  tombstonesBefore: number,
): Promise<Buffer | undefined> {
  const header = readBatchHeader(batch)!;
  if (header.baseOffset >= keys.end) return batch;
  const { records } = await decodeBatch(batch);
  const kept = records.filter((record) => isKept(record, keys, logStart, tombstonesBefore));
  if (kept.length === records.length) return batch;
  return kept.length === 0 ? undefined : encodeKept(header, kept);
}

function isKept(
  record: StoredRecord,
  keys: KeyMap,
  logStart: number,
  tombstonesBefore: number,
): boolean {
  if (record.offset < logStart) return false;
  if (record.key === null) return true;
  const latest = keys.offsets.get(keyName(record.key));
  if (latest !== undefined && latest > record.offset) return false;
  return record.value !== null || record.timestamp >= tombstonesBefore;
}

/** Yields the batches of an extent. Throws `corrupt` at damage, which the new checksum of a smaller batch would hide. */
async function* walkExtent(
  segments: Segments,
  partition: Partition,
  extent: Extent,
): AsyncGenerator<FoundBatch> {
  const path = extentPath(partition, extent);
  // Leased per read, so that a long pass does not keep a file open.
  const read: ReadAt = async (into, position) => {
    const lease = await segments.files.use(path);
    try {
      return await lease.file.read(into, 0, into.length, position);
    } finally {
      lease.release();
    }
  };
  const end = extent.position + extent.length;
  const offsets = { first: extent.baseOffset, end: extent.nextOffset };
  const reached = yield* walkBatches(read, extent.position, end, { offsets });
  if (reached < end) throw new LogError("corrupt", `no intact batch at ${reached} in ${path}`);
}

function keyName(key: Buffer): string {
  if (key.length <= KEY_BYTES_PLAIN) return `p${key.toString("latin1")}`;
  return `h${createHash("sha256").update(key).digest("latin1")}`;
}

function sumBytes(extents: readonly Extent[]): number {
  let bytes = 0;
  for (const extent of extents) bytes += extent.length;
  return bytes;
}
