// Reading the batches of a segment one after another with their checksums, for checks and repair.
import { isBatchIntact, readBatchHeader, type BatchHeader } from "../batch/header.ts";
import type { Disk } from "../disk/port.ts";

/** Bytes read at once. */
const readBytes = 1024 * 1024;

/** A whole batch of a segment and where it lies. */
export type FoundBatch = { header: BatchHeader; position: number; bytes: Buffer };

/**
 * Yields the intact batches from `start` on in ascending order of offsets, and returns where the
 * first thing that is not one begins: `end` if there is none.
 */
export async function* walkBatches(
  disk: Disk,
  path: string,
  start: number,
  end: number,
  offsets = { min: 0, end: Number.POSITIVE_INFINITY },
): AsyncGenerator<FoundBatch, number> {
  const file = await disk.open(path, "read");
  try {
    let position = start;
    let nextOffset = offsets.min;
    let wanted = readBytes;
    while (position < end) {
      const chunk = Buffer.allocUnsafe(Math.min(wanted, end - position));
      const count = await file.read(chunk, 0, chunk.length, position);
      const bytes = chunk.subarray(0, count);
      wanted = readBytes;
      let at = 0;
      for (let header = readBatchHeader(bytes); header !== undefined;) {
        if (at + header.bytes > count) {
          wanted = Math.max(readBytes, header.bytes);
          break;
        }
        const following = header.baseOffset + header.lastOffsetDelta + 1;
        // The checksum does not cover the base offset.
        const isPlaced = header.baseOffset >= nextOffset && following <= offsets.end;
        if (!isPlaced || !isBatchIntact(bytes, at)) return position + at;
        yield { header, position: position + at, bytes: bytes.subarray(at, at + header.bytes) };
        nextOffset = following;
        at += header.bytes;
        header = readBatchHeader(bytes, at);
      }
      const isStuck = at === 0 && (wanted <= chunk.length || position + count >= end);
      if (isStuck || (count < chunk.length && at === 0)) return position;
      position += at;
    }
    return position;
  } finally {
    await file.close();
  }
}
