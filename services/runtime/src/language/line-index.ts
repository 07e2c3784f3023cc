// Lines of a text: offsets as positions, and back.

/** A position as in the Language Server Protocol: both numbers start at 0, characters are UTF-16 units. */
export interface LinePosition {
  readonly line: number;
  readonly character: number;
}

/** The line breaks of the protocol: `\n`, `\r\n` and `\r`. */
const LINE_BREAK = /\r\n?|\n/g;

/** The starts of the lines of a text, found once. */
export class LineIndex {
  readonly #starts: readonly number[];
  readonly #length: number;

  constructor(text: string) {
    this.#length = text.length;
    this.#starts = [
      0,
      ...Array.from(text.matchAll(LINE_BREAK), (found) => found.index + found[0].length),
    ];
  }

  get lineCount(): number {
    return this.#starts.length;
  }

  /** The position of an offset; one outside the text is moved to its nearest end. */
  toPosition(offset: number): LinePosition {
    const at = Math.max(0, Math.min(this.#length, offset));
    let low = 0;
    let high = this.#starts.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (this.#starts[middle]! <= at) low = middle;
      else high = middle;
    }
    return { line: low, character: at - this.#starts[low]! };
  }

  /** The offset of a position; one outside the text is moved to the nearest place in it. */
  toOffset({ line, character }: LinePosition): number {
    if (line < 0) return 0;
    const start = this.#starts[line];
    if (start === undefined) return this.#length;
    const next = this.#starts[line + 1] ?? this.#length;
    return Math.min(next, start + Math.max(0, character));
  }
}
