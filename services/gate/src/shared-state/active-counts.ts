// Active exchanges by worker and upstream: one row per worker, written only by that worker.
import { type SharedBuffers, TARGETS_MAX } from "./shared-buffers.ts";

/** Active requests, WebSockets and streams by target slot. */
export class ActiveCounts {
  readonly #words: Int32Array;
  readonly #workers: number;

  constructor(buffers: SharedBuffers) {
    this.#words = new Int32Array(buffers.active);
    this.#workers = buffers.workers;
  }

  /** Adds `change` (1 or −1) to the row of `workerIndex`, which only that worker writes. */
  add(workerIndex: number, slot: number, change: 1 | -1): void {
    const at = workerIndex * TARGETS_MAX + slot;
    this.#words[at] = (this.#words[at] ?? 0) + change;
  }

  /** The target's count across all workers. */
  sum(slot: number): number {
    let total = 0;
    for (let worker = 0; worker < this.#workers; worker++) {
      total += this.#words[worker * TARGETS_MAX + slot] ?? 0;
    }
    return total;
  }

  /** Clears the counts of a worker that has ended. For the control plane. */
  clearWorker(workerIndex: number): void {
    this.#words.fill(0, workerIndex * TARGETS_MAX, (workerIndex + 1) * TARGETS_MAX);
  }

  /** Clears the slot for another target. */
  clear(slot: number): void {
    for (let worker = 0; worker < this.#workers; worker++) {
      this.#words[worker * TARGETS_MAX + slot] = 0;
    }
  }
}
