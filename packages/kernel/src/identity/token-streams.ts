// Open streams and the tokens that opened them: a stream ends when its token is revoked.
import type { RevocableToken, RevocationSet } from "./revocations.ts";

/** Streams by token; their number is bounded by the listeners that add them. */
export class TokenStreams {
  readonly #revocations: RevocationSet;
  readonly #streams = new Map<() => void, RevocableToken>();

  constructor(revocations: RevocationSet) {
    this.#revocations = revocations;
  }

  /** Number of open streams. */
  get size(): number {
    return this.#streams.size;
  }

  /**
   * Adds a stream; `end` is called at most once, immediately if the token was revoked while the stream was being opened.
   * The returned function removes the stream.
   */
  add(token: RevocableToken, end: () => void): () => void {
    if (this.#revocations.has(token)) {
      end();
      return () => {};
    }
    // A function of its own: two streams may share `end`.
    const close = (): void => end();
    this.#streams.set(close, token);
    return () => {
      this.#streams.delete(close);
    };
  }

  /** Ends the streams whose tokens are revoked; call it after revocations were added. Returns their number. */
  endRevoked(): number {
    let ended = 0;
    for (const [end, token] of this.#streams) {
      if (!this.#revocations.has(token)) continue;
      this.#streams.delete(end);
      ended++;
      end();
    }
    return ended;
  }
}
