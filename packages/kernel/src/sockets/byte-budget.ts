// A byte budget of all connections, granted in order of request.

interface Waiting {
  bytes: number;
  grant: () => void;
}

/**
 * A byte budget. A request is granted when it fits, or when nothing else is granted: a single request larger than the
 * whole budget is served alone instead of being refused.
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

  /** Resolves with true when `bytes` are granted, with false if `signal` fires first. */
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

  /** Returns granted bytes. */
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
