// Ranges of segment files that were verified against their checksums recently.

/** Maximum number of files kept; the one that was added to least recently is dropped. */
const FILES_MAX = 4096;
/** Maximum number of ranges per file; the shortest one is dropped. Partitions share files, and readers start anywhere. */
const RANGES_MAX = 64;
/** A range is verified again after this time, to find new damage. */
const KEPT_MS = 5 * 60_000;

interface Range {
  from: number;
  to: number;
  untilMs: number;
}

/** Disjoint ranges per file, in ascending order. */
export class VerifiedRanges {
  readonly #ranges = new Map<string, Range[]>();
  readonly #now: () => number;

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  covers(path: string, from: number, to: number): boolean {
    const ranges = this.#ranges.get(path);
    if (ranges === undefined) return false;
    const range = ranges[findFirst(ranges, from)];
    return (
      range !== undefined && range.from <= from && range.to >= to && range.untilMs > this.#now()
    );
  }

  /** Merges with the ranges that it touches. The result expires when the first of them would have. */
  add(path: string, from: number, to: number): void {
    const nowMs = this.#now();
    const known = this.#ranges.get(path)?.filter(({ untilMs }) => untilMs > nowMs) ?? [];
    const merged: Range = { from, to, untilMs: nowMs + KEPT_MS };
    const first = findFirst(known, from);
    let next = first;
    for (; next < known.length && known[next]!.from <= to; next += 1) {
      const range = known[next]!;
      merged.from = Math.min(merged.from, range.from);
      merged.to = Math.max(merged.to, range.to);
      merged.untilMs = Math.min(merged.untilMs, range.untilMs);
    }
    known.splice(first, next - first, merged);
    if (known.length > RANGES_MAX) known.splice(findShortest(known), 1);
    this.#ranges.delete(path);
    this.#ranges.set(path, known);
    if (this.#ranges.size <= FILES_MAX) return;
    const oldest = this.#ranges.keys().next();
    if (oldest.done !== true) this.#ranges.delete(oldest.value);
  }
}

/** Index of the first range that ends at or after a position. */
function findFirst(ranges: readonly Range[], position: number): number {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[middle]!.to < position) low = middle + 1;
    else high = middle;
  }
  return low;
}

function findShortest(ranges: readonly Range[]): number {
  let shortest = 0;
  for (const [index, { from, to }] of ranges.entries()) {
    if (to - from < ranges[shortest]!.to - ranges[shortest]!.from) shortest = index;
  }
  return shortest;
}
