// One timer for the earliest of many deadlines.
import type { GroupTime } from "./types.ts";

/** Calls `run` at or before the earliest requested time; `run` checks what is due. */
export class Deadline {
  readonly #time: GroupTime;
  readonly #run: () => void;
  #cancel: (() => void) | undefined;
  #atMs = Infinity;

  constructor(time: GroupTime, run: () => void) {
    this.#time = time;
    this.#run = run;
  }

  /** Requests a call at `atMs` (monotonic). An earlier one stays. */
  set(atMs: number): void {
    if (atMs >= this.#atMs) return;
    this.#cancel?.();
    this.#atMs = atMs;
    const waitMs = Math.max(1, Math.ceil(atMs - this.#time.monotonicMs()));
    this.#cancel = this.#time.after(waitMs, () => {
      this.#cancel = undefined;
      this.#atMs = Infinity;
      this.#run();
    });
  }

  clear(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#atMs = Infinity;
  }
}
