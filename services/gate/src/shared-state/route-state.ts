// Shared state of routes: the round-robin index that all workers advance.

/** Words per route: [0] round-robin index. */
export const ROUTE_STATE_INTS = 1;

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

  /** Clears the slot for another route. */
  clear(slot: number): void {
    Atomics.store(this.#words, slot * ROUTE_STATE_INTS, 0);
  }
}
