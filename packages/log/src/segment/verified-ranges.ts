// Ranges of segment files that were verified against their checksums recently.

/** Maximum number of files kept; the least recently verified one is dropped. */
const FILES_MAX = 4096;
/** A file is verified again after this time, to find new damage. */
const KEPT_MS = 5 * 60_000;

interface Range {
  from: number;
  to: number;
  untilMs: number;
}

/** One contiguous range per file, since readers mostly read from start to end. */
export class VerifiedRanges {
  readonly #ranges = new Map<string, Range>();
  readonly #now: () => number;

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  covers(path: string, from: number, to: number): boolean {
    const range = this.#ranges.get(path);
    return (
      range !== undefined && range.from <= from && range.to >= to && range.untilMs > this.#now()
    );
  }

  /** Merges a range that touches the known one; any other replaces it. */
  add(path: string, from: number, to: number): void {
    const known = this.#ranges.get(path);
    const nowMs = this.#now();
    if (known !== undefined && known.untilMs > nowMs && from <= known.to && to >= known.from) {
      known.from = Math.min(known.from, from);
      known.to = Math.max(known.to, to);
      return;
    }
    this.#ranges.delete(path);
    this.#ranges.set(path, { from, to, untilMs: nowMs + KEPT_MS });
    if (this.#ranges.size <= FILES_MAX) return;
    const oldest = this.#ranges.keys().next();
    if (oldest.done !== true) this.#ranges.delete(oldest.value);
  }
}
