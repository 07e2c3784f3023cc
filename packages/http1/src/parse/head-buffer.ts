// The bytes of a head that did not arrive in one piece: one growable buffer per connection.

const FIRST_BYTES = 1024;
const KEPT_BYTES = 4096;
const NO_BYTES = Buffer.alloc(0);

/** Grows by doubling up to a bound, so a head that arrives byte by byte costs linear time. */
export class HeadBuffer {
  bytes: Buffer = NO_BYTES;
  length = 0;
  private readonly bytesMax: number;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Appends `source[start, end)`, or as much of it as the bound allows; gives the bytes taken. */
  append(source: Buffer, start: number, end: number): number {
    const taken = Math.min(end - start, this.bytesMax - this.length);
    const needed = this.length + taken;
    if (needed > this.bytes.length) {
      const size = Math.min(this.bytesMax, Math.max(FIRST_BYTES, this.bytes.length * 2, needed));
      const grown = Buffer.allocUnsafeSlow(size);
      this.bytes.copy(grown, 0, 0, this.length);
      this.bytes = grown;
    }
    source.copy(this.bytes, this.length, start, start + taken);
    this.length = needed;
    return taken;
  }

  /** Empties the buffer; a large one is given back, so idle connections stay small. */
  clear(): void {
    this.length = 0;
    if (this.bytes.length > KEPT_BYTES) this.bytes = NO_BYTES;
  }
}
