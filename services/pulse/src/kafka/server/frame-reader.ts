// Bytes of a connection cut into frames. Nothing is allocated for a length before its bytes have come, unless `expect` says
// that there is room for it.
import { ProtocolError } from "../protocol/error.ts";
import { FRAME_LENGTH_BYTES } from "../protocol/frame.ts";

/** Collects chunks and gives frames without their length. */
export class FrameReader {
  readonly #frameBytesMax: number;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** The frame that is expected, with its length, and how much of it has come. */
  #expected: Buffer | undefined;
  #filled = 0;

  constructor(frameBytesMax: number) {
    this.#frameBytesMax = frameBytesMax;
  }

  /** Bytes that have come and were not taken. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Takes `bytes[0, length)`: copied where they are `shared` and go on no further, else kept. */
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
   * Makes room for the whole frame that has begun: its bytes are put in place as they come, instead of being kept as they
   * came and joined at the end, so that the chunks are garbage at once.
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
   * The length of the frame that has begun; undefined while its four bytes are not all there.
   * Throws if it is negative or over the bound.
   */
  readLength(): number | undefined {
    if (this.#expected !== undefined) return this.#expected.length - FRAME_LENGTH_BYTES;
    if (this.#bytes < FRAME_LENGTH_BYTES) return undefined;
    const length = this.#gather(FRAME_LENGTH_BYTES).readInt32BE(0);
    if (length < 0 || length > this.#frameBytesMax) {
      throw new ProtocolError(`a frame of ${length} bytes; ${this.#frameBytesMax} are allowed`);
    }
    return length;
  }

  /** The next frame if it is there in full. */
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

  /** Copies what belongs to the expected frame; gives what comes after it. */
  #fill(expected: Buffer, chunk: Buffer): Buffer {
    const count = chunk.copy(expected, this.#filled);
    this.#filled += count;
    return chunk.subarray(count);
  }

  /** Makes the first chunk hold at least `length` bytes. */
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
