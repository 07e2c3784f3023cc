// Finds where damage in a segment file begins and ends.
import {
  BATCH_HEADER_BYTES,
  isBatchIntact,
  nextOffsetOf,
  readBatchHeader,
} from "../batch/header.ts";
import type { ReadableFile } from "../cold/cold-reader.ts";
import type { Damage } from "../types.ts";
import { walkBatches, type ReadAt } from "./walk-batches.ts";

const SCAN_BYTES = 1024 * 1024;

/**
 * Narrows `whole`, which covers an extent, to the damaged range. `undefined` if the batch with `offset` is intact.
 */
export async function exploreDamage(
  file: ReadableFile,
  whole: Damage,
  offset: number,
): Promise<Damage | undefined> {
  const end = whole.position + whole.length;
  const read: ReadAt = (into, position) => file.read(into, 0, into.length, position);
  const offsets = { first: whole.fromOffset, end: whole.resumeOffset };
  // Small reads, so that an unreadable sector does not affect the intact batches before it.
  const batches = walkBatches(read, whole.position, end, { offsets, chunkBytes: 0 });
  let fromOffset = whole.fromOffset;
  let step = await batches.next();
  for (; step.done !== true; step = await batches.next()) {
    fromOffset = nextOffsetOf(step.value.header);
    if (fromOffset > offset) return undefined;
  }
  const position = step.value;
  const next = await findIntactBatch(file, position + 1, end, {
    above: fromOffset - 1,
    below: whole.resumeOffset,
  });
  const resumeOffset = next?.offset ?? whole.resumeOffset;
  return {
    ...whole,
    fromOffset,
    resumeOffset,
    position,
    length: (next?.position ?? end) - position,
  };
}

/**
 * Finds the first intact batch after a damaged position. Tries every byte as the start of a batch, since the length of
 * the damaged one cannot be trusted. `undefined` if there is none before `end`.
 */
async function findIntactBatch(
  file: ReadableFile,
  position: number,
  end: number,
  offsets: { above: number; below: number },
): Promise<{ position: number; offset: number } | undefined> {
  for (let start = position; start < end;) {
    const chunk = Buffer.allocUnsafe(Math.min(SCAN_BYTES, end - start));
    const count = await file.read(chunk, 0, chunk.length, start);
    if (count < BATCH_HEADER_BYTES) return undefined;
    for (let at = 0; at + BATCH_HEADER_BYTES <= count; at++) {
      const header = chunk[at + 16] === 2 ? readBatchHeader(chunk, at) : undefined;
      if (header === undefined || start + at + header.bytes > end) continue;
      const { baseOffset } = header;
      if (baseOffset <= offsets.above || baseOffset >= offsets.below) continue;
      const batch = Buffer.allocUnsafe(header.bytes);
      if ((await file.read(batch, 0, batch.length, start + at)) < batch.length) continue;
      if (isBatchIntact(batch)) return { position: start + at, offset: baseOffset };
    }
    start += count - BATCH_HEADER_BYTES + 1;
  }
  return undefined;
}
