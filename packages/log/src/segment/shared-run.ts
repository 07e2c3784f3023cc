// A run in a shared segment: batches of one partition in a frame that describes the partition.
import { describePartition } from "../partition/description.ts";
import type { Extent, Partition, TailBatch } from "../partition/partition.ts";
import { encodeFrame, ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES } from "../frame/frame.ts";
import { encodeDescription } from "./segment-header.ts";

/*
 * shared/<number>.log is a file of frames (see frame.ts). Each frame has two entries: the partition
 * as JSON, and its batches one after another. Extents refer to the batches alone. Files of version 1
 * contain only batches.
 */

/** Encodes batches for a write at `at`; `position` is the position of the first batch. */
export function encodeSharedRun(
  salt: Buffer,
  at: number,
  partition: Partition,
  batches: readonly TailBatch[],
): { pieces: Buffer[]; bytes: number; position: number } {
  const first = batches[0];
  if (first === undefined) return { pieces: [], bytes: 0, position: at };
  const { baseOffset } = first;
  const { nextOffset } = batches.at(-1)!;
  const head = encodeDescription({ ...describePartition(partition), baseOffset, nextOffset });
  const frame = encodeFrame(salt, at, 0, [[head], batches.map((batch) => batch.bytes)]);
  const position = at + FRAME_HEADER_BYTES + ENTRY_HEADER_BYTES + head.length + ENTRY_HEADER_BYTES;
  return { ...frame, position };
}

/** The extent of batches in a shared segment; `undefined` without batches. */
export function createSharedExtent(
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
