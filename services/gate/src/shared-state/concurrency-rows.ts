// Concurrent and waiting requests by worker and route: one row per worker, written only by that worker.

/** Words per worker and route: active requests, waiting requests, the first waiting ticket (0: none). */
export const CONCURRENCY_INTS = 3;

const ACTIVE = 0;
const WAITING = 1;
const HEAD = 2;

/** Bounded concurrency of one worker's routes, across all workers. */
export class ConcurrencyRows {
  readonly #words: Int32Array;
  readonly #workers: number;
  /** Words of one row. */
  readonly #stride: number;
  readonly #row: number;

  /** `workerIndex` is the row that this thread writes. */
  constructor(buffer: SharedArrayBuffer, workers: number, workerIndex: number) {
    this.#words = new Int32Array(buffer);
    this.#workers = workers;
    this.#stride = this.#words.length / workers;
    this.#row = workerIndex * this.#stride;
  }

  /**
   * Takes one of `max` places; false if all are in use. Two workers that try for the last place at the same moment may
   * both fail, never both succeed.
   */
  enter(slot: number, max: number): boolean {
    const own = this.#row + slot * CONCURRENCY_INTS + ACTIVE;
    Atomics.add(this.#words, own, 1);
    if (this.#sum(slot, ACTIVE) <= max) return true;
    Atomics.sub(this.#words, own, 1);
    return false;
  }

  /** Returns a place. */
  leave(slot: number): void {
    Atomics.sub(this.#words, this.#row + slot * CONCURRENCY_INTS + ACTIVE, 1);
  }

  /** Takes one of `max` places in the queue; false if it is full. */
  join(slot: number, max: number): boolean {
    const own = this.#row + slot * CONCURRENCY_INTS + WAITING;
    Atomics.add(this.#words, own, 1);
    if (this.#sum(slot, WAITING) <= max) return true;
    Atomics.sub(this.#words, own, 1);
    return false;
  }

  /** Returns a place in the queue. */
  quit(slot: number): void {
    Atomics.sub(this.#words, this.#row + slot * CONCURRENCY_INTS + WAITING, 1);
  }

  /** Shows the first ticket that waits on this worker, 0 for none. */
  showHead(slot: number, ticket: number): void {
    Atomics.store(this.#words, this.#row + slot * CONCURRENCY_INTS + HEAD, ticket);
  }

  /** True if no other worker has an earlier ticket waiting. Tickets are compared by distance, because they wrap. */
  isFirst(slot: number, ticket: number): boolean {
    for (let worker = 0; worker < this.#workers; worker++) {
      const at = worker * this.#stride + slot * CONCURRENCY_INTS + HEAD;
      const other = Atomics.load(this.#words, at);
      if (other !== 0 && ((other - ticket) | 0) < 0) return false;
    }
    return true;
  }

  /** True if a request waits on any worker. */
  hasWaiting(slot: number): boolean {
    return this.#sum(slot, WAITING) > 0;
  }

  /** Clears the row of a worker that has ended. For the control plane. */
  clearWorker(workerIndex: number): void {
    const row = workerIndex * this.#stride;
    // Unused words are only read: writing to them would occupy memory.
    for (let at = row; at < row + this.#stride; at++) {
      if (this.#words[at] !== 0) this.#words[at] = 0;
    }
  }

  /** Clears the slot for another route. */
  clear(slot: number): void {
    for (let worker = 0; worker < this.#workers; worker++) {
      const at = worker * this.#stride + slot * CONCURRENCY_INTS;
      this.#words.fill(0, at, at + CONCURRENCY_INTS);
    }
  }

  #sum(slot: number, word: number): number {
    let sum = 0;
    for (let worker = 0; worker < this.#workers; worker++) {
      sum += Atomics.load(this.#words, worker * this.#stride + slot * CONCURRENCY_INTS + word);
    }
    return sum;
  }
}
