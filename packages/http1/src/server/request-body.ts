// How much of a request's body has come, by its framing.
import { Pace, type PaceBound } from "@platform/kernel/sockets";

import { Chunk, ChunkedDecoder, Framing, type FramingKind, type Refusal } from "../parse/index.ts";

/** The body of one request after another; one object per connection. */
export class RequestBody {
  /** All of it has been taken from the input. */
  isDone = true;
  /** Bytes taken, framing not counted. */
  size = 0;
  /** Bytes still to come where the length is known, else 0. */
  remaining = 0;
  /** 100 (Continue) was sent for it. */
  isInvited = false;
  /** After `take`: where the input goes on, and the piece that was found. */
  next = 0;
  pieceStart = 0;
  pieceEnd = 0;
  #isChunked = false;
  #decoder: ChunkedDecoder | null = null;
  readonly #pace = new Pace();

  /** The next request's body. */
  begin(framing: FramingKind, contentLength: number): void {
    this.isDone = framing === Framing.None;
    this.size = 0;
    this.isInvited = false;
    if (this.isDone) return;
    this.#pace.restart(0);
    this.remaining = contentLength;
    this.#isChunked = framing === Framing.Chunked;
    if (!this.#isChunked) return;
    this.#decoder ??= new ChunkedDecoder();
    this.#decoder.reset();
  }

  /**
   * Whether 100 (Continue) is to be sent now to a client that awaits it. An empty body is invited, too: botocore takes a
   * final status without 100 before it for that of the connection's next request as well, and then waits for ever.
   */
  invite(isAwaited: boolean): boolean {
    if (!isAwaited || this.size > 0 || this.isInvited) return false;
    this.isInvited = true;
    return true;
  }

  /** Whether less than the bound has come, after `waitedMs` more in which nothing but the client was waited for. */
  isTooSlow(bound: PaceBound, waitedMs: number): boolean {
    return this.#pace.isTooSlow(bound, waitedMs, this.size);
  }

  /**
   * Takes a piece from `input[start…]`: all that is there, or one piece of data where the chunked coding is taken off.
   * `asWire` leaves it in place, checked. Gives a refusal where the coding is malformed, else null.
   */
  take(input: Buffer, start: number, asWire: boolean): Refusal | null {
    this.pieceStart = start;
    if (!this.#isChunked) {
      const taken = Math.min(input.length - start, this.remaining);
      this.remaining -= taken;
      this.size += taken;
      this.next = start + taken;
      this.pieceEnd = this.next;
      this.isDone = this.remaining === 0;
      return null;
    }
    const decoder = this.#decoder!;
    const status = asWire
      ? decoder.skim(input, start, input.length)
      : decoder.execute(input, start, input.length);
    this.size = decoder.dataBytes;
    if (status === Chunk.Refused) return decoder.refusal!;
    this.next = decoder.next;
    this.isDone = status === Chunk.Complete;
    if (asWire) {
      this.pieceEnd = this.next;
    } else {
      this.pieceStart = status === Chunk.Data ? decoder.dataStart : 0;
      this.pieceEnd = status === Chunk.Data ? decoder.dataEnd : 0;
    }
    return null;
  }
}
