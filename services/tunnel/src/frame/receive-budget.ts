// Memory of received bytes that their destinations do not accept yet, for all streams of a process.

/** A stream that holds received bytes. */
export interface Holder {
  /** Drops the stream, which releases its bytes. */
  dropForMemory(): void;
}

const BYTES_MAX = 134_217_728;

/**
 * Counts held bytes. Within half of the budget streams may grow their windows; beyond the budget, the streams that have
 * held bytes for the longest time are dropped.
 */
export class ReceiveBudget {
  heldBytes = 0;
  readonly #bytesMax: number;
  /** In the order in which they began to hold bytes. */
  readonly #holders = new Set<Holder>();

  /** Default 128 MiB. */
  constructor(bytesMax: number = BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** True if windows must not grow. */
  get isTight(): boolean {
    return this.heldBytes > this.#bytesMax / 2;
  }

  /** A stream holds `bytes` more. */
  hold(holder: Holder, bytes: number): void {
    this.heldBytes += bytes;
    this.#holders.add(holder);
    while (this.heldBytes > this.#bytesMax) {
      const [oldest] = this.#holders;
      if (oldest === undefined) return;
      this.#holders.delete(oldest);
      oldest.dropForMemory();
    }
  }

  /** A stream has passed on or dropped `bytes`; `isEmpty` if it holds no more. */
  release(holder: Holder, bytes: number, isEmpty: boolean): void {
    this.heldBytes -= bytes;
    if (isEmpty) this.#holders.delete(holder);
  }
}
