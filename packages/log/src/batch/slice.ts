// Lets other work of the process run during a long computation.
import { setImmediate as nextTurn } from "node:timers/promises";

export { nextTurn };

/** Work between two pauses, in bytes read or written: a few milliseconds. */
export const SLICE_BYTES = 512 * 1024;
/** The work that a block costs beside its bytes, so that many empty ones are no long computation either. */
export const BLOCK_COST_BYTES = 64;

/** Counts the work of one computation, and pauses it after each slice. */
export class Slices {
  #left = SLICE_BYTES;

  /** Notes work. Resolves in a later turn of the event loop if the slice is used up. */
  async spend(bytes: number): Promise<void> {
    if (this.uses(bytes)) await nextTurn();
  }

  /** Notes work without a promise for each piece: true if the caller is to await `nextTurn`. */
  uses(bytes: number): boolean {
    this.#left -= bytes;
    if (this.#left > 0) return false;
    this.#left = SLICE_BYTES;
    return true;
  }
}
