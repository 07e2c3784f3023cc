// Passes the content of one forwarded response through its filters, and sends head and content with framing of its own.
import type { ContentFilter, ContentOutput, ResponseDraft } from "../contract/content.ts";
import type { ForwardTarget } from "../contract/forward.ts";
import { Framing, type FramingKind, type ResponseParser } from "../parse/index.ts";
import {
  CHUNK_END,
  CHUNK_HEAD_BYTES_MAX,
  type HeadWriter,
  LAST_CHUNK,
  statusLineOf,
  writeChunkHead,
} from "../write/index.ts";
import type { UpstreamConnection } from "../upstream/connection.ts";
import type { ForwardClient } from "./client.ts";
import { relayToClient } from "./relay.ts";
import { TRANSFER_ENCODING_CHUNKED } from "./heads.ts";

/** Chunks are at most this long, because each is copied between its size and its end to be sent in one write. */
const CHUNK_BYTES_MAX = 32_768;
/** The head is sent together with up to this much content. */
const FIRST_BYTES_MAX = 65_536;
const FRAMING_FIELD = /^(?:content-length|transfer-encoding)$/i;

/** The forwarded request that the response belongs to. */
export interface FilteredOwner {
  /** Stops and continues reading from the upstream. */
  holdSource(): void;
  releaseSource(): void;
  /** The response has been written; false if it has fewer bytes than its head announced. */
  onFiltered(isWhole: boolean): void;
  /** A filter failed. */
  onFilterFault(error: unknown): void;
  /** A filter replaces the response by that of another target; false if that is not possible. */
  retryFiltered(target: ForwardTarget): boolean;
}

/** The draft of the head in `writer`, which `parser` has read from the upstream. */
export function readDraft(
  writer: HeadWriter,
  parser: ResponseParser,
  isHead: boolean,
): ResponseDraft {
  const [, ...lines] = writer.view().toString("latin1").split("\r\n");
  const headers: [name: string, value: string][] = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon === -1) continue;
    const name = line.slice(0, colon);
    if (!FRAMING_FIELD.test(name)) headers.push([name, line.slice(colon + 1).trim()]);
  }
  const { status } = parser;
  return {
    status,
    reason: parser.bytes.toString("latin1", parser.reasonStart, parser.reasonEnd),
    headers,
    contentLength: parser.contentLength,
    hasContent: !isHead && status !== 204 && status !== 304,
  };
}

/**
 * The content of one response.
 *
 * ```text
 *   upstream --onContent--> filter 0 --write--> filter 1 … --write--> head and framing --> client
 * ```
 *
 * The head is sent with the content that arrived with it: if the filters have then ended, with its length.
 */
export class FilteredContent<U> {
  readonly #exchange: ForwardClient<U>;
  readonly #draft: ResponseDraft;
  readonly #filters: ContentFilter[];
  readonly #outputs: ContentOutput[];
  readonly #owner: FilteredOwner;
  readonly #upstreamStatus: number;
  readonly #pausedFilters = new Set<number>();
  /** Connection of the current `onContent` call: what is written may be a view of its read buffer. */
  #upstream: UpstreamConnection | null = null;
  #source: Buffer | null = null;
  /** Content that leaves the filters before the head; null once the head has been sent. */
  #first: Buffer[] | null = [];
  #isFirstRead = true;
  /** Content that has left the filters for a chunk, in pieces of at most one chunk. */
  #pieces: Buffer[] = [];
  /** Inside of a read: what leaves the filters is written at its end. */
  #isReading = false;
  #framing: FramingKind = Framing.None;
  #remaining = 0;
  /** Trailers of the upstream, and those that filters have added. */
  #trailers: readonly (readonly [name: string, value: string])[] = [];
  #added: readonly (readonly [name: string, value: string])[] = [];
  #isSourceDone = false;
  #isTruncated = false;
  /** The last filter has ended the content. */
  isEnded = false;
  #isOver = false;

  constructor(
    exchange: ForwardClient<U>,
    draft: ResponseDraft,
    filters: readonly ContentFilter[],
    owner: FilteredOwner,
  ) {
    this.#exchange = exchange;
    this.#draft = draft;
    this.#filters = [...filters];
    this.#owner = owner;
    this.#upstreamStatus = draft.status;
    this.#outputs = filters.map((_, index) => this.#createOutput(index));
  }

  /** True once the response has been written, aborted, or replaced by an answer of a filter. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** True while a filter pauses the upstream. */
  get isPaused(): boolean {
    return this.#pausedFilters.size > 0;
  }

