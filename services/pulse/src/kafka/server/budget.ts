// Bytes that all connections together may hold at once, granted in the order of asking.

interface Waiting {
  bytes: number;
  grant: () => void;
}

/**
 * A budget of bytes. What is asked for is granted when it fits, or when nothing is granted at all:
 * a single wish larger than the whole budget is not refused, it is served alone.
 */
export class ByteBudget {
  readonly #total: number;
  #used = 0;
  #waiting: Waiting[] = [];

  constructor(total: number) {
    this.#total = total;
  }

  get used(): number {
    return this.#used;
  }

  /** Resolves with true when `bytes` are granted, with false if `signal` fires before. */
  take(bytes: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#used += bytes;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const stop = () => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting);
        resolve(false);
        this.#serve();
      };
      const waiting: Waiting = {
        bytes,
        grant: () => {
          signal.removeEventListener("abort", stop);
          resolve(true);
        },
      };
      signal.addEventListener("abort", stop, { once: true });
      this.#waiting.push(waiting);
    });
  }

  /** Gives granted bytes back. */
  release(bytes: number): void {
    this.#used -= bytes;
    this.#serve();
  }

  #fits(bytes: number): boolean {
    return this.#used === 0 || this.#used + bytes <= this.#total;
  }

  #serve(): void {
    for (;;) {
      const next = this.#waiting[0];
      if (next === undefined || !this.#fits(next.bytes)) return;
      this.#waiting.shift();
      this.#used += next.bytes;
      next.grant();
    }
  }
}
