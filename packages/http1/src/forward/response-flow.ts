// Passes the response of a forwarded request to the client: its heads, its content, back pressure, early ends.
import type { ForwardTarget } from "../contract/forward.ts";
import { Framing, Known, Method, Parse, type ResponseParser } from "../parse/index.ts";
import { AnswerContent, Progress } from "./answer-content.ts";
import { FilteredContent, type FilteredOwner, readDraft } from "./filtered-content.ts";
import { ATTEMPTS_MAX } from "./failures.ts";
import type { ForwardedRequest, ForwardOwner } from "./forwarded-request.ts";
import { TRANSFER_ENCODING_CHUNKED, writeInformationalHead, writeResponseFields } from "./heads.ts";
import { State } from "./state.ts";

const INFORMATIONAL_MAX = 16;
/** Timeout for a stream that is being ended to reach the end of a chunk. */
const ENDING_MS = 10_000;

/**
 * The way of a response to its client.
 *
 * ```text
 *   Sending --1xx, passed on--> Sending
 *           --101--> the owner's tunnel
 *           --head, another attempt is possible and wanted--> the owner's next attempt
 *           --head--> Answering --content--> complete | truncated
 *                         \--filters answer instead--> the owner's end of a replaced response
 * ```
 *
 * Until `exchange.answered`, the client has seen nothing: a failure becomes an error response. After that, the client's
 * connection is destroyed, so that a broken response does not look complete.
 */
export class ResponseFlow<U> implements FilteredOwner {
  readonly #request: ForwardedRequest<U>;
  readonly #owner: ForwardOwner;
  readonly #content: AnswerContent<U>;
  /** The event stream ends after the current chunk. */
  #isEnding = false;

  constructor(request: ForwardedRequest<U>, owner: ForwardOwner) {
    this.#request = request;
    this.#owner = owner;
    this.#content = new AnswerContent(request.exchange);
  }

