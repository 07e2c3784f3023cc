// Turns of writers: one at a time, in the order of arrival.
import { DatabaseError } from "./error.ts";

interface Waiter {
  grant: () => void;
  timer: NodeJS.Timeout;
}

/** Options of {@link WriterTurns}. */
export interface WriterTurnsOptions {
  /** Maximum wait for a turn in ms. */
  busyTimeoutMs: number;
  /** Maximum number of waiting writers. */
  waitingMax: number;
}

export class WriterTurns {
  readonly #options: WriterTurnsOptions;
  readonly #waiters: Waiter[] = [];
  #isTaken = false;

  constructor(options: WriterTurnsOptions) {
    this.#options = options;
  }

  /** Resolves when it is the caller's turn; rejects with `busy` after the maximum wait, or if too many wait. */
  async take(): Promise<void> {
    if (!this.#isTaken) {
      this.#isTaken = true;
      return;
    }
    if (this.#waiters.length >= this.#options.waitingMax) throw tooManyWaiting();
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(new DatabaseError("busy", "timed out waiting for another transaction"));
      }, this.#options.busyTimeoutMs);
      const waiter: Waiter = { grant: resolve, timer };
      this.#waiters.push(waiter);
    });
  }

  /** Ends the turn; the next writer has it. */
  pass(): void {
    const next = this.#waiters.shift();
    if (next === undefined) {
      this.#isTaken = false;
      return;
    }
    clearTimeout(next.timer);
    next.grant();
  }

  /** Gives all waiting writers their turn, because the database is closed and refuses them. */
  end(): void {
    for (const waiter of this.#waiters.splice(0)) {
      clearTimeout(waiter.timer);
      waiter.grant();
    }
  }
}

/** The error of a writer when too many wait. */
export function tooManyWaiting(): DatabaseError {
  return new DatabaseError("busy", "too many writers are waiting for the database");
}
