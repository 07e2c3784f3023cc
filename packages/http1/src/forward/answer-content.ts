// The content of a forwarded answer on its way to the client: counted, checked, and framed anew where versions differ.
import {
  Chunk,
  ChunkedDecoder,
  Framing,
  Known,
  type Refusal,
  type ResponseParser,
} from "../parse/index.ts";
import type { ForwardClient } from "./client.ts";
import type { UpstreamConnection } from "../upstream/connection.ts";
import { CHUNK_END, CHUNK_HEAD_BYTES_MAX, LAST_CHUNK, writeChunkHead } from "../write/index.ts";

/** What is done to the content. */
const Mode = {
  /** Bytes pass as they come and are counted. */
  Length: 0,
  /** The chunked coding is checked and passes as it is. */
  Chunked: 1,
  /** The chunked coding is taken off for an HTTP/1.0 client. */
  Unchunk: 2,
  /** Close-delimited content is chunked for an HTTP/1.1 client. */
  Rechunk: 3,
  /** Close-delimited content for an HTTP/1.0 client. */
  UntilClose: 4,
} as const;

/** How far the content is. */
export const Progress = {
  GoesOn: 0,
  Complete: 1,
  /** The chunked coding is malformed: the answer cannot be completed. */
  Broken: 2,
} as const;

/** One of the values of `Progress`. */
export type ProgressKind = (typeof Progress)[keyof typeof Progress];

const EVENT_STREAM = "text/event-stream";
/** Pieces up to this size are copied for a client that does not read: each would else keep a whole read buffer. */
const COPIED_BYTES_MAX = 16_384;

/** The answers of one client connection, one after another. */
export class AnswerContent<U> {
  readonly #exchange: ForwardClient<U>;
  #mode: number = Mode.Length;
  #remaining = 0;
  #isEventStream = false;
  #isEnding = false;
  #decoder: ChunkedDecoder | null = null;

  constructor(exchange: ForwardClient<U>) {
    this.#exchange = exchange;
  }

