// Keeps the sent part of a request body for retries.

/** Maximum number of body bytes to keep. */
const KEPT_BYTES_MAX = 65_536;

/** The body bytes sent so far, while a retry may need them. */
export class Replay {
  /** All sent bytes are kept: a retry can send the whole body. */
  isComplete = true;
  pieces: Buffer[] = [];
  #size = 0;

  /** Starts the next request. */
  begin(): void {
    this.isComplete = true;
    if (this.#size > 0) this.forget();
  }

  /** Keeps a sent chunk. */
  keep(bytes: Buffer, start: number, end: number): void {
    if (!this.isComplete) return;
    this.#size += end - start;
    if (this.#size > KEPT_BYTES_MAX) this.giveUp();
    else this.pieces.push(bytes.subarray(start, end));
  }

  /** The body can no longer be sent again. */
  giveUp(): void {
    this.isComplete = false;
    this.forget();
  }

  /** Releases the kept bytes. */
  forget(): void {
    if (this.pieces.length > 0) this.pieces = [];
    this.#size = 0;
  }
}
