// Memory for bodies on their way in: so many bytes, and so many who may wait for them.
import { StoreError } from "../store-error.ts";

interface Waiter {
  bytes: number;
  resolve: () => void;
}

/** Gives out bytes in the order of asking. */
export class StagingBudget {
  readonly #bytesMax: number;
  readonly #waitingMax: number;
  #taken = 0;
  readonly #waiters: Waiter[] = [];

  constructor(bytesMax: number, waitingMax: number) {
    this.#bytesMax = bytesMax;
    this.#waitingMax = waitingMax;
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  /** Takes bytes: at once (undefined), or when there are some. Throws `SlowDown` where too many wait. */
  take(bytes: number): Promise<void> | undefined {
    if (this.#waiters.length === 0 && this.#fits(bytes)) {
      this.#taken += bytes;
      return undefined;
    }
    if (this.#waiters.length >= this.#waitingMax) {
      throw new StoreError("SlowDown", "Too many uploads wait for memory");
    }
    return new Promise((resolve) => this.#waiters.push({ bytes, resolve }));
  }

  /** Gives bytes back. */
  give(bytes: number): void {
    this.#taken -= bytes;
    for (;;) {
      const first = this.#waiters[0];
      if (first === undefined || !this.#fits(first.bytes)) return;
      this.#waiters.shift();
      this.#taken += first.bytes;
      first.resolve();
    }
  }

  // One that is larger than everything still gets its turn, alone.
  #fits(bytes: number): boolean {
    return this.#taken === 0 || this.#taken + bytes <= this.#bytesMax;
  }
}
