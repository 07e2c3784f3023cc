// Recent changes of a service's configuration and objects by people, kept for those who look at it now.
import type { Clock } from "../time/index.ts";

/** A change. */
export interface Change {
  /** A short sentence: `route /api added`. */
  title: string;
  /** The caller, such as a user's name or `operator`. */
  actor?: string;
  /** Path in the console. */
  href?: string;
}

/** A change with its time, RFC 3339. */
export interface RecordedChange extends Change {
  at: string;
}

const CHANGES_MAX = 100;
const TITLE_LENGTH_MAX = 256;

/** The last changes; older ones are dropped. */
export class Changes {
  readonly #clock: Clock;
  readonly #recent: RecordedChange[] = [];
  #listener: ((change: RecordedChange) => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Oldest first. */
  get recent(): readonly RecordedChange[] {
    return this.#recent;
  }

  /** Records a change. */
  note(change: Change): void {
    const title = change.title.slice(0, TITLE_LENGTH_MAX);
    const recorded = { at: new Date(this.#clock.now()).toISOString(), ...change, title };
    this.#recent.push(recorded);
    if (this.#recent.length > CHANGES_MAX) this.#recent.shift();
    this.#listener?.(recorded);
  }

  /** Calls `listener` with each change; one listener at a time. */
  listen(listener: (change: RecordedChange) => void): void {
    this.#listener = listener;
  }
}
