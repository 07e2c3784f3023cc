// The order of offsets in an extent: checksums do not cover the base offset of a batch.
import { nextOffsetOf, type BatchHeader } from "../batch/header.ts";

/**
 * Offsets ascend, and mostly without a gap: compaction leaves gaps, and so does a repair. A wrong base offset shows in
 * that the batch overlaps one of its neighbours.
 */
export class OffsetOrder {
  readonly #end: number;
  /** Where the next batch begins at the earliest. */
  next: number;

  /** Batches from the offset `first` on that end at or below `end`. */
  constructor(first: number, end: number) {
    this.next = first;
    this.#end = end;
  }

  /** Whether the batch can be the next one, with `following` behind it if that is known. */
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
