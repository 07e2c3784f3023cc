// Bounds the fetches from the store: in all, and per partition, so that one reader leaves room for others.
import { LogError } from "../errors.ts";

const FETCHES_MAX = 16;
const FETCHES_PER_PARTITION_MAX = 2;
const WAITING_MAX = 4_096;

interface Waiting {
  partition: number;
  start: () => void;
}

/** Slots for fetches, given in the order of requests as far as the bounds allow. */
export class FetchSlots {
  readonly #active = new Map<number, number>();
  #count = 0;
  readonly #waiting = new Set<Waiting>();

  /** Waits for a slot. Rejects with `overloaded` if too many wait. */
  take(partition: number): Promise<void> {
    if (this.#isFree(partition)) {
      this.#occupy(partition);
      return Promise.resolve();
    }
    if (this.#waiting.size >= WAITING_MAX) {
      throw new LogError("overloaded", `${WAITING_MAX} reads wait for the object store`);
    }
    return new Promise((resolve) => {
      this.#waiting.add({ partition, start: resolve });
    });
  }

  /** Takes a slot only if it is free and nobody waits for one. */
  tryTake(partition: number): boolean {
    if (this.#waiting.size > 0 || !this.#isFree(partition)) return false;
    this.#occupy(partition);
    return true;
  }

  release(partition: number): void {
    this.#count -= 1;
    const left = (this.#active.get(partition) ?? 1) - 1;
    if (left === 0) this.#active.delete(partition);
    else this.#active.set(partition, left);
    for (const waiting of this.#waiting) {
      if (this.#count >= FETCHES_MAX) return;
      if (!this.#isFree(waiting.partition)) continue;
      this.#waiting.delete(waiting);
      this.#occupy(waiting.partition);
      waiting.start();
    }
  }

  #isFree(partition: number): boolean {
    const ofPartition = this.#active.get(partition) ?? 0;
    return this.#count < FETCHES_MAX && ofPartition < FETCHES_PER_PARTITION_MAX;
  }

  #occupy(partition: number): void {
    this.#count += 1;
    this.#active.set(partition, (this.#active.get(partition) ?? 0) + 1);
  }
}
