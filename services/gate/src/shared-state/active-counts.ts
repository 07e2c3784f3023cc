// How many exchanges each worker has under way at each upstream: one row per worker, one writer per row.
import { type SharedBuffers, TARGETS_MAX } from "./shared-buffers.ts";

/** Exchanges, WebSockets and streams under way by target slot. */
export class ActiveCounts {
  readonly #words: Int32Array;
  readonly #workers: number;

  constructor(buffers: SharedBuffers) {
    this.#words = new Int32Array(buffers.active);
    this.#workers = buffers.workers;
  }

  /** Adds `change` (1 or −1) in the row of `workerIndex`, which only that worker writes. */
  add(workerIndex: number, slot: number, change: 1 | -1): void {
    const at = workerIndex * TARGETS_MAX + slot;
    this.#words[at] = (this.#words[at] ?? 0) + change;
  }

  /** The target's count over all workers. */
  sum(slot: number): number {
    let total = 0;
    for (let worker = 0; worker < this.#workers; worker++) {
      total += this.#words[worker * TARGETS_MAX + slot] ?? 0;
    }
    return total;
  }

  /** Forgets what a worker had under way. For the control plane, once that worker is dead. */
  clearWorker(workerIndex: number): void {
    this.#words.fill(0, workerIndex * TARGETS_MAX, (workerIndex + 1) * TARGETS_MAX);
  }

  /** Makes the slot ready for another target. */
  clear(slot: number): void {
    for (let worker = 0; worker < this.#workers; worker++) {
      this.#words[worker * TARGETS_MAX + slot] = 0;
    }
  }
}
