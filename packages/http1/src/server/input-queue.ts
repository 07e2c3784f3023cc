// Received bytes that have not been processed.

/** Chunks in order of arrival; the first one is unprocessed from `at` on. */
export class InputQueue {
  /** The first chunk; null if the queue is empty. */
  chunk: Buffer | null = null;
  at = 0;
  readonly #more: Buffer[] = [];
  #moreBytes = 0;

  /** Number of unprocessed bytes. */
  get size(): number {
    return this.chunk === null ? 0 : this.chunk.length - this.at + this.#moreBytes;
  }

  push(chunk: Buffer): void {
    if (this.chunk === null) {
      this.chunk = chunk;
      this.at = 0;
    } else {
      this.#more.push(chunk);
      this.#moreBytes += chunk.length;
    }
  }

  /** The first chunk has been processed up to `to`. */
  advance(to: number): void {
    if (to === this.chunk!.length) this.next();
    else this.at = to;
  }

  /** The first chunk has been processed. */
  next(): void {
    this.at = 0;
    if (this.#more.length === 0) {
      this.chunk = null;
      return;
    }
    this.chunk = this.#more.shift()!;
    this.#moreBytes -= this.chunk.length;
  }

  /** Copies the rest of the first chunk, whose memory will be reused. */
  own(): void {
    if (this.chunk === null) return;
    this.chunk = Buffer.from(this.chunk.subarray(this.at));
    this.at = 0;
  }

  /** Removes and returns all unprocessed bytes. */
  takeAll(): Buffer {
    if (this.chunk === null) return Buffer.alloc(0);
    const all = Buffer.concat([this.chunk.subarray(this.at), ...this.#more]);
    this.drop();
    return all;
  }

  drop(): void {
    this.chunk = null;
    this.at = 0;
    this.#more.length = 0;
    this.#moreBytes = 0;
  }
}

/** Copies received bytes from a buffer that the next read overwrites. */
export function copyRead(bytes: Buffer, length: number): Buffer {
  const copy = Buffer.allocUnsafe(length);
  bytes.copy(copy, 0, 0, length);
  return copy;
}
