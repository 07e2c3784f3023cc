// Clocks, passed to components so that tests need not wait, and repeated timers.
export { every, type RepeatingTimer } from "./every.ts";
export { SetBackWatch } from "./set-back.ts";
export { sweepEvery } from "./sweeps.ts";

/** Calendar time, and a monotonic time. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number;
  /** Milliseconds from an arbitrary start, with fractions; only differences are meaningful. */
  monotonicMs(): number;
}

/** A clock that moves only by its methods. */
export interface ManualClock extends Clock {
  /** Advances both times. */
  advance(ms: number): void;
  /** Sets only the calendar time, like a stepped system clock. */
  setNow(epochMs: number): void;
}

/** The system clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** Creates a clock for tests. `startMs` is the initial calendar time; monotonic time starts at 0. */
export function createManualClock(startMs = 0): ManualClock {
  let calendarMs = startMs;
  let elapsedMs = 0;
  return {
    now: () => calendarMs,
    monotonicMs: () => elapsedMs,
    advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`a clock cannot advance by ${ms} ms`);
      calendarMs += ms;
      elapsedMs += ms;
    },
    setNow(epochMs) {
      calendarMs = epochMs;
    },
  };
}
