// One change at a time, in the order they came, and never more waiting than the bound.
import { createRetryLaterError } from "@platform/kernel/errors";

/** Runs tasks one after the other. */
export class ChangeQueue {
  readonly #waitingMax: number;
  #waiting = 0;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(waitingMax: number) {
    this.#waitingMax = waitingMax;
  }

  /** Runs `task` after those before it; throws `overloaded` where too many wait. A task's failure is its own. */
  run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#waiting >= this.#waitingMax) {
      throw createRetryLaterError(
        "overloaded",
        `${this.#waitingMax} changes are waiting already; try again`,
        1,
      );
    }
    this.#waiting++;
    const result = this.#tail.then(task);
    this.#tail = result.then(
      () => this.#waiting--,
      () => this.#waiting--,
    );
    return result;
  }

  /** Resolves when everything that waits now is done. */
  async settle(): Promise<void> {
    await this.#tail;
  }
}
