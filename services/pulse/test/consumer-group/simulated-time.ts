// Time that moves only when a test says so, with timers.
import type { GroupTime } from "../../src/consumer-group/index.ts";

/** Timers run in order while time is moved; promises settle in between. */
export class SimulatedTime implements GroupTime {
  #nowMs = 0;
  #timers: { atMs: number; run: () => void }[] = [];

  monotonicMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + ms, run };
    this.#timers.push(timer);
    return () => void (this.#timers = this.#timers.filter((other) => other !== timer));
  }

  get timerCount(): number {
    return this.#timers.length;
  }

  /** Moves on by `ms`. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await settle();
    for (;;) {
      const next = this.#timers.toSorted((one, other) => one.atMs - other.atMs)[0];
      if (next === undefined || next.atMs > endMs) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#nowMs = next.atMs;
      next.run();
      await settle();
    }
    this.#nowMs = endMs;
    await settle();
  }
}

/** Lets everything happen that waits for nothing but promises. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}
