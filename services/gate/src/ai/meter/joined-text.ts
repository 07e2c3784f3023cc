// Short texts of plain ASCII, joined in memory that is used again.

const BYTES_MIN = 256;
/** A call that copies costs more than this many bytes in a loop. */
const LOOP_BYTES_MAX = 64;

/** Several texts as one. */
export class JoinedText {
  /** Its first `length` bytes are the text. */
  bytes = Buffer.alloc(0);
  length = 0;

  /** Begins another text. */
  clear(): void {
    this.length = 0;
  }

  /** Adds `from[start, end)`. */
  add(from: Buffer, start: number, end: number): void {
    const size = end - start;
    const needed = this.length + size;
    if (needed > this.bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(BYTES_MIN, needed, this.bytes.length * 2));
      this.bytes.copy(larger, 0, 0, this.length);
      this.bytes = larger;
    }
    const { bytes, length } = this;
    if (size > LOOP_BYTES_MAX) from.copy(bytes, length, start, end);
    else for (let at = 0; at < size; at++) bytes[length + at] = from[start + at]!;
    this.length = needed;
  }

  /** The text. */
  read(): string {
    return this.bytes.toString("latin1", 0, this.length);
  }
}
