// Passes the body of a forwarded request to its tap on the way to the upstream.
import type { RequestTap } from "../contract/content.ts";
import { Chunk, ChunkedDecoder, Framing } from "../parse/index.ts";
import type { Refused } from "../write/refused.ts";
import type { BodySink, ForwardClient } from "./client.ts";

/** Adds a tap to a request that may have others already; see `Exchange.requestTap`. */
export function addRequestTap(exchange: { requestTap: RequestTap | null }, tap: RequestTap): void {
  const { requestTap: first } = exchange;
  exchange.requestTap = first === null ? tap : new TapPair(first, tap);
}

/** Two taps of the same request; each may be a pair as well. */
class TapPair implements RequestTap {
  readonly #first: RequestTap;
  readonly #second: RequestTap;

  constructor(first: RequestTap, second: RequestTap) {
    this.#first = first;
    this.#second = second;
  }

  onBytes(bytes: Buffer): void {
    this.#first.onBytes(bytes);
    this.#second.onBytes(bytes);
  }

  onEnd(outcome: "complete" | "aborted"): void {
    this.#first.onEnd(outcome);
    this.#second.onEnd(outcome);
  }
}

/** The sink of one tapped request body; `close` it when the request has ended. */
export class TappedBody<U> implements BodySink {
  readonly takesWireBytes = true;
  readonly #tap: RequestTap;
  readonly #sink: BodySink;
  readonly #decoder: ChunkedDecoder | null;
  #isOpen = true;

  /** `sink` receives the body unchanged. A body that has been collected, or is empty, passes the tap here. */
  constructor(exchange: ForwardClient<U>, tap: RequestTap, sink: BodySink) {
    const { head, collected, bodyDone } = exchange;
    this.#tap = tap;
    this.#sink = sink;
    this.#decoder = head.framing === Framing.Chunked ? new ChunkedDecoder() : null;
    if (collected !== null && collected.length > 0) tap.onBytes(collected);
    if (collected !== null || bodyDone) this.#end("complete");
  }

  onBody(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#isOpen && end > start) {
      if (this.#decoder === null) this.#tap.onBytes(bytes.subarray(start, end));
      else this.#decode(this.#decoder, bytes, start, end);
    }
    this.#sink.onBody(bytes, start, end, isLast);
    if (isLast) this.#end("complete");
  }

  onBodyRefused(refused: Refused): void {
    this.close();
    this.#sink.onBodyRefused(refused);
  }

  /** No more of the body is forwarded. */
  close(): void {
    this.#end("aborted");
  }

  #end(outcome: "complete" | "aborted"): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#tap.onEnd(outcome);
  }

  // The connection has validated the coding.
  #decode(decoder: ChunkedDecoder, bytes: Buffer, start: number, end: number): void {
    let at = start;
    while (decoder.execute(bytes, at, end) === Chunk.Data) {
      this.#tap.onBytes(bytes.subarray(decoder.dataStart, decoder.dataEnd));
      at = decoder.next;
    }
  }
}
