// A set of offsets: everything below a low watermark, and ranges above it.

/** The stored form: `low`, then `[from, to)` pairs above it in ascending order. */
export interface StoredRanges {
  low: number;
  ranges: [from: number, to: number][];
}

/** Completed offsets. There are few ranges if completion is roughly in order. */
export class OffsetRanges {
  #low: number;
  #ranges: [from: number, to: number][];
  /** Number of completed offsets above the low watermark. */
  #above = 0;

  constructor(stored: StoredRanges = { low: 0, ranges: [] }) {
    this.#low = stored.low;
    this.#ranges = stored.ranges.map(([from, to]) => [from, to]);
    for (const [from, to] of this.#ranges) this.#above += to - from;
  }

  /** All offsets below are complete. */
  get low(): number {
    return this.#low;
  }

  /** Number of ranges above the low watermark. */
  get rangeCount(): number {
    return this.#ranges.length;
  }

  /** Number of incomplete offsets below `end`. */
  countLeft(end: number): number {
    return Math.max(0, end - this.#low - this.#above);
  }

  has(offset: number): boolean {
    if (offset < this.#low) return true;
    const at = this.#find(offset);
    return at >= 0 && offset < this.#ranges[at]![1];
  }

  /** Marks an offset as complete. */
  add(offset: number): void {
    if (this.has(offset)) return;
    if (offset === this.#low) {
      this.#low++;
      this.#absorb();
      return;
    }
    this.#above++;
    const at = this.#find(offset);
    const before = this.#ranges[at];
    const after = this.#ranges[at + 1];
    const joinsBefore = before !== undefined && before[1] === offset;
    const joinsAfter = after !== undefined && after[0] === offset + 1;
    if (joinsBefore && joinsAfter) {
      before[1] = after[1];
      this.#ranges.splice(at + 1, 1);
    } else if (joinsBefore) before[1]++;
    else if (joinsAfter) after[0]--;
    else this.#ranges.splice(at + 1, 0, [offset, offset + 1]);
  }

  /** Marks everything below `offset` as complete, after retention removed it. */
  raise(offset: number): void {
    if (offset <= this.#low) return;
    this.#low = offset;
    this.#ranges = this.#ranges.filter(([from, to]) => {
      if (from >= offset) return true;
      this.#above -= to - from;
      if (to > this.#low) this.#low = to;
      return false;
    });
    this.#absorb();
  }

  toStored(): StoredRanges {
    return { low: this.#low, ranges: this.#ranges };
  }

  #absorb(): void {
    while (this.#ranges.length > 0 && this.#ranges[0]![0] <= this.#low) {
      const [from, to] = this.#ranges.shift()!;
      this.#above -= to - from;
      this.#low = Math.max(this.#low, to);
    }
  }

  // The last range that begins at or below `offset`; -1 if none does.
  #find(offset: number): number {
    let low = 0;
    let high = this.#ranges.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ranges[middle]![0] <= offset) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

/** Stored ranges with one more offset. */
export function addOffset(stored: StoredRanges | undefined, offset: number): StoredRanges {
  const ranges = new OffsetRanges(stored);
  ranges.add(offset);
  return ranges.toStored();
}
