// Shared words of an upstream: what one worker learns about its health, all workers act on.

/** Words per target, see {@link SharedTargetState}. */
export const TARGET_STATE_INTS = 8;

const EJECTED_UNTIL = 0;
const EJECTIONS = 1;
const FAILURES = 2;
const RECOVERED_AT = 3;
const EJECTIONS_TOTAL = 4;

/**
 * The health of upstreams. Times are milliseconds since `SharedBuffers.startedMs`, kept in units of
 * 64 ms so that 31 bits last for four years.
 *
 *     [0] ejected until, 0: not ejected     [1] ejections in a row (backoff)
 *     [2] failures in a row                 [3] in traffic again since, 0: never ejected
 *     [4] ejections since the slot was taken
 */
export class SharedTargetState {
  readonly #words: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer);
  }

  /** When the ejection of the target ends, in ms since the start; 0: it is in traffic. */
  readEjectedUntilMs(slot: number): number {
    return Atomics.load(this.#words, slot * TARGET_STATE_INTS + EJECTED_UNTIL) * 64;
  }

  /** When the target came back into traffic, in ms since the start; 0: it was never out. */
  readRecoveredAtMs(slot: number): number {
    return Atomics.load(this.#words, slot * TARGET_STATE_INTS + RECOVERED_AT) * 64;
  }

  /** How often the target was ejected without a success in between. */
  readEjections(slot: number): number {
    return Atomics.load(this.#words, slot * TARGET_STATE_INTS + EJECTIONS);
  }

  /** How often the target was ejected since its slot was taken. */
  readEjectionsTotal(slot: number): number {
    return Atomics.load(this.#words, slot * TARGET_STATE_INTS + EJECTIONS_TOTAL);
  }

  /** Failures since the last success. */
  readFailures(slot: number): number {
    return Atomics.load(this.#words, slot * TARGET_STATE_INTS + FAILURES);
  }

  /** Counts a failure and returns how many there are in a row. */
  addFailure(slot: number): number {
    return Atomics.add(this.#words, slot * TARGET_STATE_INTS + FAILURES, 1) + 1;
  }

  /** Takes the target out of traffic until `untilMs`; false where another worker did so already. */
  eject(slot: number, untilMs: number): boolean {
    const at = slot * TARGET_STATE_INTS;
    const until = Math.max(1, Math.ceil(untilMs / 64));
    if (Atomics.compareExchange(this.#words, at + EJECTED_UNTIL, 0, until) !== 0) return false;
    Atomics.add(this.#words, at + EJECTIONS, 1);
    Atomics.add(this.#words, at + EJECTIONS_TOTAL, 1);
    Atomics.store(this.#words, at + FAILURES, 0);
    return true;
  }

  /** Brings the target back into traffic at `nowMs`; its backoff stays until it has a success. */
  readmit(slot: number, nowMs: number): void {
    const at = slot * TARGET_STATE_INTS;
    if (Atomics.exchange(this.#words, at + EJECTED_UNTIL, 0) === 0) return;
    Atomics.store(this.#words, at + RECOVERED_AT, Math.max(1, Math.floor(nowMs / 64)));
  }

  /** Forgets failures and backoff after a success. */
  forgive(slot: number): void {
    const at = slot * TARGET_STATE_INTS;
    Atomics.store(this.#words, at + FAILURES, 0);
    Atomics.store(this.#words, at + EJECTIONS, 0);
  }

  /** Makes the slot ready for another target. */
  clear(slot: number): void {
    const at = slot * TARGET_STATE_INTS;
    for (let word = 0; word < TARGET_STATE_INTS; word++) Atomics.store(this.#words, at + word, 0);
  }
}