  /** Why chunks that came with the head are refused, else null: nothing was passed on yet, so the client can be told. */
  judgeFirstChunks(bytes: Buffer, at: number, end: number): Refusal | null {
    const decoder = (this.#decoder ??= new ChunkedDecoder());
    decoder.reset();
    return decoder.skim(bytes, at, end) === Chunk.Refused ? decoder.refusal : null;
  }

  /** Settles what is done to the content behind this head. */
  begin(parser: ResponseParser): void {
    const isCurrent = this.#exchange.minor === 1;
    this.#isEnding = false;
    switch (parser.framing) {
      case Framing.Chunked:
        this.#decoder ??= new ChunkedDecoder();
        this.#decoder.reset();
        this.#mode = isCurrent ? Mode.Chunked : Mode.Unchunk;
        this.#isEventStream = announcesEvents(parser);
        return;
      case Framing.UntilClose:
        this.#mode = isCurrent ? Mode.Rechunk : Mode.UntilClose;
        this.#isEventStream = announcesEvents(parser);
        return;
      default:
        this.#isEventStream = false;
        this.#remaining = parser.framing === Framing.Length ? parser.contentLength : 0;
        this.#mode = Mode.Length;
    }
  }

  /** The chunked coding of the upstream is taken off: the head must not announce it. */
  get isUnchunked(): boolean {
    return this.#mode === Mode.Unchunk;
  }

  /** The content is chunked here: the head must announce it. */
  get isRechunked(): boolean {
    return this.#mode === Mode.Rechunk;
  }

  /** The client sees the end by the connection's end. */
  get needsClose(): boolean {
    return this.#mode === Mode.Unchunk || this.#mode === Mode.UntilClose;
  }

  /** The upstream's FIN ends the content. */
  get endsWithUpstream(): boolean {
    return this.#mode === Mode.Rechunk || this.#mode === Mode.UntilClose;
  }

  /**
   * Whether the content may be ended at any event: its readers take the end for a broken connection, and come again (WHATWG
   * HTML §9.2.3). Of any other content a proper end would make a piece look whole.
   */
  get isEventStream(): boolean {
    return this.#isEventStream;
  }

  /** Ends the content in the upstream's stead; false where `pass` must go on to the end of a chunk first. */
  endEarly(): boolean {
    this.#isEnding = true;
    if (this.#mode === Mode.Chunked && !this.#decoder!.isBetweenChunks) return false;
    if (this.#mode === Mode.Chunked || this.#mode === Mode.Rechunk) {
      this.#exchange.socket.write(LAST_CHUNK);
    }
    return true;
  }

  /**
   * Passes `bytes[at, end)` on; `joinsHead` puts it behind the head in the writer. What is left over once the content is
   * complete poisons the upstream's connection.
   */
  pass(
    upstream: UpstreamConnection,
    bytes: Buffer,
    at: number,
    end: number,
    joinsHead: boolean,
  ): ProgressKind {
    const exchange = this.#exchange;
    switch (this.#mode) {
      case Mode.Length: {
        const taken = Math.min(this.#remaining, end - at);
        this.#remaining -= taken;
        exchange.bytesOut += taken;
        if (taken > 0) this.#write(upstream, bytes, at, at + taken, joinsHead);
        if (taken < end - at) upstream.dead = true;
        return this.#remaining === 0 ? Progress.Complete : Progress.GoesOn;
      }
      case Mode.Chunked: {
        const decoder = this.#decoder!;
        const status = this.#isEnding
          ? decoder.skimToChunkEnd(bytes, at, end)
          : decoder.skim(bytes, at, end);
        if (status === Chunk.Refused) return Progress.Broken;
        exchange.bytesOut = decoder.dataBytes;
        if (decoder.next > at) this.#write(upstream, bytes, at, decoder.next, joinsHead);
        if (status !== Chunk.Complete) return Progress.GoesOn;
        if (decoder.next < end) upstream.dead = true;
        return Progress.Complete;
      }
      case Mode.Unchunk:
        return this.#unchunk(upstream, bytes, at, end, joinsHead);
      case Mode.Rechunk:
        exchange.bytesOut += end - at;
        if (end > at) this.#rechunk(bytes, at, end, joinsHead);
        return Progress.GoesOn;
      default:
        exchange.bytesOut += end - at;
        if (end > at) this.#write(upstream, bytes, at, end, joinsHead);
        return Progress.GoesOn;
    }
  }

  /** The upstream has ended content that its end delimits. */
  endWithUpstream(): void {
    if (this.#mode === Mode.Rechunk) this.#exchange.socket.write(LAST_CHUNK);
  }

  #unchunk(
    upstream: UpstreamConnection,
    bytes: Buffer,
    start: number,
    end: number,
    joinsHead: boolean,
  ): ProgressKind {
    const decoder = this.#decoder!;
    let at = start;
    for (;;) {
      const status = decoder.execute(bytes, at, end);
      at = decoder.next;
      this.#exchange.bytesOut = decoder.dataBytes;
      if (status === Chunk.Data) {
        this.#write(upstream, bytes, decoder.dataStart, decoder.dataEnd, joinsHead);
        continue;
      }
      if (status === Chunk.Refused) return Progress.Broken;
      if (at < end) upstream.dead = true;
      return status === Chunk.Complete ? Progress.Complete : Progress.GoesOn;
    }
  }

  #rechunk(bytes: Buffer, at: number, end: number, joinsHead: boolean): void {
    const { writer } = this.#exchange.host.engine;
    if (!joinsHead) writer.begin();
    const line = Buffer.allocUnsafe(CHUNK_HEAD_BYTES_MAX);
    writer.range(line, 0, writeChunkHead(line, 0, end - at));
    writer.range(bytes, at, end);
    writer.raw(CHUNK_END);
    if (!joinsHead) this.#exchange.flush();
  }

  #write(
    upstream: UpstreamConnection,
    bytes: Buffer,
    start: number,
    end: number,
    joinsHead: boolean,
  ): void {
    if (joinsHead) this.#exchange.host.engine.writer.range(bytes, start, end);
    else relayToClient(this.#exchange, upstream, bytes, start, end);
  }
}

function announcesEvents({ fields }: ResponseParser): boolean {
  const type = fields.get(Known.ContentType);
  if (type === undefined || type.length < EVENT_STREAM.length) return false;
  if (type.slice(0, EVENT_STREAM.length).toLowerCase() !== EVENT_STREAM) return false;
  return /^[ \t]*(?:;|$)/.test(type.slice(EVENT_STREAM.length));
}

/** Writes what an upstream sent to the client; the buffer is left to the client's socket where that keeps it. */
export function relayToClient<U>(
  exchange: ForwardClient<U>,
  upstream: UpstreamConnection,
  bytes: Buffer,
  start: number,
  end: number,
): void {
  const { socket } = exchange;
  if (end - start <= COPIED_BYTES_MAX && socket.writableLength > 0 && !upstream.readsKept) {
    socket.write(Buffer.from(bytes.subarray(start, end)));
    exchange.outflow.settle();
    return;
  }
  socket.write(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end));
  if (socket.writableLength === 0) return;
  exchange.outflow.settle();
  // A paused upstream reads on only after the client has taken everything: the buffer stays its own.
  if (!socket.writableNeedDrain) upstream.abandonReads();
}
