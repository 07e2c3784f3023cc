// Stops requests to a store that fails, so that callers learn it at once and the store can recover.
import type { Clock } from "@platform/kernel/time";

/** Failures in a row after which the circuit opens. */
const FAILURES_MAX = 8;
/** Time until the first trial request; doubles with each failed trial. */
const OPEN_MS = 1_000;
const OPEN_MS_MAX = 30_000;

/** Counts the outcomes of requests to one store. */
export class CircuitBreaker {
  readonly #clock: Clock;
  #failures = 0;
  #openMs = 0;
  #untilMs = 0;
  #isTrying = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True from the failures that opened the circuit until a success. */
  get isOpen(): boolean {
    return this.#openMs > 0;
  }

  /** Time until a request may be sent: 0 if it may be sent now, as the only trial if the circuit was open. */
  admit(): number {
    if (this.#openMs === 0) return 0;
    const waitMs = this.#untilMs - this.#clock.monotonicMs();
    if (waitMs > 0) return waitMs;
    if (this.#isTrying) return OPEN_MS;
    this.#isTrying = true;
    return 0;
  }

  /** Records the end of an admitted request; `undefined` if it says nothing about the store. */
  settle(isHealthy: boolean | undefined): void {
    this.#isTrying = false;
    if (isHealthy === undefined) return;
    if (isHealthy) {
      this.#failures = 0;
      this.#openMs = 0;
      return;
    }
    this.#failures += 1;
    const nowMs = this.#clock.monotonicMs();
    // Requests that were in flight when the circuit opened are no trials.
    if (this.#failures < FAILURES_MAX || nowMs < this.#untilMs) return;
    this.#openMs = Math.min(OPEN_MS_MAX, this.#openMs === 0 ? OPEN_MS : this.#openMs * 2);
    this.#untilMs = nowMs + this.#openMs;
  }
}
