// Lines that are kept for a while. They are kept as bytes: texts that outlive a collection are copied by the collector.

/** Lines as UTF-8, one behind the other, up to a bound. */
export class LineBuffer {
  /** Lines in it. */
  lines = 0;
  /** Their bytes. */
  length = 0;
  readonly #bytes: Buffer;

  constructor(bytesMax: number) {
    this.#bytes = Buffer.allocUnsafeSlow(bytesMax);
  }

  /** Takes a line, its end included; false where there is no room for it. */
  add(line: string): boolean {
    const room = this.#bytes.length - this.length;
    // A character has three bytes at most.
    if (line.length * 3 > room && Buffer.byteLength(line) > room) return false;
    this.length += this.#bytes.write(line, this.length);
    this.lines += 1;
    return true;
  }

  /** Its lines: a view that the next `add` after `clear` writes to. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.length);
  }

  /** Forgets all lines. */
  clear(): void {
    this.lines = 0;
    this.length = 0;
  }
}
