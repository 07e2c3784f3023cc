// Search in ranges of offsets: extents, and batches in memory.

/** The index of the first range that ends after `offset`; offsets in a gap lead to the range after it. */
export function findRange(ranges: readonly { nextOffset: number }[], offset: number): number {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ranges[middle]!.nextOffset <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}
