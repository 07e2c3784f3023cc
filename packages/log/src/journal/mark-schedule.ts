// Moves the durable mark: not with each group, but shortly after the last one.
import type { Clock } from "../disk/port.ts";
import type { Journal, JournalPlace } from "./journal.ts";

/** Delay between a group and the mark. */
const DELAY_MS = 50;

/** Moves the mark at most once per delay. */
export class MarkSchedule {
  readonly #journal: Journal;
  readonly #clock: Clock;
  readonly #onError: (error: Error) => void;
  #place: JournalPlace;
  #timer: (() => void) | undefined;

  /** `onError` is called if the mark cannot be written. */
  constructor(journal: Journal, clock: Clock, onError: (error: Error) => void) {
    this.#journal = journal;
    this.#clock = clock;
    this.#onError = onError;
    this.#place = journal.place;
  }

  /** The journal has been applied up to `place`; the mark follows within the delay. */
  arm(place: JournalPlace): void {
    this.#place = place;
    this.#timer ??= this.#clock.after(DELAY_MS, () => {
      this.#timer = undefined;
      this.#journal.mark(this.#place).catch(this.#onError);
    });
  }

  stop(): void {
    this.#timer?.();
  }
}
