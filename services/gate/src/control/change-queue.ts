// Runs changes one at a time in order of arrival, with a bounded queue.
import { createRetryLaterError } from "@platform/kernel/errors";

/** A bounded queue of tasks that run one after another. */
export class ChangeQueue {
  readonly #waitingMax: number;
  #waiting = 0;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(waitingMax: number) {
    this.#waitingMax = waitingMax;
  }

  /** Runs `task` after the queued ones, even if those fail; throws `overloaded` if the queue is full. */
  run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#waiting >= this.#waitingMax) {
      throw createRetryLaterError(
        "overloaded",
        `${this.#waitingMax} changes are already queued; try again`,
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

  /** Resolves when all tasks queued so far are done. */
  async settle(): Promise<void> {
    await this.#tail;
  }
}
