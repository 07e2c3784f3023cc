// Shared state of upstreams: health that one worker observes applies to all workers.

/** Words per target; see {@link SharedTargetState}. */
export const TARGET_STATE_INTS = 8;

const EJECTED_UNTIL = 0;
const EJECTIONS = 1;
const FAILURES = 2;
const RECOVERED_AT = 3;
const EJECTIONS_TOTAL = 4;
const DOWN = 5;

/**
 * The health of upstreams. Times are milliseconds since `SharedBuffers.startedMs`, stored in units of
 * 64 ms so that 31 bits last for four years.
 *
 *     [0] ejected until, 0: not ejected     [1] consecutive ejections (backoff)
 *     [2] consecutive failures              [3] readmitted at, 0: never ejected
 *     [4] ejections since the slot was assigned   [5] 1: fails its active health checks
 */
export class SharedTargetState {
  readonly #words: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer);
  }

  /** End of the target's ejection in ms since the start; 0 if it is not ejected. */
  readEjectedUntilMs(slot: number): number {
    return Atomics.load(this.#words, slot * TARGET_STATE_INTS + EJECTED_UNTIL) * 64;
  }

  /** Time at which the target was readmitted in ms since the start; 0 if it was never ejected. */
  readRecoveredAtMs(slot: number): number {
    return Atomics.load(this.#words, slot * TARGET_STATE_INTS + RECOVERED_AT) * 64;
  }

  /** Number of consecutive ejections without a success in between. */
  readEjections(slot: number): number {
    return Atomics.load(this.#words, slot * TARGET_STATE_INTS + EJECTIONS);
  }

  /** Number of ejections since the slot was assigned. */
  readEjectionsTotal(slot: number): number {
    return Atomics.load(this.#words, slot * TARGET_STATE_INTS + EJECTIONS_TOTAL);
  }

  /** Failures since the last success. */
  readFailures(slot: number): number {
    return Atomics.load(this.#words, slot * TARGET_STATE_INTS + FAILURES);
  }

  /** Counts a failure and returns the number of consecutive failures. */
  addFailure(slot: number): number {
    return Atomics.add(this.#words, slot * TARGET_STATE_INTS + FAILURES, 1) + 1;
  }

  /** Ejects the target until `untilMs`; false if another worker has already ejected it. */
  eject(slot: number, untilMs: number): boolean {
    const at = slot * TARGET_STATE_INTS;
    const until = Math.max(1, Math.ceil(untilMs / 64));
    if (Atomics.compareExchange(this.#words, at + EJECTED_UNTIL, 0, until) !== 0) return false;
    Atomics.add(this.#words, at + EJECTIONS, 1);
    Atomics.add(this.#words, at + EJECTIONS_TOTAL, 1);
    Atomics.store(this.#words, at + FAILURES, 0);
    return true;
  }

  /** Readmits the target at `nowMs`; its backoff remains until a request succeeds. */
  readmit(slot: number, nowMs: number): void {
    const at = slot * TARGET_STATE_INTS;
    if (Atomics.exchange(this.#words, at + EJECTED_UNTIL, 0) === 0) return;
    Atomics.store(this.#words, at + RECOVERED_AT, Math.max(1, Math.floor(nowMs / 64)));
  }

  /** Resets failures and backoff after a success. */
  resetFailures(slot: number): void {
    const at = slot * TARGET_STATE_INTS;
    Atomics.store(this.#words, at + FAILURES, 0);
    Atomics.store(this.#words, at + EJECTIONS, 0);
  }

  /** True if the target fails its active health checks. */
  isDown(slot: number): boolean {
    return Atomics.load(this.#words, slot * TARGET_STATE_INTS + DOWN) === 1;
  }

  /** Records the outcome of active health checks; a recovered target starts slowly. */
  setDown(slot: number, isDown: boolean, nowMs: number): void {
    const at = slot * TARGET_STATE_INTS;
    const before = Atomics.exchange(this.#words, at + DOWN, isDown ? 1 : 0);
    if (before === 0 || isDown) return;
    Atomics.store(this.#words, at + RECOVERED_AT, Math.max(1, Math.floor(nowMs / 64)));
  }

  /** Clears the slot for another target. */
  clear(slot: number): void {
    const at = slot * TARGET_STATE_INTS;
    for (let word = 0; word < TARGET_STATE_INTS; word++) Atomics.store(this.#words, at + word, 0);
  }
}
