// Passes the content of a forwarded response to the client: counts, validates, and changes the framing if needed.
import {
  Chunk,
  ChunkedDecoder,
  Framing,
  Known,
  type FramingKind,
  type Refusal,
  type ResponseParser,
} from "../parse/index.ts";
import type { ForwardClient } from "./client.ts";
import type { UpstreamConnection } from "../upstream/connection.ts";
import { CHUNK_END, CHUNK_HEAD_BYTES_MAX, LAST_CHUNK, writeChunkHead } from "../write/index.ts";
import type { FilteredContent } from "./filtered-content.ts";
import { relayToClient } from "./relay.ts";

/** Treatment of the content. */
const Mode = {
  /** Bytes pass unchanged and are counted. */
  Length: 0,
  /** The chunked coding is validated and passes unchanged. */
  Chunked: 1,
  /** The chunked coding is removed for an HTTP/1.0 client. */
  Unchunk: 2,
  /** Close-delimited content is chunked for an HTTP/1.1 client. */
  Rechunk: 3,
  /** Close-delimited content for an HTTP/1.0 client. */
  UntilClose: 4,
  /** Content passes the response's filters, without any framing. */
  Filtered: 5,
} as const;

/** Progress of the content. */
export const Progress = {
  Continues: 0,
  Complete: 1,
  /** The chunked coding is malformed: the response cannot be completed. */
  Broken: 2,
  /** A filter has ended the response, or answered instead: nothing is left to do. */
  Detached: 3,
} as const;

/** One of the values of `Progress`. */
export type ProgressKind = (typeof Progress)[keyof typeof Progress];

const EVENT_STREAM = "text/event-stream";

/** The content of the responses of one client connection. */
export class AnswerContent<U> {
  readonly #exchange: ForwardClient<U>;
  #mode: number = Mode.Length;
  #remaining = 0;
  #isEventStream = false;
  #isEnding = false;
  #decoder: ChunkedDecoder | null = null;
  #framing: FramingKind = Framing.None;
  /** Filters of the current response; null if it has none. */
  filtered: FilteredContent<U> | null = null;

  constructor(exchange: ForwardClient<U>) {
    this.#exchange = exchange;
  }

