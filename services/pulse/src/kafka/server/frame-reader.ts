// Bytes of a connection cut into frames. Nothing is allocated for a length before its bytes have come.
import { ProtocolError } from "../protocol/error.ts";
import { frameLengthBytes } from "../protocol/frame.ts";

/** Collects chunks and gives frames without their length. */
export class FrameReader {
  readonly #frameBytesMax: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(frameBytesMax: number) {
    this.#frameBytesMax = frameBytesMax;
  }

  /** Bytes that have come and were not taken. */
  get bytes(): number {
    return this.#bytes;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  /**
   * The length of the frame that has begun; undefined while its four bytes are not all there.
   * Throws if it is negative or over the bound.
   */
  readLength(): number | undefined {
    if (this.#bytes < frameLengthBytes) return undefined;
    const length = this.#gather(frameLengthBytes).readInt32BE(0);
    if (length < 0 || length > this.#frameBytesMax) {
      throw new ProtocolError(`a frame of ${length} bytes; ${this.#frameBytesMax} are allowed`);
    }
    return length;
  }

  /** The next frame if it is there in full. */
  next(): Buffer | undefined {
    const length = this.readLength();
    if (length === undefined || this.#bytes < frameLengthBytes + length) return undefined;
    const total = frameLengthBytes + length;
    const first = this.#gather(total);
    if (first.length === total) this.#chunks.shift();
    else this.#chunks[0] = first.subarray(total);
    this.#bytes -= total;
    return first.subarray(frameLengthBytes, total);
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
