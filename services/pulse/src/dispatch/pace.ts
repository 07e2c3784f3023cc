// Slows down background work in favour of urgent work.
import { setTimeout as sleep } from "node:timers/promises";

const STEPS_AT_ONCE = 500;

/** Paces a loop of small steps: pauses for twice the time of each block of steps. */
export class Pace {
  #count = 0;
  #sinceMs = performance.now();

  /** Called after each step; returns a promise when it is time to pause. */
  rest(): Promise<void> | undefined {
    if (++this.#count % STEPS_AT_ONCE !== 0) return undefined;
    return sleep(2 * (performance.now() - this.#sinceMs)).then(() => {
      this.#sinceMs = performance.now();
    });
  }
}
