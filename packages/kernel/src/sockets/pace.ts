// A minimum pace for peers: so many bytes in each window of the time that was spent waiting for them.

/** The least that a peer must move. */
export interface PaceBound {
  /** Bytes in each window; 0 switches the bound off. */
  bytesMin: number;
  /** Length of a window in milliseconds. */
  windowMs: number;
}

/**
 * Judges one transfer by samples. Only time that passed while the peer kept this side waiting counts, so neither a stream
 * with nothing to send nor a client that is held back by this side is ever too slow.
 */
export class Pace {
  #waitedMs = 0;
  #bytesAtStart = 0;

  /** Begins a window. `bytes` is what has been moved so far. */
  restart(bytes: number): void {
    this.#waitedMs = 0;
    this.#bytesAtStart = bytes;
  }

  /**
   * Adds a sample: the peer has kept this side waiting for `waitedMs` since the last one, and has moved `bytes` in all.
   * Returns true if a window has passed with fewer bytes than the bound asks for.
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
