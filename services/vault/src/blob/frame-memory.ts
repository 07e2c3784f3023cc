// Memory for what is read: used again where the reader says that it is done with it.
import { BLOCK_BYTES, FRAME_BYTES } from "./layout.ts";

/** Sizes of the buffers: one block or two where memory is short, a frame with its checksums otherwise. */
const SIZES = [BLOCK_BYTES, 2 * BLOCK_BYTES, FRAME_BYTES + 4 * (FRAME_BYTES / BLOCK_BYTES)];
/** Spare buffers of each size. */
const SPARE_MAX = 32;

/**
 * A frame for each read would be a megabyte of garbage each, which makes the engine collect all the time: that cost a third
 * of what reading large objects took. Blocks are garbage at the same rate, and come when memory is short.
 */
export class FrameMemory {
  readonly #spare = new Map<number, Buffer[]>(SIZES.map((size) => [size, []]));
  readonly #lent = new WeakMap<ArrayBufferLike, Buffer>();

  /** A buffer of `length` bytes, up to those of a frame with its checksums. */
  take(length: number): Buffer {
    const size = SIZES.find((one) => length <= one);
    // Of a larger buffer, most would lie idle.
    if (size === undefined || length < size / 2) return Buffer.allocUnsafe(length);
    const buffer = this.#spare.get(size)!.pop() ?? Buffer.allocUnsafeSlow(size);
    this.#lent.set(buffer.buffer, buffer);
    return buffer.subarray(0, length);
  }

  /** Takes back what `take` gave, or a part of it; anything else is left alone. */
  recycle(part: Buffer): void {
    const buffer = this.#lent.get(part.buffer);
    if (buffer === undefined) return;
    this.#lent.delete(part.buffer);
    const spare = this.#spare.get(buffer.length)!;
    if (spare.length < SPARE_MAX) spare.push(buffer);
  }
}
