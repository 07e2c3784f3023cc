// Shared words of a route: the round-robin index that all workers advance together.

/** Words per route: [0] round-robin index. */
export const ROUTE_STATE_INTS = 1;

/** Reads and advances the shared words of routes. */
export class SharedRouteState {
  readonly #words: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer);
  }

  /** The next turn of the route in `slot`, 0 … 2³¹ − 1, each value once before it wraps. */
  takeTurn(slot: number): number {
    return Atomics.add(this.#words, slot * ROUTE_STATE_INTS, 1) & 0x7fffffff;
  }

  /** Makes the slot ready for another route. */
  clear(slot: number): void {
    Atomics.store(this.#words, slot * ROUTE_STATE_INTS, 0);
  }
}
