// The queue of requests with large answers, while clients have too much to read.
import type { OutgoingBudget } from "@platform/kernel/sockets";

const leaveNothing = (): void => undefined;

/**
 * A first-come, first-served queue in front of the budget of answers. While requests wait, answers are built one at a time,
 * so that each sees the rest of the budget that the previous one has left. Sweeps of the budget make room.
 */
export class AnswerRoom {
  readonly #outgoing: OutgoingBudget;
  readonly #waiting = new Set<() => void>();
  /** True while the answer of a request from the queue is being built. */
  #isInUse = false;
  readonly #admitNext = (): void => {
    const [next] = this.#waiting;
    if (next === undefined || this.#isInUse) return;
    if (this.#outgoing.isFull) this.#outgoing.whenRoom(this.#admitNext);
    else next();
  };

  constructor(outgoing: OutgoingBudget) {
    this.#outgoing = outgoing;
  }

  /** True if `enter` would wait. */
  get isCrowded(): boolean {
    return this.#waiting.size > 0 || this.#outgoing.isFull;
  }

  /**
   * Resolves when there is room; call the returned function when the answer was written or dropped. Resolves with
   * `undefined` when `signal` fires, or after `timeoutMs`.
   */
  enter(signal: AbortSignal, timeoutMs?: number): Promise<(() => void) | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    if (!this.isCrowded) return Promise.resolve(leaveNothing);
    return new Promise((resolve) => {
      const stopWaiting = (): void => {
        this.#waiting.delete(admit);
        clearTimeout(timer);
        signal.removeEventListener("abort", giveUp);
      };
      const admit = (): void => {
        stopWaiting();
        this.#isInUse = true;
        resolve(() => {
          this.#isInUse = false;
          setImmediate(this.#admitNext);
        });
      };
      const giveUp = (): void => {
        stopWaiting();
        resolve(undefined);
      };
      const timer = timeoutMs === undefined ? undefined : setTimeout(giveUp, timeoutMs);
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting.add(admit);
      if (this.#waiting.size === 1) this.#admitNext();
    });
  }
}
