// The error of a question.
import { SELECT_ERRORS, type SelectErrorCode } from "../../model/select-errors.ts";

/** A place in the SQL expression, both from 1; columns count UTF-16 units. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A question that cannot be answered: a fault of the expression, of the request, or of the data. */
export class SelectError extends Error {
  override readonly name = "SelectError";
  readonly code: SelectErrorCode;
  /** The place in the expression; `undefined` for faults of the data. */
  readonly place: Place | undefined;

  /** Without a detail, the message is that of the code. */
  constructor(code: SelectErrorCode, detail?: string, place?: Place, options?: ErrorOptions) {
    super(detail ?? SELECT_ERRORS[code][1], options);
    this.code = code;
    this.place = place;
  }
}

/** Finds the lines and columns of offsets in a text. */
export class Locator {
  readonly #lineStarts = [0];

  constructor(text: string) {
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) {
      this.#lineStarts.push(at + 1);
    }
  }

  locate(offset: number): Place {
    const starts = this.#lineStarts;
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - starts[low]! + 1 };
  }
}
