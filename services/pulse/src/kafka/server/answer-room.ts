// The queue of requests whose answers may have any size, while clients have too much to read.
import type { OutgoingBudget } from "@platform/kernel/sockets";

const leaveNothing = (): void => undefined;

/**
 * A queue in front of the budget of answers: first come, first served. While requests wait, answers are made one at a time,
 * so that each sees what the one before has left of the budget. `sweep` makes room.
 */
export class AnswerRoom {
  readonly #outgoing: OutgoingBudget;
  readonly #waiting = new Set<() => void>();
  /** Whether one that had to wait is having its answer made. */
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

  /** Whether `enter` would wait. */
  get isCrowded(): boolean {
    return this.#waiting.size > 0 || this.#outgoing.isFull;
  }

  /**
   * Resolves when there is room; the returned function must be called when the answer has been written, or never will be.
   * Resolves with undefined when `signal` fires, or after `timeoutMs`.
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

  /**
   * Judges the clients that have answers to read. While requests wait, half of the budget is freed and not only what exceeds
   * it: those who wait may not read either, and each of them would cost the next one another sweep.
   */
  sweep(elapsedMs: number): void {
    const { bytesMax } = this.#outgoing;
    if (this.#waiting.size > 0) this.#outgoing.bytesMax = bytesMax / 2;
    this.#outgoing.sweep(elapsedMs);
    this.#outgoing.bytesMax = bytesMax;
    this.#admitNext();
  }
}
