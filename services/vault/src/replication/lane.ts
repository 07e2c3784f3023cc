// The lane of a destination: how many versions are sent at the same time, and when it stands still.
import type { Clock } from "@platform/kernel/time";

const PLACES_MAX = 32;
/** Failures in a row after which a lane stands still; then one version at a time tries. */
const FAILURES_MAX = 4;
const PAUSE_MS_MIN = 1_000;
const PAUSE_MS_MAX = 60_000;

/** Counts of a lane since the start. */
export interface LaneCounts {
  completed: number;
  bytes: number;
  failed: number;
  retried: number;
}

/** The state of one destination. A dead one costs a trial a minute, and nothing of what waits for it is written meanwhile. */
export class Lane {
  readonly counts: LaneCounts = { completed: 0, bytes: 0, failed: 0, retried: 0 };
  readonly #clock: Clock;
  #failures = 0;
  #pauseMs = 0;
  #untilMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Versions that may be sent at the same time now. */
  get places(): number {
    if (this.#failures < FAILURES_MAX) return PLACES_MAX;
    return this.#clock.monotonicMs() < this.#untilMs ? 0 : 1;
  }

  /** Time until the next trial; `undefined` unless the lane stands still. */
  get pausedMs(): number | undefined {
    if (this.#failures < FAILURES_MAX) return undefined;
    return Math.max(0, this.#untilMs - this.#clock.monotonicMs());
  }

  /** The destination has answered. */
  settle(): void {
    this.#failures = 0;
    this.#pauseMs = 0;
  }

  /** The destination has not answered. */
  fail(): void {
    this.counts.retried += 1;
    this.#failures += 1;
    const nowMs = this.#clock.monotonicMs();
    // Those that were on their way when it stood still say nothing new.
    if (this.#failures < FAILURES_MAX || nowMs < this.#untilMs) return;
    this.#pauseMs = Math.min(PAUSE_MS_MAX, Math.max(PAUSE_MS_MIN, this.#pauseMs * 2));
    this.#untilMs = nowMs + this.#pauseMs;
  }
}
