// Memory of the bodies of AI routes that a worker holds.

/** Bytes of requests and answers of models that are held at the same time in one worker. */
const BYTES_MAX = 268_435_456;

/** The held bytes of one worker. */
export class BodyMemory {
  #bytes = 0;

  /** Claims memory; false if none is left. */
  claim(bytes: number): boolean {
    if (this.#bytes + bytes > BYTES_MAX) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Gives memory back. */
  release(bytes: number): void {
    this.#bytes -= bytes;
  }
}
