// The first bytes of a segment of its own: whose batches follow.
import { describePartition, type PartitionDescription } from "../partition/description.ts";
import type { Partition } from "../partition/partition.ts";
import { LogError } from "../errors.ts";
import { decodeFileHeader, encodeFileHeader, encodeFrame, scanFrames } from "../frame/frame.ts";

/*
 * 4096 bytes: a file header (see frame.ts; the number is the base offset), one frame with the
 * partition as JSON, zeros. Batches begin behind it. Segments of version 1 begin with a batch.
 */

/** Bytes before the first batch. */
export const segmentHeaderBytes = 4096;

/** A description with the offsets of what follows, where they are known when it is written. */
export type StoredDescription = PartitionDescription & {
  baseOffset?: number;
  nextOffset?: number | undefined;
};

/** The source of what headers carry besides the partition. */
export type HeaderSource = { salt: () => Buffer; generation: () => number };

/** Encodes the header of a segment; `nextOffset` for one that is never appended to. */
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
  if (bytes.length > segmentHeaderBytes) throw new LogError("too-large", "the name is too long");
  return Buffer.concat([bytes], segmentHeaderBytes);
}

/** Reads the header of a segment; undefined if it is damaged or the segment is of version 1. */
export async function decodeSegmentHeader(bytes: Buffer): Promise<StoredDescription | undefined> {
  const header = decodeFileHeader("segment", bytes);
  if (header === undefined) return undefined;
  let description: StoredDescription | undefined;
  await scanFrames(bytes.subarray(0, segmentHeaderBytes), header, header.bytes, 0, {
    async accept([entry]) {
      if (entry !== undefined) description ??= decodeDescription(entry);
    },
  });
  return description;
}

/** A description as bytes. Names are in base64, so that their length is bounded whatever is in them. */
export function encodeDescription(description: StoredDescription): Buffer {
  const name = Buffer.from(description.name).toString("base64");
  return Buffer.from(JSON.stringify({ ...description, name }));
}

/** Reads what `encodeDescription` wrote. */
export function decodeDescription(bytes: Buffer): StoredDescription {
  const description = JSON.parse(bytes.toString("utf8")) as StoredDescription;
  return { ...description, name: Buffer.from(description.name, "base64").toString("utf8") };
}
