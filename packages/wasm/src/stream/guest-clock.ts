// The time and the bytes of a running guest in shared memory: its thread counts, the pool enforces the limits.

const READ = 0;
const WRITTEN = 1;
const WAITED = 2;
const WAITING_SINCE = 3;
const WORDS = 4;

/** Counts of one guest. Times are in ms since the epoch of `performance`, which threads share. */
export class GuestClock {
  readonly memory: SharedArrayBuffer;
  readonly #values: Float64Array;

  constructor(memory = new SharedArrayBuffer(WORDS * 8)) {
    this.memory = memory;
    this.#values = new Float64Array(memory);
  }

  get readBytes(): number {
    return this.#values[READ]!;
  }

  get writtenBytes(): number {
    return this.#values[WRITTEN]!;
  }

  addRead(bytes: number): void {
    this.#values[READ]! += bytes;
  }

  addWritten(bytes: number): void {
    this.#values[WRITTEN]! += bytes;
  }

  /** Does `wait`, whose time does not count as work. */
  waiting(wait: () => void): void {
    const since = readClock();
    this.#values[WAITING_SINCE] = since;
    try {
      wait();
    } finally {
      this.#values[WAITED]! += readClock() - since;
      this.#values[WAITING_SINCE] = 0;
    }
  }

  /** Time in which the guest has waited for bytes or room, until `nowMs`. */
  readWaitedMs(nowMs: number): number {
    const since = this.#values[WAITING_SINCE]!;
    return this.#values[WAITED]! + (since === 0 ? 0 : Math.max(0, nowMs - since));
  }
}

/** The clock that threads share, in ms. */
export function readClock(): number {
  return performance.timeOrigin + performance.now();
}
