// Clocks, passed in wherever time matters so that tests need not wait, and repeated timers.
export { every, type RepeatingTimer } from "./every.ts";

/** Two readings of time: the calendar's, and one that never runs backwards. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number;
  /** Milliseconds from an arbitrary start, with fractions; only differences mean something. */
  monotonicMs(): number;
}

/** A clock that moves only when it is told to. */
export interface ManualClock extends Clock {
  /** Moves both readings forward. */
  advance(ms: number): void;
  /** Sets the calendar reading alone, as a stepped system clock does. */
  setNow(epochMs: number): void;
}

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** A clock for tests; `startMs` is its first calendar reading, its monotonic reading starts at 0. */
export function createManualClock(startMs = 0): ManualClock {
  let calendarMs = startMs;
  let elapsedMs = 0;
  return {
    now: () => calendarMs,
    monotonicMs: () => elapsedMs,
    advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`a clock moves forward only, not by ${ms} ms`);
      calendarMs += ms;
      elapsedMs += ms;
    },
    setNow(epochMs) {
      calendarMs = epochMs;
    },
  };
}
