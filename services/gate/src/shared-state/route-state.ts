// Shared state of routes: the round-robin index the queue tickets and the version of weights that all workers advance.

/** Words per route: [0] round-robin index, [1] tickets of waiting requests, [2] version of the weights. */
export const ROUTE_STATE_INTS = 3;

/** Shared state of routes by slot. */
export class SharedRouteState {
  readonly #words: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer);
  }

  /** Returns the next turn of the route in `slot`, 0 … 2³¹ − 1, then wraps. */
  takeTurn(slot: number): number {
    return Atomics.add(this.#words, slot * ROUTE_STATE_INTS, 1) & 0x7fffffff;
  }

  /** Returns the next ticket of the route's queue: any integer but 0, ascending, then wraps. */
  takeTicket(slot: number): number {
    const at = slot * ROUTE_STATE_INTS + 1;
    return (Atomics.add(this.#words, at, 1) + 1) | 0 || (Atomics.add(this.#words, at, 1) + 1) | 0;
  }

  /** Version of the effective weights of the route's targets. */
  readWeightsVersion(slot: number): number {
    return Atomics.load(this.#words, slot * ROUTE_STATE_INTS + 2);
  }

  /** Makes all workers read the effective weights again. */
  changeWeights(slot: number): void {
    Atomics.add(this.#words, slot * ROUTE_STATE_INTS + 2, 1);
  }

  /** Clears the slot for another route. */
  clear(slot: number): void {
    Atomics.store(this.#words, slot * ROUTE_STATE_INTS, 0);
    Atomics.store(this.#words, slot * ROUTE_STATE_INTS + 1, 0);
    Atomics.store(this.#words, slot * ROUTE_STATE_INTS + 2, 0);
  }
}
