// The memory of one question for groups, sorted and distinct records.
import { SelectError } from "../language/fault.ts";

const BYTES_MAX = 64 * 1024 * 1024;
/** An entry of a map or a list, with its object. */
const ENTRY_BYTES = 120;

export class MemoryBudget {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax = BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Takes memory for an entry with texts of this many UTF-16 units. Throws QueryLimitExceeded. */
  take(length: number): void {
    this.#bytes += ENTRY_BYTES + 2 * length;
    if (this.#bytes <= this.#bytesMax) return;
    throw new SelectError(
      "QueryLimitExceeded",
      `Groups, sorted and distinct records need more than ${this.#bytesMax / 2 ** 20} MiB.`,
    );
  }

  /** Gives memory back. */
  give(length: number): void {
    this.#bytes -= ENTRY_BYTES + 2 * length;
  }
}
