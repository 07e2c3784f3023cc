// Memory for bytes that pass through, used again: fresh memory for each read costs page faults and whole collections.

/** Spare memory that nobody has taken for one to two of these intervals is given back. */
const IDLE_MS = 10_000;

/** Options of a {@link BufferPool}. */
export interface BufferPoolOptions {
  /** Bytes of its buffers, ascending. */
  readonly sizes: readonly number[];
  /** Spare buffers of each size. */
  readonly spareMax: number;
  /** Bytes of all spare buffers. Unbounded by default. */
  readonly spareBytesMax?: number;
}

/** Buffers of a few sizes. Those that are not given back are collected as any others. */
export class BufferPool {
  readonly #sizes: readonly number[];
  readonly #spareMax: number;
  readonly #spareBytesMax: number;
  #spareBytes = 0;
  readonly #spare: ReadonlyMap<number, Buffer[]>;
  readonly #lent = new WeakMap<ArrayBufferLike, Buffer>();
  #isUsed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor({ sizes, spareMax, spareBytesMax = Infinity }: BufferPoolOptions) {
    this.#sizes = sizes;
    this.#spareMax = spareMax;
    this.#spareBytesMax = spareBytesMax;
    this.#spare = new Map(sizes.map((size) => [size, []]));
  }

  /** A buffer of `length` bytes with undefined content. One that is larger than all sizes does not come from the pool. */
  take(length: number): Buffer {
    const size = this.#sizes.find((one) => length <= one);
    // Most of a larger buffer would be unused.
    if (size === undefined || length < size / 2) return Buffer.allocUnsafe(length);
    this.#isUsed = true;
    const spare = this.#spare.get(size)!.pop();
    if (spare !== undefined) this.#spareBytes -= size;
    const buffer = spare ?? Buffer.allocUnsafeSlow(size);
    this.#lent.set(buffer.buffer, buffer);
    return buffer.subarray(0, length);
  }

  /** Gives back a buffer that `take` returned, or a view of it. Other buffers are ignored. */
  recycle(part: Buffer): void {
    const buffer = this.#lent.get(part.buffer);
    if (buffer === undefined) return;
    this.#lent.delete(part.buffer);
    const spare = this.#spare.get(buffer.length)!;
    const hasRoom = this.#spareBytes + buffer.length <= this.#spareBytesMax;
    if (hasRoom && spare.length < this.#spareMax) {
      spare.push(buffer);
      this.#spareBytes += buffer.length;
    }
    this.#timer ??= setInterval(() => this.#sweep(), IDLE_MS).unref();
  }

  #sweep(): void {
    if (this.#isUsed) {
      this.#isUsed = false;
      return;
    }
    for (const spare of this.#spare.values()) spare.length = 0;
    this.#spareBytes = 0;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
