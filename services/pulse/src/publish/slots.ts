// Bounds how many pieces of work run in parallel.

/** Runs at most `count` pieces of work in parallel; the others wait in the order of calls. */
export class Slots {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** Runs work once a slot is free; settles as it does. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}
