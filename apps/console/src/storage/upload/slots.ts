// A bounded number of requests at the same time: browsers have six connections to a server, and the page needs some of them.

/** Slots that are acquired in order. */
export class Slots {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** Runs work in a slot. Rejects with the signal's reason if it is aborted before. */
  async run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    await this.#acquire(signal);
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  async #acquire(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = (): void => {
      const index = this.#waiting.indexOf(enter);
      if (index !== -1) this.#waiting.splice(index, 1);
      reject(signal.reason as Error);
    };
    const enter = (): void => {
      signal.removeEventListener("abort", leave);
      resolve();
    };
    signal.addEventListener("abort", leave, { once: true });
    this.#waiting.push(enter);
    await promise;
  }
}