  /** Passes on content of the upstream: a view that is valid only during the call. */
  onContent(upstream: UpstreamConnection, bytes: Buffer): void {
    if (this.#isOver || this.isEnded) return;
    this.#upstream = upstream;
    this.#source = bytes;
    this.#passTo(0, bytes);
    this.#upstream = null;
    this.#source = null;
  }

  /** A read begins: what leaves the filters until its end is written together. */
  beginRead(): void {
    this.#isReading = true;
  }

  /** The read has passed the filters, and its buffer is still the same. */
  endRead(): void {
    this.#isReading = false;
    this.#writePieces();
  }

  /** The upstream's content is complete. */
  endSource(trailers: readonly (readonly [name: string, value: string])[]): void {
    if (this.#isSourceDone || this.#isOver) return;
    this.#isSourceDone = true;
    this.#trailers = trailers;
    if (!this.isEnded) this.#endStage(0);
  }

  /** The bytes that arrived with the head have passed the filters. */
  settleFirstRead(): void {
    this.#isFirstRead = false;
    if (this.#isOver || this.#first === null) return;
    const isHeld = this.#filters.some(({ holdsHead }) => holdsHead === true);
    if (!isHeld || this.#first.length > 0 || this.isEnded) this.#sendHead();
    if (this.isEnded) this.#finish();
  }

  /** The client's buffer has drained. */
  onDrain(): void {
    for (const [index, filter] of this.#filters.entries()) {
      if (this.#isOver) return;
      filter.onDrain?.(this.#outputs[index]!);
    }
  }

  /** The request has ended: filters that have not ended are aborted. */
  abort(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#first = null;
    this.#pieces = [];
    for (const filter of this.#filters) filter.onAbort?.();
  }

  /** The upstream has broken off: true if a filter ends the content, which is possible unless its length was announced. */
  endTruncated(): boolean {
    if (this.#isOver || this.isEnded || this.#isTruncated) return false;
    if (this.#framing === Framing.Length) return false;
    this.#isTruncated = true;
    this.#isSourceDone = true;
    const index = this.#filters.findIndex((filter) => filter.onTruncated !== undefined);
    return index !== -1 && this.#filters[index]!.onTruncated!(this.#outputs[index]!);
  }

  #listTrailers(): (readonly [name: string, value: string])[] {
    const names = new Set(this.#added.map(([name]) => name.toLowerCase()));
    return [...this.#trailers.filter(([name]) => !names.has(name.toLowerCase())), ...this.#added];
  }

  #createOutput(index: number): ContentOutput {
    return {
      write: (bytes) => this.#guard(() => this.#passTo(index + 1, bytes)),
      end: (trailers = []) => {
        this.#guard(() => {
          this.#added = [...this.#added, ...trailers];
          return this.#endStage(index + 1);
        });
      },
      pause: () => {
        if (this.#isOver) return;
        this.#pausedFilters.add(index);
        if (!this.#isSourceDone) this.#owner.holdSource();
      },
      resume: () => {
        if (!this.#pausedFilters.delete(index) || this.#isOver || this.isPaused) return;
        this.#owner.releaseSource();
      },
      append: (more) => {
        for (const filter of more) {
          this.#outputs.push(this.#createOutput(this.#filters.length));
          this.#filters.push(filter);
        }
      },
      fail: (error) => {
        if (!this.#isOver) this.#owner.onFilterFault(error);
      },
      retry: (target) => !this.#isOver && this.#first !== null && this.#owner.retryFiltered(target),
    };
  }

  // Outside of the upstream's events nobody else handles an exception.
  #guard(work: () => boolean): boolean {
    if (this.#isOver || this.isEnded) return true;
    if (this.#source !== null || this.#isFirstRead) return work();
    try {
      return work();
    } catch (error) {
      this.#owner.onFilterFault(error);
      return true;
    }
  }

  #passTo(index: number, bytes: Buffer): boolean {
    if (bytes.length === 0) return true;
    const filter = this.#filters[index];
    if (filter === undefined) this.#send(bytes);
    else filter.onBytes(bytes, this.#outputs[index]!);
    return !this.#exchange.socket.writableNeedDrain;
  }

  #endStage(index: number): boolean {
    const filter = this.#filters[index];
    if (filter === undefined) this.#end();
    else filter.onEnd(this.#outputs[index]!);
    return true;
  }

  #end(): void {
    this.isEnded = true;
    if (this.#isFirstRead) return;
    if (this.#first !== null) this.#sendHead();
    this.#finish();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const isWhole = this.#framing !== Framing.Length || this.#remaining === 0;
    if (this.#framing === Framing.Chunked) this.#writeEnd();
    this.#owner.onFiltered(isWhole);
  }

  #send(bytes: Buffer): void {
    if (!this.#draft.hasContent) return;
    if (this.#first !== null) {
      this.#first.push(bytes);
      if (!this.#isFirstRead) this.#sendHead();
      return;
    }
    this.#count(bytes.length);
    if (this.#framing !== Framing.Chunked) {
      this.#write(bytes);
      return;
    }
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES_MAX)
      this.#pieces.push(bytes.subarray(at, at + CHUNK_BYTES_MAX));
    if (!this.#isReading) this.#writePieces();
  }

  #writePieces(): void {
    if (this.#pieces.length === 0) return;
    this.#appendPieces();
    this.#exchange.flush();
    this.#exchange.outflow.settle();
  }

  // Leaves the last chunk in the writer; those before it are sent.
  #appendPieces(): void {
    const pieces = this.#pieces;
    this.#pieces = [];
    const { writer } = this.#exchange.host.engine;
    writer.begin();
    for (let at = 0; at < pieces.length;) {
      if (at > 0) {
        this.#exchange.flush();
        writer.begin();
      }
      const first = at;
      let size = 0;
      do size += pieces[at++]!.length;
      while (at < pieces.length && size + pieces[at]!.length <= CHUNK_BYTES_MAX);
      beginChunk(writer, size);
      for (let piece = first; piece < at; piece++) writer.raw(pieces[piece]!);
      writer.raw(CHUNK_END);
    }
  }

  #sendHead(): void {
    const exchange = this.#exchange;
    const { engine } = exchange.host;
    const { writer } = engine;
    const draft = this.#draft;
    const first = this.#first!;
    this.#first = null;
    writer.begin();
    if (draft.status === this.#upstreamStatus && draft.reason !== "") {
      writer.raw(Buffer.from(`HTTP/1.1 ${draft.status} ${draft.reason}\r\n`, "latin1"));
    } else writer.raw(statusLineOf(draft.status));
    for (const [name, value] of draft.headers) writer.field(name, value);
    this.#chooseFraming(first);
    if (this.#announcesLength()) writer.contentLength(draft.contentLength);
    else if (this.#framing === Framing.Chunked) writer.raw(TRANSFER_ENCODING_CHUNKED);
    exchange.beginForwardedAnswer(draft.status, this.#framing === Framing.UntilClose);
    writer.connection(exchange.keepAlive, exchange.minor);
    writer.endHead();
    let rest = 0;
    for (; rest < first.length; rest++) {
      const bytes = first[rest]!;
      if (writer.length + bytes.length > FIRST_BYTES_MAX) break;
      this.#count(bytes.length);
      this.#append(writer, bytes);
    }
    exchange.flush();
    // Copied, because the writer may still refer to what the upstream's buffer holds only now.
    for (; rest < first.length; rest++) this.#send(Buffer.from(first[rest]!));
  }

  #chooseFraming(first: readonly Buffer[]): void {
    const draft = this.#draft;
    if (!draft.hasContent) {
      this.#framing = Framing.None;
      return;
    }
    if (this.isEnded && draft.contentLength === -1 && this.#listTrailers().length === 0) {
      draft.contentLength = first.reduce((size, bytes) => size + bytes.length, 0);
    }
    if (draft.contentLength >= 0) {
      this.#framing = Framing.Length;
      this.#remaining = draft.contentLength;
    } else this.#framing = this.#exchange.minor === 1 ? Framing.Chunked : Framing.UntilClose;
  }

  #announcesLength(): boolean {
    const { contentLength, status } = this.#draft;
    return contentLength >= 0 && status !== 204;
  }

  #count(size: number): void {
    this.#exchange.bytesOut += size;
    if (this.#framing !== Framing.Length) return;
    if (size > this.#remaining) throw new Error("More bytes than the response's Content-Length");
    this.#remaining -= size;
  }

  #append(writer: HeadWriter, bytes: Buffer): void {
    if (this.#framing !== Framing.Chunked) {
      writer.raw(bytes);
      return;
    }
    beginChunk(writer, bytes.length);
    writer.raw(bytes);
    writer.raw(CHUNK_END);
  }

  #write(bytes: Buffer): void {
    const exchange = this.#exchange;
    // Views of the read buffer are written as the engine writes its own; other bytes belong to their filter.
    if (this.#upstream !== null && bytes.buffer === this.#source!.buffer) {
      relayToClient(exchange, this.#upstream, bytes, 0, bytes.length);
      return;
    }
    exchange.socket.write(bytes);
    exchange.outflow.settle();
  }

  #writeEnd(): void {
    const exchange = this.#exchange;
    const { writer } = exchange.host.engine;
    const trailers = this.#listTrailers();
    // Trailers of a filter may be invalid, and what is before them is not.
    if (trailers.length > 0) this.#writePieces();
    this.#appendPieces();
    if (trailers.length === 0) writer.raw(LAST_CHUNK);
    else {
      writer.raw(Buffer.from("0\r\n"));
      for (const [name, value] of trailers) writer.field(name, value);
      writer.endHead();
    }
    exchange.flush();
  }
}

function beginChunk(writer: HeadWriter, size: number): void {
  const line = Buffer.allocUnsafe(CHUNK_HEAD_BYTES_MAX);
  writer.range(line, 0, writeChunkHead(line, 0, size));
}
