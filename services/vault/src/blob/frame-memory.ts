// Memory for frames that are read: used again where the reader says that it is done with it.
import { BLOCK_BYTES, FRAME_BYTES } from "./layout.ts";

const FRAME_BUFFER_BYTES = FRAME_BYTES + 4 * (FRAME_BYTES / BLOCK_BYTES);
/** Smaller buffers cost the collector little. */
const LENGTH_MIN = FRAME_BYTES / 4;
const SPARE_MAX = 32;

/**
 * A frame for each read would be a megabyte of garbage each, which makes the engine collect all the time: that cost a third
 * of what reading large objects took.
 */
export class FrameMemory {
  readonly #spare: Buffer[] = [];
  readonly #lent = new WeakMap<ArrayBufferLike, Buffer>();

  /** A buffer of `length` bytes, up to those of a frame with its checksums. */
  take(length: number): Buffer {
    if (length < LENGTH_MIN || length > FRAME_BUFFER_BYTES) return Buffer.allocUnsafe(length);
    const frame = this.#spare.pop() ?? Buffer.allocUnsafeSlow(FRAME_BUFFER_BYTES);
    this.#lent.set(frame.buffer, frame);
    return frame.subarray(0, length);
  }

  /** Takes back what `take` gave, or a part of it; anything else is left alone. */
  recycle(part: Buffer): void {
    const frame = this.#lent.get(part.buffer);
    if (frame === undefined) return;
    this.#lent.delete(part.buffer);
    if (this.#spare.length < SPARE_MAX) this.#spare.push(frame);
  }
}
