// The part of a request's body that is kept for another try.

/** Request bytes behind the head that are kept. */
const KEPT_BYTES_MAX = 65_536;

/** The body bytes sent so far, while a retry may need them. */
export class Replay {
  /** Nothing is lost: another try can have the whole body. */
  isComplete = true;
  pieces: Buffer[] = [];
  #size = 0;

  /** The next request. */
  begin(): void {
    this.isComplete = true;
    if (this.#size > 0) this.forget();
  }

  /** A piece was sent. */
  keep(bytes: Buffer, start: number, end: number): void {
    if (!this.isComplete) return;
    this.#size += end - start;
    if (this.#size > KEPT_BYTES_MAX) this.giveUp();
    else this.pieces.push(bytes.subarray(start, end));
  }

  /** No other try can have the body any more. */
  giveUp(): void {
    this.isComplete = false;
    this.forget();
  }

  /** Nobody will ask for the body again. */
  forget(): void {
    if (this.pieces.length > 0) this.pieces = [];
    this.#size = 0;
  }
}
