// The header of a partition's own segment, which describes the partition.
import { describePartition, type PartitionDescription } from "../partition/description.ts";
import type { Partition } from "../partition/partition.ts";
import { LogError } from "../errors.ts";
import { decodeFileHeader, encodeFileHeader, encodeFrame, scanFrames } from "../frame/frame.ts";

/*
 * 4096 bytes: a file header (see frame.ts; the number is the base offset), one frame with the
 * partition as JSON, zeros. Batches follow. Segments of version 1 begin with a batch.
 */

/** Bytes before the first batch. */
export const SEGMENT_HEADER_BYTES = 4096;

/** A description with the offsets of the batches that follow, if they are known at the time of writing. */
export interface StoredDescription extends PartitionDescription {
  baseOffset?: number;
  nextOffset?: number | undefined;
}

/** Provides the header fields that do not depend on the partition. */
export interface HeaderSource {
  salt: () => Buffer;
  generation: () => number;
}

/** Encodes the header of a segment; `nextOffset` if nothing will be appended to it. */
export function encodeSegmentHeader(
  source: HeaderSource,
  partition: Partition,
  baseOffset: number,
  nextOffset?: number,
): Buffer {
  const salt = source.salt();
  const header = encodeFileHeader({
    kind: "segment",
    number: baseOffset,
    salt,
    previousEnd: 0,
    generation: source.generation(),
  });
  const description = { ...describePartition(partition), nextOffset };
  const { pieces } = encodeFrame(salt, header.length, 0, [[encodeDescription(description)]]);
  const bytes = Buffer.concat([header, ...pieces]);
  if (bytes.length > SEGMENT_HEADER_BYTES)
    throw new LogError("too-large", "the topic name is too long");
  return Buffer.concat([bytes], SEGMENT_HEADER_BYTES);
}

/** Decodes the header of a segment; `undefined` if it is damaged or the segment is of version 1. */
export async function decodeSegmentHeader(bytes: Buffer): Promise<StoredDescription | undefined> {
  const header = decodeFileHeader("segment", bytes);
  if (header === undefined) return undefined;
  let description: StoredDescription | undefined;
  await scanFrames(bytes.subarray(0, SEGMENT_HEADER_BYTES), header, header.bytes, 0, {
    async accept([entry]) {
      if (entry !== undefined) description ??= decodeDescription(entry);
    },
  });
  return description;
}

/** Encodes a description. Names are in base64, which bounds their length for any characters. */
export function encodeDescription(description: StoredDescription): Buffer {
  const name = Buffer.from(description.name).toString("base64");
  return Buffer.from(JSON.stringify({ ...description, name }));
}

/** Decodes a description. */
export function decodeDescription(bytes: Buffer): StoredDescription {
  const description = JSON.parse(bytes.toString("utf8")) as StoredDescription;
  return { ...description, name: Buffer.from(description.name, "base64").toString("utf8") };
}
