// Bytes that a reader has received and not passed yet.

export class ByteQueue {
  bytes: Buffer = Buffer.alloc(0);
  /** The position of the reader in `bytes`. */
  at = 0;
  isEnded = false;
  /** Bytes before `bytes`. */
  #passed = 0;

  /** The position of the reader since the start. */
  get offset(): number {
    return this.#passed + this.at;
  }

  /** Bytes that have not been passed. */
  get length(): number {
    return this.bytes.length - this.at;
  }

  /** Adds bytes. Positions in `bytes` change. */
  feed(bytes: Buffer): void {
    this.#passed += this.at;
    this.bytes =
      this.at === this.bytes.length ? bytes : Buffer.concat([this.bytes.subarray(this.at), bytes]);
    this.at = 0;
  }

  /** Passes the bytes before a position. */
  skipTo(at: number): void {
    this.at = at;
  }
}