  /** Takes bytes of the upstream: heads, then content. */
  take(bytes: Buffer, length: number): void {
    const request = this.#request;
    let at = 0;
    while (request.state === State.Sending) {
      const { parser } = request.upstream!;
      switch (parser.execute(bytes, at, length)) {
        case Parse.NeedsMore:
          return;
        case Parse.Refused:
          this.#owner.fail("malformed-response", parser.refusal!.code);
          return;
        default:
      }
      at = parser.next;
      if (parser.status === 101) {
        this.#owner.beginTunnel(bytes, at, length);
        return;
      }
      if (!parser.informational) {
        this.#noteArrival();
        if (!this.#tryAgain(parser)) this.#begin(parser, bytes, at, length);
        return;
      }
      if (!this.#passInformational(parser)) return;
      parser.reset();
      if (at === length) return;
    }
    if (request.state !== State.Answering) return;
    if (!this.#isEnding) request.expectContent();
    this.#pass(bytes, length);
  }

  /** The upstream sent its FIN within the content. */
  onUpstreamEnd(): void {
    if (!this.#content.endsWithUpstream) {
      this.truncate();
      return;
    }
    this.#content.endWithUpstream();
    this.#complete(this.#request.exchange.host.engine.now());
  }

  onClientDrain(): void {
    this.#content.filtered?.onDrain();
    this.releaseSource();
  }

  holdSource(): void {
    this.#request.pauseUpstream();
  }

  releaseSource(): void {
    const request = this.#request;
    if (!request.isUpstreamPaused || request.upstream === null) return;
    const isHeld = this.#content.filtered?.isPaused === true;
    if (isHeld || request.exchange.socket.writableNeedDrain) return;
    request.isUpstreamPaused = false;
    if (!this.#isEnding) request.expectContent();
    request.upstream.socket.resume();
  }

  onFiltered(isWhole: boolean): void {
    if (!isWhole) {
      this.truncate();
      return;
    }
    this.#request.dropUpstream();
    this.#owner.conclude("complete");
    this.#request.exchange.finish();
  }

  onFilterFault(error: unknown): void {
    this.#request.exchange.failHandler(error);
  }

  retryFiltered(target: ForwardTarget): boolean {
    const request = this.#request;
    const { exchange } = request;
    if (exchange.answered || exchange.aborted || !request.isRepeatable) return false;
    this.close();
    request.dropUpstream();
    this.#owner.tryNext(target);
    return true;
  }

  /** Ends an event stream after its current chunk. False for any other response. */
  endEventStream(): boolean {
    const request = this.#request;
    if (request.state !== State.Answering || !this.#content.isEventStream) return false;
    if (this.#isEnding) return true;
    this.#isEnding = true;
    request.idleDeadlineMs = request.exchange.host.engine.deadlineIn(ENDING_MS);
    this.#endEvents();
    return true;
  }

  /** The upstream broke off after its head was forwarded: the client must not see a complete response. */
  truncate(): void {
    const request = this.#request;
    const { exchange } = request;
    request.dropUpstream();
    if (!exchange.answered) {
      // Filters hold the head: the client can still get an error response.
      if (exchange.collected === null) request.replay.giveUp();
      this.#content.filtered?.abort();
      this.#owner.fail("malformed-response", "truncated_content");
      return;
    }
    if (this.#content.filtered !== null) {
      request.expectContent();
      if (this.#content.filtered.endTruncated()) return;
    }
    this.#owner.conclude("truncated");
    exchange.destroy();
  }

  /** Nothing more is passed on: filters that have not ended are aborted. */
  close(): void {
    const { filtered } = this.#content;
    if (filtered === null) return;
    this.#content.filtered = null;
    filtered.abort();
  }

  /** True if the observer wants another attempt instead of this response, of which the client has seen nothing. */
  #tryAgain(parser: ResponseParser): boolean {
    const request = this.#request;
    const isUnseen = request.replay.isComplete && request.informational === 0;
    if (!isUnseen || request.attempts >= ATTEMPTS_MAX) return false;
    const next = request.observer.onResponse?.(request.exchange, parser, request.attemptMs) ?? null;
    if (next === null) return false;
    request.exchange.detachSink();
    request.dropUpstream();
    this.#owner.tryNext(next);
    return true;
  }

  #passInformational(parser: ResponseParser): boolean {
    const { exchange, plan } = this.#request;
    if (++this.#request.informational > INFORMATIONAL_MAX) {
      this.#owner.fail("malformed-response", "too_many_informational");
      return false;
    }
    // RFC 9110 §15.2: an HTTP/1.0 client must not be sent a 1xx.
    if (exchange.minor === 0) return true;
    const { writer } = exchange.host.engine;
    writer.begin();
    writeInformationalHead(writer, parser, plan);
    writer.endHead();
    exchange.flush();
    return true;
  }

  #noteArrival(): void {
    const request = this.#request;
    request.upstreamMs = request.exchange.host.engine.now() - request.startMs;
  }

  #begin(parser: ResponseParser, bytes: Buffer, at: number, length: number): void {
    const content = this.#content;
    if (parser.framing === Framing.Chunked) {
      const refusal = content.judgeFirstChunks(bytes, at, length);
      if (refusal !== null) {
        this.#request.upstreamMs = -1;
        this.#owner.fail("malformed-response", refusal.code);
        return;
      }
    }
    const request = this.#request;
    const { exchange } = request;
    const { engine } = exchange.host;
    this.#isEnding = false;
    request.replay.forget();
    content.begin(parser);
    if (exchange.responseFilter !== null) {
      this.#beginFiltered(parser, bytes, at, length);
      return;
    }
    request.state = State.Answering;
    const { writer } = engine;
    exchange.beginForwardedAnswer(parser.status, content.needsClose);
    this.#writeFields(
      parser,
      content.isUnchunked || (exchange.minor === 0 && parser.framing === Framing.None),
    );
    if (content.isRechunked) writer.raw(TRANSFER_ENCODING_CHUNKED);
    writer.connection(exchange.keepAlive, exchange.minor);
    writer.endHead();
    const progress = content.pass(request.upstream!, bytes, at, length, true);
    if (progress === Progress.Broken) {
      this.truncate();
      return;
    }
    exchange.flush();
    if (progress === Progress.Complete) this.#complete(request.startMs + request.upstreamMs);
    else {
      request.upstream!.ownReads();
      this.#continue();
    }
  }

  #beginFiltered(parser: ResponseParser, bytes: Buffer, at: number, length: number): void {
    const request = this.#request;
    const { exchange } = request;
    const { engine } = exchange.host;
    const content = this.#content;
    this.#writeFields(parser, content.isUnchunked);
    const draft = readDraft(engine.writer, parser, exchange.methodId === Method.HEAD);
    request.state = State.Failing;
    const filters = exchange.responseFilter!.onResponse(exchange, draft, parser);
    if (exchange.aborted) {
      request.dropUpstream();
      this.#owner.conclude("client-aborted");
      return;
    }
    if (exchange.answered) {
      this.#replace(parser, length - at);
      return;
    }
    request.state = State.Answering;
    const filtered = new FilteredContent(exchange, draft, filters, this);
    content.filter(parser, filtered);
    const progress = content.pass(request.upstream!, bytes, at, length, true);
    if (progress === Progress.Detached) return;
    if (progress === Progress.Broken) {
      this.truncate();
      return;
    }
    if (progress === Progress.Complete) this.#complete(engine.now());
    else request.upstream!.ownReads();
    filtered.settleFirstRead();
    if (!filtered.isOver) this.#continue();
  }

  /** Writes the head up to the fields that frame the content or concern the client's connection. */
  #writeFields(parser: ResponseParser, isUnchunked: boolean): void {
    const { exchange, plan, observer } = this.#request;
    const { engine } = exchange.host;
    const { writer } = engine;
    writer.begin();
    writeResponseFields(writer, parser, plan, isUnchunked);
    if (!parser.fields.has(Known.Date)) writer.date(engine.date, engine.coarseDateMs);
    observer.onResponseHead?.(exchange, parser, writer, this.#request.attemptMs);
  }

  /** Content follows after the bytes that arrived with the head. */
  #continue(): void {
    this.#request.expectContent();
    this.#settleBackPressure();
    if (this.#request.exchange.host.endsStreams) this.endEventStream();
  }

  /** The filter has answered instead of the upstream, whose response has `size` bytes in this read. */
  #replace(parser: ResponseParser, size: number): void {
    const isRead = parser.framing === Framing.None || parser.framing === Framing.Length;
    const isWhole =
      isRead && size === Math.max(0, parser.framing === Framing.None ? 0 : parser.contentLength);
    this.#request.releaseUpstream(isWhole && this.#request.isWholeSent && parser.keepAlive);
    this.#owner.endReplaced("complete");
  }

