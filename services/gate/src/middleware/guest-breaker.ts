// Stops calling a guest that fails again and again.

const FAILURES_MAX = 5;
const WINDOW_MS = 10_000;
const OPEN_MS_MIN = 1_000;
const OPEN_MS_MAX = 30_000;

/**
 * The circuit of one module on one worker.
 *
 * ```text
 *   closed --5 failures in 10 s, or a failed start--> open 1 s --> trial --success--> closed
 *                                     ^----failure, twice as long, at most 30 s
 * ```
 */
export class GuestBreaker {
  readonly #readNowMs: () => number;
  #failures: number[] = [];
  #openMs = 0;
  #openUntilMs = 0;

  constructor(readNowMs: () => number) {
    this.#readNowMs = readNowMs;
  }

  /** True while the guest must not be called. */
  get isOpen(): boolean {
    return this.#openMs > 0 && this.#readNowMs() < this.#openUntilMs;
  }

  noteSuccess(): void {
    if (this.#openMs === 0) return;
    this.#openMs = 0;
    this.#failures = [];
  }

  noteFailure(): void {
    const nowMs = this.#readNowMs();
    if (this.#openMs > 0) {
      // Calls that began before it opened end later.
      if (nowMs >= this.#openUntilMs) this.#open(nowMs, Math.min(this.#openMs * 2, OPEN_MS_MAX));
      return;
    }
    this.#failures = this.#failures.filter((atMs) => nowMs - atMs < WINDOW_MS);
    this.#failures.push(nowMs);
    if (this.#failures.length >= FAILURES_MAX) this.#open(nowMs, OPEN_MS_MIN);
  }

  /** An instance could not be created. Starts may cost more than calls, and the next one would end alike: opens at once. */
  noteFailedStart(): void {
    if (this.#openMs > 0) this.noteFailure();
    else this.#open(this.#readNowMs(), OPEN_MS_MIN);
  }

  #open(nowMs: number, openMs: number): void {
    this.#openMs = openMs;
    this.#openUntilMs = nowMs + openMs;
  }
}
