// Shared state of links: a link is one target of one route. All workers of a process share circuits and canary counts.

/** Maximum number of links; a change that needs more is refused. More than fit in memory, like the other slots. */
export const LINKS_MAX = 1_048_576;

/** Words per link; see {@link SharedLinkState}. */
export const LINK_STATE_INTS = 32;

const STATE = 0;
const UNTIL = 1;
const OPENINGS = 2;
const PROBES_STARTED = 3;
const PROBES_PASSED = 4;
const CANARY_REQUESTS = 5;
const CANARY_FAILURES = 6;
const WEIGHT = 7;
const REQUESTS = 8;
const BUCKETS = 11;
const FAILURES = REQUESTS + BUCKETS;
const TRIAL = FAILURES + BUCKETS;
const COUNT_BITS = 20;
const COUNT_MASK = (1 << COUNT_BITS) - 1;
const STAMP_MASK = 0xfff;
/** Times are stored in units of 64 ms, so that 31 bits last for four years. */
const UNIT_MS = 64;

/** Longest window of a circuit in seconds. */
export const CIRCUIT_WINDOW_SECONDS_MAX = BUCKETS - 1;

/** State of a circuit. */
export const Circuit = { Closed: 0, Open: 1, HalfOpen: 2 } as const;

/** A state of {@link Circuit} in responses. */
export type CircuitName = "closed" | "open" | "half_open";

/**
 * Circuits, canary counts and effective weights by link slot. Times are milliseconds since `SharedBuffers.startedMs`.
 *
 *     [0] state of the circuit   [1] open until, or probes until   [2] consecutive openings   [3] probes started
 *     [4] probes passed          [5] canary requests               [6] canary failures        [7] weight + 1, 0: configured
 *     [8 … 18] requests by second, [19 … 29] failures by second: 12 bits of the lap, 20 bits of the count
 *     [30] last trial of the route whose first link this is, in ms modulo 2^32; 0: never
 */
