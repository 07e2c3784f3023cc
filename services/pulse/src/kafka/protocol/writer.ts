// Writes the protocol's primitives; large byte fields are referenced instead of copied.

const CHUNK_BYTES = 512;
/** Size from which bytes are referenced instead of copied into the current chunk. */
const REFERENCE_BYTES_MIN = 4096;

/**
 * Collects one message as a list of buffers.
 *
 * ```
 *  #chunks: │ full chunk │ referenced │ full chunk │      #chunk: │ written │ free │
 *                                                                 #from ... #at
 * ```
 */
export class Writer {
  /** Compact lengths and tagged fields (KIP-482) instead of the classic encoding. */
  flexible = false;
  readonly #chunks: Buffer[] = [];
  #bytesBefore = 0;
  #chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  #from = 0;
  #at = 0;

  /** Bytes written so far. */
  get bytes(): number {
    return this.#bytesBefore + this.#at - this.#from;
  }

  writeInt8(value: number): void {
    this.#reserve(1);
    this.#at = this.#chunk.writeInt8(value, this.#at);
  }

  writeInt16(value: number): void {
    this.#reserve(2);
    this.#at = this.#chunk.writeInt16BE(value, this.#at);
  }

  writeInt32(value: number): void {
    this.#reserve(4);
    this.#at = this.#chunk.writeInt32BE(value, this.#at);
  }

  /** An integer within ±2^53. */
  writeInt64(value: number): void {
    this.#reserve(8);
    this.#at = this.#chunk.writeInt32BE(Math.floor(value / 4294967296), this.#at);
    const low = ((value % 4294967296) + 4294967296) % 4294967296;
    this.#at = this.#chunk.writeUInt32BE(low, this.#at);
  }

  writeBoolean(value: boolean): void {
    this.writeInt8(value ? 1 : 0);
  }

  /** 32 hexadecimal digits. */
  writeUuid(value: string): void {
    this.#reserve(16);
    if (this.#chunk.write(value, this.#at, 16, "hex") !== 16) {
      throw new RangeError("a UUID must have 32 hexadecimal digits");
    }
    this.#at += 16;
  }

  writeUnsignedVarint(value: number): void {
    this.#reserve(5);
    let rest = value;
    while (rest > 0x7f) {
      this.#chunk[this.#at++] = (rest % 128) | 0x80;
      rest = Math.floor(rest / 128);
    }
    this.#chunk[this.#at++] = rest;
  }

  writeNullableString(value: string | null): void {
    const length = value === null ? -1 : Buffer.byteLength(value);
    if (this.flexible) this.writeUnsignedVarint(length + 1);
    else this.writeInt16(length);
    if (value === null) return;
    this.#reserve(length);
    this.#at += this.#chunk.write(value, this.#at);
  }

  writeNullableBytes(value: Buffer | null): void {
    this.#writeBytesLength(value?.length ?? -1);
    if (value !== null) this.writeRaw(value);
  }

  /** Several buffers as one RECORDS field. */
  writeRecords(buffers: readonly Buffer[] | null): void {
    let length = buffers === null ? -1 : 0;
    for (const buffer of buffers ?? []) length += buffer.length;
    this.#writeBytesLength(length);
    for (const buffer of buffers ?? []) this.writeRaw(buffer);
  }

  /** The count of an array; -1 for null. */
  writeArrayLength(length: number): void {
    if (this.flexible) this.writeUnsignedVarint(length + 1);
    else this.writeInt32(length);
  }

  /** Raw bytes. Large ones are referenced and must not be modified afterwards. */
  writeRaw(bytes: Buffer): void {
    if (bytes.length >= REFERENCE_BYTES_MIN) {
      this.#endChunk();
      this.#chunks.push(bytes);
      this.#bytesBefore += bytes.length;
      return;
    }
    this.#reserve(bytes.length);
    this.#at += bytes.copy(this.#chunk, this.#at);
  }

  /** Everything written, in order. The writer must not be used afterwards. */
  finish(): readonly Buffer[] {
    this.#endChunk();
    return this.#chunks;
  }

  #writeBytesLength(length: number): void {
    if (this.flexible) this.writeUnsignedVarint(length + 1);
    else this.writeInt32(length);
  }

  #endChunk(): void {
    if (this.#at === this.#from) return;
    this.#chunks.push(this.#chunk.subarray(this.#from, this.#at));
    this.#bytesBefore += this.#at - this.#from;
    this.#from = this.#at;
  }

  #reserve(length: number): void {
    if (this.#chunk.length - this.#at >= length) return;
    this.#endChunk();
    this.#chunk = Buffer.allocUnsafe(Math.max(length, this.#chunk.length * 2, CHUNK_BYTES));
    this.#from = 0;
    this.#at = 0;
  }
}
