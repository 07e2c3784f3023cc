// Reusable memory for reads.
import { BLOCK_BYTES, FRAME_BYTES } from "./layout.ts";

/** Sizes of the buffers: one or two blocks if memory is short, otherwise a frame with its checksums. */
const SIZES = [BLOCK_BYTES, 2 * BLOCK_BYTES, FRAME_BYTES + 4 * (FRAME_BYTES / BLOCK_BYTES)];
/** Maximum number of spare buffers of each size. */
const SPARE_MAX = 32;

/**
 * Pooled, because a new frame for each read is a megabyte of garbage, and garbage collection took a third of the time of
 * reading large objects. Blocks cause garbage at the same rate, and are used when memory is short.
 */
export class FrameMemory {
  readonly #spare = new Map<number, Buffer[]>(SIZES.map((size) => [size, []]));
  readonly #lent = new WeakMap<ArrayBufferLike, Buffer>();

  /** Returns a buffer of `length` bytes, at most the size of a frame with its checksums. */
  take(length: number): Buffer {
    const size = SIZES.find((one) => length <= one);
    // Most of a larger buffer would be unused.
    if (size === undefined || length < size / 2) return Buffer.allocUnsafe(length);
    const buffer = this.#spare.get(size)!.pop() ?? Buffer.allocUnsafeSlow(size);
    this.#lent.set(buffer.buffer, buffer);
    return buffer.subarray(0, length);
  }

  /** Gives back a buffer that `take` returned, or a view of it. Other buffers are ignored. */
  recycle(part: Buffer): void {
    const buffer = this.#lent.get(part.buffer);
    if (buffer === undefined) return;
    this.#lent.delete(part.buffer);
    const spare = this.#spare.get(buffer.length)!;
    if (spare.length < SPARE_MAX) spare.push(buffer);
  }
}
