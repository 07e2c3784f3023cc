// Finding where damage in a segment file begins and ends.
import {
  batchHeaderBytes,
  isBatchIntact,
  readBatchHeader,
  type BatchHeader,
} from "../batch/header.ts";
import type { DiskFile } from "../disk/port.ts";
import type { Damage } from "../types.ts";
import { OffsetOrder } from "./offset-order.ts";

const SCAN_BYTES = 1024 * 1024;

/**
 * Narrows damage of a whole extent down: batches in front of it are intact, and tell where it begins. Undefined if
 * the batch with `offset` is intact.
 */
export async function exploreDamage(
  file: DiskFile,
  whole: Damage,
  offset: number,
): Promise<Damage | undefined> {
  const end = whole.position + whole.length;
  const order = new OffsetOrder(whole.fromOffset, whole.resumeOffset);
  let { position } = whole;
  while (position < end) {
    const header = await readIntactHeader(file, position, end);
    if (header === undefined) break;
    const following = await readHeader(file, position + header.bytes, end);
    if (!order.accepts(header, following)) break;
    position += header.bytes;
    order.pass(header);
    if (order.next > offset) return undefined;
  }
  const fromOffset = order.next;
  const offsets = { above: fromOffset - 1, below: whole.resumeOffset };
  const next = await findIntactBatch(file, position + 1, end, offsets);
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
 * The first intact batch behind a damaged place: its position and first offset. Every byte is tried as the start of a
 * batch, since the length of the damaged one cannot be trusted. Undefined if there is none before `end`.
 */
async function findIntactBatch(
  file: DiskFile,
  position: number,
  end: number,
  offsets: { above: number; below: number },
): Promise<{ position: number; offset: number } | undefined> {
  for (let start = position; start < end;) {
    const chunk = Buffer.allocUnsafe(Math.min(SCAN_BYTES, end - start));
    const count = await file.read(chunk, 0, chunk.length, start);
    if (count < batchHeaderBytes) return undefined;
    for (let at = 0; at + batchHeaderBytes <= count; at++) {
      const header = chunk[at + 16] === 2 ? readBatchHeader(chunk, at) : undefined;
      if (header === undefined || start + at + header.bytes > end) continue;
      const { baseOffset } = header;
      if (baseOffset <= offsets.above || baseOffset >= offsets.below) continue;
      const batch = Buffer.allocUnsafe(header.bytes);
      if ((await file.read(batch, 0, batch.length, start + at)) < batch.length) continue;
      if (isBatchIntact(batch)) return { position: start + at, offset: baseOffset };
    }
    start += count - batchHeaderBytes + 1;
  }
  return undefined;
}

/** The header of the batch at a position; undefined if the batch is not intact. */
async function readIntactHeader(
  file: DiskFile,
  position: number,
  end: number,
): Promise<BatchHeader | undefined> {
  const header = await readHeader(file, position, end);
  if (header === undefined) return undefined;
  const batch = Buffer.allocUnsafe(header.bytes);
  const count = await file.read(batch, 0, batch.length, position);
  return count === batch.length && isBatchIntact(batch) ? header : undefined;
}

/** The header at a position; undefined if no batch that ends within the extent begins there. */
async function readHeader(
  file: DiskFile,
  position: number,
  end: number,
): Promise<BatchHeader | undefined> {
  const head = Buffer.alloc(batchHeaderBytes);
  if ((await file.read(head, 0, head.length, position)) < head.length) return undefined;
  const header = readBatchHeader(head);
  return header === undefined || position + header.bytes > end ? undefined : header;
}