  /** Validates chunks that arrived with the head, while the client can still get an error response. Null if they are valid. */
  judgeFirstChunks(bytes: Buffer, at: number, end: number): Refusal | null {
    const decoder = (this.#decoder ??= new ChunkedDecoder());
    decoder.reset();
    return decoder.skim(bytes, at, end) === Chunk.Refused ? decoder.refusal : null;
  }

  /** Chooses the treatment of the content after this head. */
  begin(parser: ResponseParser): void {
    const isCurrent = this.#exchange.minor === 1;
    this.#isEnding = false;
    this.filtered = null;
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

  /** Passes the content through filters instead; called after `begin`. */
  filter(parser: ResponseParser, filtered: FilteredContent<U>): void {
    this.filtered = filtered;
    this.#framing = parser.framing;
    this.#mode = Mode.Filtered;
  }

  /** Trailers of the content, which is complete. */
  get trailers(): readonly (readonly [name: string, value: string])[] {
    if (this.#framing !== Framing.Chunked) return [];
    return [...this.#decoder!.trailers.entries()];
  }

  /** The upstream's chunked coding is removed: the head must not announce it. */
  get isUnchunked(): boolean {
    return this.#mode === Mode.Unchunk;
  }

  /** The content is chunked by the gateway: the head must announce it. */
  get isRechunked(): boolean {
    return this.#mode === Mode.Rechunk;
  }

  /** The end of the connection marks the end of the content for the client. */
  get needsClose(): boolean {
    return this.#mode === Mode.Unchunk || this.#mode === Mode.UntilClose;
  }

  /** The upstream's FIN marks the end of the content. */
  get endsWithUpstream(): boolean {
    if (this.#mode === Mode.Filtered) return this.#framing === Framing.UntilClose;
    return this.#mode === Mode.Rechunk || this.#mode === Mode.UntilClose;
  }

  /**
   * True if the content may be ended early: readers of event streams reconnect when it ends (WHATWG HTML §9.2.3). Any
   * other content would look complete.
   */
  get isEventStream(): boolean {
    return this.#isEventStream;
  }

  /** Ends the content early; false if `pass` must first reach the end of a chunk. */
  endEarly(): boolean {
    this.#isEnding = true;
    if (this.#mode === Mode.Chunked && !this.#decoder!.isBetweenChunks) return false;
    if (this.#mode === Mode.Chunked || this.#mode === Mode.Rechunk) {
      this.#exchange.socket.write(LAST_CHUNK);
    }
    return true;
  }

  /**
   * Forwards `bytes[at, end)`; `joinsHead` appends it to the head in the writer. Surplus bytes after the content make the
   * upstream's connection unusable.
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
        return this.#remaining === 0 ? Progress.Complete : Progress.Continues;
      }
      case Mode.Chunked: {
        const decoder = this.#decoder!;
        const status = this.#isEnding
          ? decoder.skimToChunkEnd(bytes, at, end)
          : decoder.skim(bytes, at, end);
        if (status === Chunk.Refused) return Progress.Broken;
        exchange.bytesOut = decoder.dataBytes;
        if (decoder.next > at) this.#write(upstream, bytes, at, decoder.next, joinsHead);
        if (status !== Chunk.Complete) return Progress.Continues;
        if (decoder.next < end) upstream.dead = true;
        return Progress.Complete;
      }
      case Mode.Unchunk:
        return this.#unchunk(upstream, bytes, at, end, joinsHead);
      case Mode.Filtered:
        return this.#filter(upstream, bytes, at, end);
      case Mode.Rechunk:
        exchange.bytesOut += end - at;
        if (end > at) this.#rechunk(bytes, at, end, joinsHead);
        return Progress.Continues;
      default:
        exchange.bytesOut += end - at;
        if (end > at) this.#write(upstream, bytes, at, end, joinsHead);
        return Progress.Continues;
    }
  }

  /** The upstream has ended close-delimited content. */
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
      return status === Chunk.Complete ? Progress.Complete : Progress.Continues;
    }
  }

  #filter(upstream: UpstreamConnection, bytes: Buffer, start: number, end: number): ProgressKind {
    const filtered = this.filtered!;
    if (this.#framing === Framing.Chunked) return this.#filterChunks(upstream, bytes, start, end);
    let taken = end - start;
    if (this.#framing !== Framing.UntilClose) {
      taken = Math.min(this.#remaining, taken);
      this.#remaining -= taken;
    }
    if (taken > 0) filtered.onContent(upstream, bytes.subarray(start, start + taken));
    if (filtered.isOver) return Progress.Detached;
    if (taken < end - start || filtered.isEnded) upstream.dead = true;
    const isComplete = this.#framing !== Framing.UntilClose && this.#remaining === 0;
    return isComplete || filtered.isEnded ? Progress.Complete : Progress.Continues;
  }

  // The data of one read is passed at once, because each call costs more than the move of a small chunk.
  #filterChunks(
    upstream: UpstreamConnection,
    bytes: Buffer,
    start: number,
    end: number,
  ): ProgressKind {
    const filtered = this.filtered!;
    const decoder = this.#decoder!;
    let source = bytes;
    let dataStart = 0;
    let dataEnd = 0;
    let status = decoder.execute(bytes, start, end);
    for (; status === Chunk.Data; status = decoder.execute(bytes, decoder.next, end)) {
      if (dataEnd === 0) {
        ({ dataStart, dataEnd } = decoder);
        continue;
      }
      // The memory of a stream may be its sender's.
      if (source === bytes && upstream.stream !== null) source = Buffer.from(bytes);
      source.copyWithin(dataEnd, decoder.dataStart, decoder.dataEnd);
      dataEnd += decoder.dataEnd - decoder.dataStart;
    }
    if (dataEnd > 0) filtered.onContent(upstream, source.subarray(dataStart, dataEnd));
    if (filtered.isOver) return Progress.Detached;
    if (status === Chunk.Refused) return Progress.Broken;
    const isComplete = status === Chunk.Complete;
    if (decoder.next < end || (filtered.isEnded && !isComplete)) upstream.dead = true;
    return isComplete || filtered.isEnded ? Progress.Complete : Progress.Continues;
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
