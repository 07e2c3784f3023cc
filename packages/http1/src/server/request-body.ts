// Reads the framing of request bodies.
import { Pace, type PaceBound } from "@platform/kernel/sockets";

import { Chunk, ChunkedDecoder, Framing, type FramingKind, type Refusal } from "../parse/index.ts";

/** The body of the current request; one object per connection. */
export class RequestBody {
  /** The whole body has been read. */
  isDone = true;
  /** Bytes read so far, without framing. */
  size = 0;
  /** Remaining bytes if the length is known, otherwise 0. */
  remaining = 0;
  /** 100 (Continue) was sent. */
  isInvited = false;
  /** Results of `take`: the next input position, and the range of the chunk. */
  next = 0;
  pieceStart = 0;
  pieceEnd = 0;
  #isChunked = false;
  #decoder: ChunkedDecoder | null = null;
  readonly #pace = new Pace();

  /** Starts the body of the next request. */
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
   * True if 100 (Continue) must be sent now to a client that waits for it. Also for an empty body: without a preceding
   * 100, botocore applies the final status to the next request of the connection as well, and hangs.
   */
  invite(isAwaited: boolean): boolean {
    if (!isAwaited || this.size > 0 || this.isInvited) return false;
    this.isInvited = true;
    return true;
  }

  /** True if the body is slower than the minimum pace, after `waitedMs` more of waiting for the client. */
  isTooSlow(bound: PaceBound, waitedMs: number): boolean {
    return this.#pace.isTooSlow(bound, waitedMs, this.size);
  }

  /**
   * Reads a chunk from `input[start…]`: all of it, or one range of data if the chunked coding is removed. `asWire` keeps
   * the validated coding. Returns a refusal if the coding is malformed, otherwise null.
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
