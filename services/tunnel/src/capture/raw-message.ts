// The first bytes of one message of a captured request, as they were on the wire.

/** Bytes kept of one message: a head of the largest size, 64 KiB of content, and framing. */
const RAW_BYTES_MAX = 104_448;
const NO_BYTES = Buffer.alloc(0);

export class RawMessage {
  /** Bytes seen, including those that were not kept. */
  seen = 0;
  #bytes: Buffer = NO_BYTES;
  #length = 0;

  /** The kept bytes. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Memory in use. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** True if all bytes were kept. */
  get isWhole(): boolean {
    return this.seen === this.#length;
  }

  /** Copies a part of the message; what exceeds the bound is only counted. */
  add(bytes: Uint8Array): void {
    this.seen += bytes.length;
    const kept = Math.min(bytes.length, RAW_BYTES_MAX - this.#length);
    if (kept <= 0) return;
    this.#reserve(this.#length + kept);
    this.#bytes.set(kept === bytes.length ? bytes : bytes.subarray(0, kept), this.#length);
    this.#length += kept;
  }

  clear(): void {
    this.seen = 0;
    this.#bytes = NO_BYTES;
    this.#length = 0;
  }

  // Most messages arrive in one or two parts: the first allocation fits exactly, further ones double.
  #reserve(size: number): void {
    if (size <= this.#bytes.length) return;
    const capacity = Math.min(RAW_BYTES_MAX, Math.max(size, this.#bytes.length * 2));
    const grown = Buffer.allocUnsafe(capacity);
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
