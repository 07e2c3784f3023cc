// Reads a range of an object ahead of the thread that answers the question.

/** Bytes of a piece. */
const PIECE_BYTES = 256 * 1024;
/** Bytes that the thread has not used up, and those of the next piece. */
const AHEAD_BYTES_MAX = 1024 * 1024;

/** The part that a question reads. */
interface FeedOptions {
  /** Chunks are valid until the next one is asked for. */
  readonly chunks: AsyncGenerator<Buffer, void, undefined>;
  /** Bytes of the range, at most. */
  readonly sizeBytes: number;
  /** Sends a piece, whose memory can be transferred; `undefined` at the end of the range. */
  readonly send: (piece: Uint8Array<ArrayBuffer> | undefined) => void;
  readonly onFailed: (error: unknown) => void;
}

/** Collects pieces while the thread has work, and sends what there is when it has none. */
export class RangeFeed {
  readonly #options: FeedOptions;
  #leftBytes: number;
  #piece: Uint8Array<ArrayBuffer> | undefined;
  #pieceBytes = 0;
  #aheadBytes = 0;
  #resume: (() => void) | undefined;
  #hasEnded = false;

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#leftBytes = options.sizeBytes;
    this.#run().catch((error: unknown) => {
      if (!this.#hasEnded) options.onFailed(error);
    });
  }

  /** True if the thread has used up what it was sent, and must wait for the object. */
  get isAwaited(): boolean {
    return !this.#hasEnded && this.#aheadBytes === 0;
  }

  /** Accounts for bytes that the thread has used up. */
  onTaken(bytes: number): void {
    this.#aheadBytes -= bytes;
    if (this.#aheadBytes === 0) this.#flush();
    this.#resume?.();
  }

  /** Ends the reading. Harmless at any time. */
  close(): void {
    this.#hasEnded = true;
    this.#piece = undefined;
    this.#resume?.();
    this.#options.chunks.return().catch(() => undefined);
  }

  async #run(): Promise<void> {
    for await (const chunk of this.#options.chunks) {
      if (this.#hasEnded) return;
      this.#collect(chunk);
      if (this.#aheadBytes === 0) this.#flush();
      while (!this.#hasEnded && this.#aheadBytes + this.#pieceBytes >= AHEAD_BYTES_MAX) {
        await new Promise<void>((resolve) => {
          this.#resume = resolve;
        });
      }
    }
    if (this.#hasEnded) return;
    this.#flush();
    this.#hasEnded = true;
    this.#options.send(undefined);
  }

  #collect(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) {
      this.#piece ??= new Uint8Array(Math.min(PIECE_BYTES, Math.max(this.#leftBytes, 1)));
      const part = chunk.subarray(at, at + this.#piece.length - this.#pieceBytes);
      this.#piece.set(part, this.#pieceBytes);
      this.#pieceBytes += part.length;
      this.#leftBytes -= part.length;
      at += part.length;
      if (this.#pieceBytes === this.#piece.length) this.#flush();
    }
  }

  #flush(): void {
    if (this.#piece === undefined) return;
    const piece = this.#piece.subarray(0, this.#pieceBytes);
    this.#piece = undefined;
    this.#aheadBytes += this.#pieceBytes;
    this.#pieceBytes = 0;
    this.#options.send(piece);
  }
}
