// Waiting between attempts.

/** Delays from `firstMs`, doubled by each failure up to `maxMs`, half of each at random so that clients spread. */
export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  #failures = 0;

  constructor(firstMs: number, maxMs: number) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
  }

  /** Counts a failure; ms until the next attempt. */
  next(): number {
    const whole = Math.min(this.#firstMs * 2 ** Math.min(this.#failures++, 30), this.#maxMs);
    return whole * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#failures = 0;
  }
}

/** Ends the pauses of a loop early. */
export class Pause {
  #end: (() => void) | undefined;
  #untilMs = 0;

  /** Waits `ms`; `wake` ends it early, but not within the first `minMs`. Ends at once when `signal` is aborted. */
  async wait(ms: number, signal: AbortSignal, minMs = 0): Promise<void> {
    if (signal.aborted) return;
    this.#untilMs = performance.now() + minMs;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        this.#end = undefined;
        resolve();
      };
      const timer = setTimeout(end, Math.max(ms, minMs));
      signal.addEventListener("abort", end);
      this.#end = end;
    });
  }

  wake(): void {
    if (performance.now() >= this.#untilMs) this.#end?.();
  }
}
