// Scans all segments of a folder, using only the headers in the segments.
import { splitBatches } from "../batch/compression.ts";
import { isBatchIntact, nextOffsetOf, readBatchHeader } from "../batch/header.ts";
import type { PartitionDescription } from "../partition/description.ts";
import { sharedPath, type Extent } from "../partition/partition.ts";
import { readFileIfThere, readPart } from "../disk/files.ts";
import type { Disk } from "../disk/port.ts";
import { decodeFileHeader, scanFrames } from "../frame/frame.ts";
import {
  decodeDescription,
  decodeSegmentHeader,
  SEGMENT_HEADER_BYTES,
} from "../segment/segment-header.ts";
import type { Quarantine } from "../types.ts";
import { walkFile } from "../segment/walk-batches.ts";

/** Batches of one partition and their description. */
export interface FoundRun {
  extent: Extent;
  description: PartitionDescription;
  /** Of the first batch of an object, whose batches are not read. */
  leaderEpoch?: number;
}

/** Result of a scan of all segments. */
export interface SegmentScan {
  /** In the order in which they were written. */
  runs: FoundRun[];
  sharedNumber: number;
  generation: number;
  /** Runs that do not match their checksums. */
  damaged: Quarantine[];
  /** Files without a readable description. */
  problems: Quarantine[];
}

/** Scans every segment. */
export async function scanSegments(disk: Disk): Promise<SegmentScan> {
  const scan: SegmentScan = {
    runs: [],
    sharedNumber: 0,
    generation: 0,
    damaged: [],
    problems: [],
  };
  for (const name of (await disk.list("shared")).toSorted()) {
    const number = Number(/^(\d{16})\.log$/.exec(name)?.[1] ?? 0);
    if (number > 0) await scanShared(disk, number, scan);
  }
  for (const id of (await disk.list("topics")).toSorted()) {
    for (const index of await disk.list(`topics/${id}`)) {
      const folder = `topics/${id}/${index}`;
      for (const name of (await disk.list(folder)).toSorted()) {
        const match = /^(\d{20})-(\d+)\.log$/.exec(name);
        if (match === null) continue;
        await scanOwn(disk, `${folder}/${name}`, Number(match[1]), Number(match[2]), scan);
      }
    }
  }
  return scan;
}

async function scanShared(disk: Disk, number: number, scan: SegmentScan): Promise<void> {
  const path = sharedPath(number);
  scan.sharedNumber = Math.max(scan.sharedNumber, number);
  const bytes = (await readFileIfThere(disk, path)) ?? Buffer.alloc(0);
  const header = decodeFileHeader("shared", bytes);
  if (header === undefined) {
    if (bytes.length > 0) noteUnreadable(scan, path, bytes.length);
    return;
  }
  scan.generation = Math.max(scan.generation, header.generation);
  const found = await scanFrames(bytes, header, header.bytes, bytes.length, {
    async accept([head, batches]) {
      if (head === undefined || batches === undefined) return;
      const description = decodeDescription(head);
      const { baseOffset, nextOffset } = description;
      if (baseOffset === undefined || nextOffset === undefined) return;
      const extent: Extent = {
        shared: true,
        file: number,
        generation: 0,
        position: batches.byteOffset - bytes.byteOffset,
        length: batches.length,
        baseOffset,
        nextOffset,
        maxTimestamp: -1,
      };
      for (const batch of splitBatches(batches)) {
        if (!isBatchIntact(batch)) return;
        const { maxTimestamp } = readBatchHeader(batch)!;
        extent.maxTimestamp = Math.max(extent.maxTimestamp, maxTimestamp);
      }
      scan.runs.push({ extent, description });
    },
  });
  for (const { position, length } of found.damaged) {
    scan.damaged.push({ file: path, position, length, reason: "batches are damaged" });
  }
}

async function scanOwn(
  disk: Disk,
  path: string,
  base: number,
  generation: number,
  scan: SegmentScan,
): Promise<void> {
  const head = (await readPart(disk, path, 0, SEGMENT_HEADER_BYTES)) ?? Buffer.alloc(0);
  const size = (await disk.size(path)) ?? 0;
  const header = decodeFileHeader("segment", head);
  const description = await decodeSegmentHeader(head);
  if (header === undefined || description === undefined) {
    if (size > 0) noteUnreadable(scan, path, size);
    return;
  }
  scan.generation = Math.max(scan.generation, header.generation);
  const extent: Extent = {
    shared: false,
    file: base,
    generation,
    position: SEGMENT_HEADER_BYTES,
    length: 0,
    baseOffset: base,
    nextOffset: description.nextOffset ?? base,
    maxTimestamp: -1,
  };
  const batches = walkFile(disk, path, SEGMENT_HEADER_BYTES, size);
  let step = await batches.next();
  for (; step.done !== true; step = await batches.next()) {
    const found = step.value.header;
    extent.length += found.bytes;
    extent.nextOffset = Math.max(extent.nextOffset, nextOffsetOf(found));
    extent.maxTimestamp = Math.max(extent.maxTimestamp, found.maxTimestamp);
  }
  if (step.value < size) {
    const reason = "not an intact batch: damage, or an unfinished write";
    scan.damaged.push({ file: path, position: step.value, length: size - step.value, reason });
  }
  if (extent.length > 0) scan.runs.push({ extent, description });
}

function noteUnreadable(scan: SegmentScan, file: string, length: number): void {
  const reason = "the file does not describe its partition";
  scan.problems.push({ file, position: 0, length, reason });
}
