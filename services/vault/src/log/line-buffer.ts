// A buffer of lines. They are kept as bytes, because the garbage collector copies strings that survive a collection.

/** Lines in UTF-8 one after another, up to a size limit. */
export class LineBuffer {
  /** Number of lines. */
  lines = 0;
  /** Their size in bytes. */
  length = 0;
  readonly #bytes: Buffer;

  constructor(bytesMax: number) {
    this.#bytes = Buffer.allocUnsafeSlow(bytesMax);
  }

  /** Appends a line with its line end; false if there is no room. */
  add(line: string): boolean {
    const room = this.#bytes.length - this.length;
    // A UTF-16 unit has at most three bytes.
    if (line.length * 3 > room && Buffer.byteLength(line) > room) return false;
    this.length += this.#bytes.write(line, this.length);
    this.lines += 1;
    return true;
  }

  /** The lines: a view that is overwritten by the next `add` after `clear`. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.length);
  }

  /** Drops all lines. */
  clear(): void {
    this.lines = 0;
    this.length = 0;
  }
}
