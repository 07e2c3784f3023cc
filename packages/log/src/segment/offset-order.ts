// Checks the order of offsets in an extent, since checksums do not cover the base offset of a batch.
import { nextOffsetOf, type BatchHeader } from "../batch/header.ts";

/**
 * Offsets ascend. Gaps are legal but rare: compaction and repair leave them. A wrong base offset makes the batch overlap
 * one of its neighbours.
 */
export class OffsetOrder {
  readonly #end: number;
  /** Lowest possible offset of the next batch. */
  next: number;

  /** For batches from the offset `first` on that end at or below `end`. */
  constructor(first: number, end: number) {
    this.next = first;
    this.#end = end;
  }

  /** True if the batch can be the next one, followed by `following` if that is known. */
  accepts(header: BatchHeader, following: BatchHeader | undefined): boolean {
    const { baseOffset } = header;
    const nextOffset = nextOffsetOf(header);
    if (baseOffset < this.next || nextOffset <= baseOffset || nextOffset > this.#end) return false;
    const hasGap = baseOffset > this.next;
    return !hasGap || following === undefined || following.baseOffset >= nextOffset;
  }

  pass(header: BatchHeader): void {
    this.next = nextOffsetOf(header);
  }
}
