// Splits the bytes of a connection into frames. Memory for a length is only allocated as its bytes arrive, unless `expect`
// guarantees room for it.
import { ProtocolError } from "../protocol/error.ts";
import { FRAME_LENGTH_BYTES } from "../protocol/frame.ts";

/** Collects chunks and returns frames without their length. */
export class FrameReader {
  readonly #frameBytesMax: number;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** The expected frame with its length, and the bytes received so far. */
  #expected: Buffer | undefined;
  #filled = 0;

  constructor(frameBytesMax: number) {
    this.#frameBytesMax = frameBytesMax;
  }

  /** Bytes received and not returned yet. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds `bytes[0, length)`; copies them if they are `shared` with later reads. */
  push(bytes: Buffer, length = bytes.length, isShared = false): void {
    this.#bytes += length;
    let start = 0;
    if (this.#expected !== undefined) {
      start = bytes.copy(this.#expected, this.#filled, 0, length);
      this.#filled += start;
    }
    if (start === length) return;
    const rest = bytes.subarray(start, length);
    this.#chunks.push(isShared ? Buffer.from(rest) : rest);
  }

  /**
   * Allocates the whole current frame: its bytes are copied as they arrive, instead of being kept and joined at the end, so
   * that the chunks become garbage immediately.
   */
  expect(): void {
    const length = this.readLength();
    if (length === undefined || this.#expected !== undefined) return;
    const total = FRAME_LENGTH_BYTES + length;
    const expected = Buffer.allocUnsafeSlow(total);
    this.#filled = 0;
    this.#expected = expected;
    const chunks = this.#chunks;
    this.#chunks = [];
    for (const chunk of chunks) {
      const rest = this.#fill(expected, chunk);
      if (rest.length > 0) this.#chunks.push(rest);
    }
  }

  /**
   * The length of the current frame; `undefined` until its four bytes have arrived. Throws if it is negative or over the
   * limit.
   */
  readLength(): number | undefined {
    if (this.#expected !== undefined) return this.#expected.length - FRAME_LENGTH_BYTES;
    if (this.#bytes < FRAME_LENGTH_BYTES) return undefined;
    const length = this.#gather(FRAME_LENGTH_BYTES).readInt32BE(0);
    if (length < 0 || length > this.#frameBytesMax) {
      throw new ProtocolError(
        `a frame of ${length} bytes exceeds the limit of ${this.#frameBytesMax}`,
      );
    }
    return length;
  }

  /** The next frame, if it is complete. */
  next(): Buffer | undefined {
    const length = this.readLength();
    if (length === undefined || this.#bytes < FRAME_LENGTH_BYTES + length) return undefined;
    const total = FRAME_LENGTH_BYTES + length;
    if (this.#expected !== undefined) {
      const frame = this.#expected.subarray(FRAME_LENGTH_BYTES);
      this.#expected = undefined;
      this.#bytes -= total;
      return frame;
    }
    const first = this.#gather(total);
    if (first.length === total) this.#chunks.shift();
    else this.#chunks[0] = first.subarray(total);
    this.#bytes -= total;
    return first.subarray(FRAME_LENGTH_BYTES, total);
  }

  /** Copies the bytes of the expected frame; returns the rest. */
  #fill(expected: Buffer, chunk: Buffer): Buffer {
    const count = chunk.copy(expected, this.#filled);
    this.#filled += count;
    return chunk.subarray(count);
  }

  /** Ensures that the first chunk holds at least `length` bytes. */
  #gather(length: number): Buffer {
    const [first] = this.#chunks;
    if (first !== undefined && first.length >= length) return first;
    let count = 0;
    for (let bytes = 0; bytes < length; count++) bytes += this.#chunks[count]!.length;
    const joined = Buffer.concat(this.#chunks.slice(0, count));
    this.#chunks.splice(0, count, joined);
    return joined;
  }
}
