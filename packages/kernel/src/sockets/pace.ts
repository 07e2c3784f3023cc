// A minimum rate for peers: bytes per window of time spent waiting for them.

/** A minimum rate. */
export interface PaceBound {
  /** Bytes per window; 0 disables the limit. */
  bytesMin: number;
  /** Length of a window in ms. */
  windowMs: number;
}

/**
 * Checks a transfer by samples. Only time during which this side waits for the peer counts, so neither idle streams nor
 * clients that are held back by this side are too slow.
 */
export class Pace {
  #waitedMs = 0;
  #bytesAtStart = 0;

  /** Starts a window. `bytes` is the number of bytes transferred so far. */
  restart(bytes: number): void {
    this.#waitedMs = 0;
    this.#bytesAtStart = bytes;
  }

  /**
   * Adds a sample: this side has waited for `waitedMs` since the previous one, and `bytes` have been transferred in
   * total. Returns true if a window has passed with fewer bytes than required.
   */
  isTooSlow(bound: PaceBound, waitedMs: number, bytes: number): boolean {
    if (bound.bytesMin === 0) return false;
    this.#waitedMs += waitedMs;
    if (this.#waitedMs < bound.windowMs) return false;
    const moved = bytes - this.#bytesAtStart;
    this.restart(bytes);
    return moved < bound.bytesMin;
  }
}
