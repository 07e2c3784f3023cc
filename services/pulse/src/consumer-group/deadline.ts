// One timer for the earliest of many deadlines.
import type { GroupTime } from "./types.ts";

/** Calls `run` at the earliest time asked for, or sooner: what is due is for `run` to find out. */
export class Deadline {
  readonly #time: GroupTime;
  readonly #run: () => void;
  #cancel: (() => void) | undefined;
  #atMs = Infinity;

  constructor(time: GroupTime, run: () => void) {
    this.#time = time;
    this.#run = run;
  }

  /** Asks for a call at `atMs` (monotonic). One that is set for an earlier time is left alone. */
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
