// Walks the batches of a segment and checks their checksums and the order of their offsets.
import {
  BATCH_HEADER_BYTES,
  isBatchIntact,
  readBatchHeader,
  type BatchHeader,
} from "../batch/header.ts";
import type { Disk } from "../disk/port.ts";
import { OffsetOrder } from "./offset-order.ts";

const CHUNK_BYTES = 1024 * 1024;

/** An intact batch and its position in the file. */
export interface FoundBatch {
  header: BatchHeader;
  position: number;
  bytes: Buffer;
}

/** Fills a buffer from a position of a file and returns the bytes read; fewer only at the end of the file. */
export type ReadAt = (into: Buffer, position: number) => Promise<number>;

/** Options of `walkBatches`. */
export interface WalkOptions {
  /** Valid offsets: from `first` on, ending at or below `end`. All by default. */
  offsets?: { first: number; end: number };
  /** Minimum size of a read. 1 MiB by default; 0 reads no further than the header after each batch. */
  chunkBytes?: number;
}

/**
 * Yields the intact batches from `start` on and returns the end of the last one, which is `end` if all are intact. A
 * batch with a wrong offset counts as damaged, since checksums do not cover the base offset.
 */
export async function* walkBatches(
  read: ReadAt,
  start: number,
  end: number,
  { offsets = { first: 0, end: Infinity }, chunkBytes = CHUNK_BYTES }: WalkOptions = {},
): AsyncGenerator<FoundBatch, number> {
  const order = new OffsetOrder(offsets.first, offsets.end);
  let position = start;
  let needed = BATCH_HEADER_BYTES;
  while (position < end) {
    const chunk = Buffer.allocUnsafe(Math.min(Math.max(chunkBytes, needed), end - position));
    const count = await read(chunk, position);
    const bytes = chunk.subarray(0, count);
    const isLast = count < chunk.length || position + count >= end;
    let at = 0;
    for (;;) {
      const header = readBatchHeader(bytes, at);
      needed = header === undefined ? BATCH_HEADER_BYTES : header.bytes + BATCH_HEADER_BYTES;
      if (header !== undefined && position + at + header.bytes > end) return position + at;
      // The header of the following batch is needed to check the order of offsets.
      if (!isLast && at + needed > count) break;
      if (header === undefined || !isBatchIntact(bytes, at)) return position + at;
      const next = at + header.bytes;
      if (!order.accepts(header, readBatchHeader(bytes, next))) return position + at;
      yield { header, position: position + at, bytes: bytes.subarray(at, next) };
      order.pass(header);
      at = next;
    }
    position += at;
  }
  return position;
}

/** Opens a file and walks its batches; see `walkBatches`. */
export async function* walkFile(
  disk: Disk,
  path: string,
  start: number,
  end: number,
  offsets?: WalkOptions["offsets"],
): AsyncGenerator<FoundBatch, number> {
  const file = await disk.open(path, "read");
  try {
    const read: ReadAt = (into, position) => file.read(into, 0, into.length, position);
    return yield* walkBatches(read, start, end, offsets === undefined ? {} : { offsets });
  } finally {
    await file.close();
  }
}