export class SharedLinkState {
  readonly #words: Int32Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer);
  }

  /** A value of {@link Circuit}. */
  readCircuit(slot: number): number {
    return Atomics.load(this.#words, slot * LINK_STATE_INTS + STATE);
  }

  /** The state of the circuit as text. */
  describeCircuit(slot: number): CircuitName {
    const state = this.readCircuit(slot);
    if (state === Circuit.Closed) return "closed";
    return state === Circuit.Open ? "open" : "half_open";
  }

  /** Changes the state of the circuit; false if it was not `from`, because another worker was faster. */
  changeCircuit(slot: number, from: number, to: number, untilMs: number): boolean {
    const at = slot * LINK_STATE_INTS;
    if (Atomics.compareExchange(this.#words, at + STATE, from, to) !== from) return false;
    Atomics.store(this.#words, at + UNTIL, Math.ceil(untilMs / UNIT_MS));
    Atomics.store(this.#words, at + PROBES_STARTED, 0);
    Atomics.store(this.#words, at + PROBES_PASSED, 0);
    return true;
  }

  /** End of the open state, or of the time for probes. */
  readUntilMs(slot: number): number {
    return Atomics.load(this.#words, slot * LINK_STATE_INTS + UNTIL) * UNIT_MS;
  }

  /** Starts the next round of probes because those of the last one have not all reported. */
  restartProbes(slot: number, untilMs: number): void {
    const at = slot * LINK_STATE_INTS;
    Atomics.store(this.#words, at + UNTIL, Math.ceil(untilMs / UNIT_MS));
    Atomics.store(this.#words, at + PROBES_STARTED, 0);
    Atomics.store(this.#words, at + PROBES_PASSED, 0);
  }

  /** Takes the next trial of a route, by its first link; false less than `intervalMs` after the last one. */
  startTrial(slot: number, nowMs: number, intervalMs: number): boolean {
    const at = slot * LINK_STATE_INTS + TRIAL;
    const last = Atomics.load(this.#words, at);
    const passedMs = (Math.floor(nowMs) - last) | 0;
    if (last !== 0 && passedMs >= 0 && passedMs < intervalMs) return false;
    return Atomics.compareExchange(this.#words, at, last, stampTrial(nowMs)) === last;
  }

  /** Puts the next trial off, as if one had just started. */
  delayTrial(slot: number, nowMs: number): void {
    Atomics.store(this.#words, slot * LINK_STATE_INTS + TRIAL, stampTrial(nowMs));
  }

  /** Counts a probe that starts; returns the number started before. */
  startProbe(slot: number): number {
    return Atomics.add(this.#words, slot * LINK_STATE_INTS + PROBES_STARTED, 1);
  }

  /** Counts a probe that passed; returns the number of those. */
  passProbe(slot: number): number {
    return Atomics.add(this.#words, slot * LINK_STATE_INTS + PROBES_PASSED, 1) + 1;
  }

  /** Counts an opening; returns the number of consecutive ones before. */
  addOpening(slot: number): number {
    return Atomics.add(this.#words, slot * LINK_STATE_INTS + OPENINGS, 1);
  }

  /** Forgets past openings and results after the circuit has closed. */
  resetCircuit(slot: number): void {
    const at = slot * LINK_STATE_INTS;
    Atomics.store(this.#words, at + OPENINGS, 0);
    for (let word = REQUESTS; word < FAILURES + BUCKETS; word++) {
      Atomics.store(this.#words, at + word, 0);
    }
  }

  /** Counts a result in the window of the circuit. */
  addResult(slot: number, isFailure: boolean, nowMs: number): void {
    const at = slot * LINK_STATE_INTS;
    const second = Math.floor(nowMs / 1000);
    this.#increment(at + REQUESTS + (second % BUCKETS), second);
    if (isFailure) this.#increment(at + FAILURES + (second % BUCKETS), second);
  }

  /** Requests of the last `windowSeconds`. */
  countRequests(slot: number, windowSeconds: number, nowMs: number): number {
    return this.#sum(slot * LINK_STATE_INTS + REQUESTS, windowSeconds, nowMs);
  }

  /** Failures of the last `windowSeconds`. */
  countFailures(slot: number, windowSeconds: number, nowMs: number): number {
    return this.#sum(slot * LINK_STATE_INTS + FAILURES, windowSeconds, nowMs);
  }

  /** Counts an attempt at a canary. */
  addCanaryResult(slot: number, isFailure: boolean): void {
    const at = slot * LINK_STATE_INTS;
    Atomics.add(this.#words, at + CANARY_REQUESTS, 1);
    if (isFailure) Atomics.add(this.#words, at + CANARY_FAILURES, 1);
  }

  /** Attempts at a canary and their failures since the window was restarted. */
  readCanary(slot: number): { requests: number; failures: number } {
    const at = slot * LINK_STATE_INTS;
    return {
      requests: Atomics.load(this.#words, at + CANARY_REQUESTS),
      failures: Atomics.load(this.#words, at + CANARY_FAILURES),
    };
  }

  /** Restarts the counts of {@link readCanary}. */
  restartCanary(slot: number): void {
    const at = slot * LINK_STATE_INTS;
    Atomics.store(this.#words, at + CANARY_FAILURES, 0);
    Atomics.store(this.#words, at + CANARY_REQUESTS, 0);
  }

  /** The effective weight; undefined: the configured one. */
  readWeight(slot: number): number | undefined {
    const stored = Atomics.load(this.#words, slot * LINK_STATE_INTS + WEIGHT);
    return stored === 0 ? undefined : stored - 1;
  }

  /** Sets the effective weight; `undefined` restores the configured one. */
  setWeight(slot: number, weight: number | undefined): void {
    const stored = weight === undefined ? 0 : weight + 1;
    Atomics.store(this.#words, slot * LINK_STATE_INTS + WEIGHT, stored);
  }

  /** Clears the slot for another link. */
  clear(slot: number): void {
    const at = slot * LINK_STATE_INTS;
    for (let word = 0; word < LINK_STATE_INTS; word++) Atomics.store(this.#words, at + word, 0);
  }

  #increment(at: number, second: number): void {
    const stamp = stampOf(second);
    for (;;) {
      const value = Atomics.load(this.#words, at);
      const isSame = value >>> COUNT_BITS === stamp;
      if (isSame && (value & COUNT_MASK) === COUNT_MASK) return;
      const next = isSame ? value + 1 : (stamp << COUNT_BITS) | 1;
      if (Atomics.compareExchange(this.#words, at, value, next) === value) return;
    }
  }

  #sum(at: number, windowSeconds: number, nowMs: number): number {
    const second = Math.floor(nowMs / 1000);
    let sum = 0;
    for (let past = Math.max(0, second - windowSeconds + 1); past <= second; past++) {
      const value = Atomics.load(this.#words, at + (past % BUCKETS));
      if (value >>> COUNT_BITS === stampOf(past)) sum += value & COUNT_MASK;
    }
    return sum;
  }
}

function stampTrial(nowMs: number): number {
  return Math.floor(nowMs) | 0 || 1;
}

// The lap of a second around the buckets, never 0, so that an unused bucket belongs to no second.
function stampOf(second: number): number {
  return (Math.floor(second / BUCKETS) % STAMP_MASK) + 1;
}
