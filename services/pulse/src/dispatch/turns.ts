// Shares the process among long loops: each runs for a few milliseconds in its turn.

/** Longest time for which a loop keeps the process, in ms. */
const TURN_MS = 4;

/** The turns of all loops: one for each pass of the event loop, so that many loops delay others no more than one does. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  #isScheduled = false;

  /** Calls `work` with each item; rejects with what it throws. Items that are added meanwhile may be included. */
  async forEach<Item>(items: Iterable<Item>, work: (item: Item) => void): Promise<void> {
    let endsMs = 0;
    for (const item of items) {
      if (performance.now() >= endsMs) {
        await this.#next();
        endsMs = performance.now() + TURN_MS;
      }
      work(item);
    }
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#waiting.shift()!();
      this.#schedule();
    });
  }
}