  #pass(bytes: Buffer, length: number): void {
    const { filtered } = this.#content;
    filtered?.beginRead();
    const progress = this.#content.pass(this.#request.upstream!, bytes, 0, length, false);
    if (progress === Progress.Complete) this.#complete(this.#request.exchange.host.engine.now());
    filtered?.endRead();
    if (progress === Progress.Broken) this.truncate();
    if (progress !== Progress.Continues) return;
    this.#settleBackPressure();
    if (this.#isEnding) this.#endEvents();
  }

  #endEvents(): void {
    if (!this.#content.endEarly()) return;
    const { exchange } = this.#request;
    this.#request.dropUpstream();
    exchange.keepAlive = false;
    if (this.#content.filtered !== null) {
      this.#content.filtered.endSource([]);
      return;
    }
    this.#owner.conclude("complete");
    exchange.finish();
  }

  #settleBackPressure(): void {
    if (this.#request.exchange.socket.writableNeedDrain) this.#request.pauseUpstream();
  }

  #complete(nowMs: number): void {
    const request = this.#request;
    const { exchange } = request;
    const upstream = request.upstream!;
    upstream.shareReads(exchange.socket.writableLength === 0);
    request.releaseUpstream(request.isWholeSent && upstream.parser.keepAlive);
    const { filtered } = this.#content;
    if (filtered !== null) {
      request.expectContent();
      filtered.endSource(this.#content.trailers);
      return;
    }
    this.#owner.conclude("complete", nowMs);
    exchange.finish();
  }
}
