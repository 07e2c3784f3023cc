// Long work that has time, beside work that has none.
import { setTimeout as sleep } from "node:timers/promises";

const STEPS_AT_ONCE = 500;

/** Paces a loop of small steps: after each piece of work it leaves twice as much time to everything else. */
export class Pace {
  #count = 0;
  #sinceMs = performance.now();

  /** Called after each step; a promise where it is time to rest. */
  rest(): Promise<void> | undefined {
    if (++this.#count % STEPS_AT_ONCE !== 0) return undefined;
    return sleep(2 * (performance.now() - this.#sinceMs)).then(() => {
      this.#sinceMs = performance.now();
    });
  }
}
