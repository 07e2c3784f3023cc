// Forwards one exchange to an upstream: attempts, request body, deadlines. Reused across requests.
import type { Socket } from "node:net";
import { Framing, Known, Method, Parse, type ResponseParser } from "../parse/index.ts";
import type { BodySink, ForwardClient } from "./client.ts";
import { prepareProblem } from "../write/problem.ts";
import type { Refused } from "../write/refused.ts";
import type { UpstreamConnection, UpstreamUser } from "../upstream/connection.ts";
import {
  type AcquireFailure,
  type Acquirer,
  Reuse,
  type ReuseKind,
  chooseReuse,
} from "../upstream/acquire.ts";
import type { ConnectionPool } from "../upstream/pool.ts";
import { AnswerContent, Progress } from "./answer-content.ts";
import type { FailureKind, ForwardFailure, ForwardTarget } from "../contract/forward.ts";
import type { ForwardObserver, RequestOutcome } from "../contract/exchange.ts";
import { codeOf, detailOf, statusOf } from "./failures.ts";
import {
  mayUpgrade,
  TRANSFER_ENCODING_CHUNKED,
  writeInformationalHead,
  writeRequestFields,
  writeRequestLine,
  writeResponseFields,
} from "./heads.ts";
import type { CompiledPlan } from "./plan.ts";
import { Replay } from "./replay.ts";
import { FilteredContent, type FilteredOwner, readDraft } from "./filtered-content.ts";
import { TappedBody } from "./request-tap.ts";
import { State } from "./state.ts";
import { TunnelFlow } from "./tunnel-flow.ts";

const NEVER = Infinity;
const ATTEMPTS_MAX = 16;
const INFORMATIONAL_MAX = 16;
/** Timeout for a stream that is being ended to reach the end of a chunk. */
const ENDING_MS = 10_000;
/** Maximum size of head and request body that are joined in one write. */
const JOINED_BYTES_MAX = 16_384;

/**
 * Forwards the requests of one client connection.
 *
 * ```text
 *   Idle --start--> Acquiring --connection--> Sending --head--> Answering --content--> Idle
 *                       ^                        |   \--101--> Tunnel --closed--> Idle
 *                       \------another try------ Failing --own stream--> Replaced --end--> Idle
 * ```
 */
export class Forwarding<U> implements UpstreamUser, Acquirer, BodySink, FilteredOwner {
  readonly takesWireBytes = true;
  waitingSinceMs = 0;
  reuse: ReuseKind = Reuse.Any;

  readonly #exchange: ForwardClient<U>;
  #observer: ForwardObserver<U> = {};
  #target!: ForwardTarget;
  #plan!: CompiledPlan;
  #upstream: UpstreamConnection | null = null;
  #state: number = State.Idle;
  #attempts = 0;
  #startMs = 0;
  #upstreamMs = -1;
  #totalDeadlineMs = NEVER;
  /** Deadline for the next progress of the upstream. */
  #idleDeadlineMs = NEVER;
  #isUpgrade = false;
  /** The request head is still in the writer: body bytes are appended to it. */
  #headPending = false;
  #requestSent = false;
  #requestDone = false;
  readonly #replay = new Replay();
  #informational = 0;
  readonly #content: AnswerContent<U>;
  #upstreamPaused = false;
  #tunnel: TunnelFlow<U> | null = null;
  /** The event stream ends after the current chunk. */
  #isEnding = false;
  /** Observes the request body on its way to this sink. */
  #tapped: TappedBody<U> | null = null;
  /** Outcome of a request that is answered with a stream of its handler instead. */
  #replacedOutcome: RequestOutcome = "complete";

  constructor(exchange: ForwardClient<U>) {
    this.#exchange = exchange;
    this.#content = new AnswerContent(exchange);
  }

  /** True while a request or its tunnel is active. */
  get isBusy(): boolean {
    return this.#state !== State.Idle;
  }

  start(target: ForwardTarget, observer: ForwardObserver<U>): void {
    if (this.#state !== State.Idle) throw new Error("This exchange is being forwarded already");
    const exchange = this.#exchange;
    const { engine } = exchange.host;
    this.#observer = observer;
    this.#attempts = 0;
    // Most handlers forward synchronously: then the clock need not be read again.
    this.#startMs = exchange.isHandling ? exchange.startedAtMs : engine.now();
    this.#upstreamMs = -1;
    this.#requestSent = false;
    this.#replay.begin();
    const tap = exchange.requestTap;
    if (tap !== null) this.#tapped = new TappedBody(exchange, tap, this);
    const { totalMs } = target.plan as CompiledPlan;
    this.#totalDeadlineMs = totalMs === 0 ? NEVER : exchange.startedAtMs + totalMs;
    this.#try(target, false);
  }

  onAcquired(connection: UpstreamConnection): void {
    this.#upstream = connection;
    this.#state = State.Sending;
    connection.user = this;
    try {
      this.#sendRequest(connection);
    } catch (error) {
      this.#headPending = false;
      this.#exchange.failHandler(error);
    }
  }

  onAcquireFailed(kind: AcquireFailure, code: string): void {
    this.#fail(kind, code);
  }

  onBody(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#state !== State.Sending && this.#state !== State.Answering) return;
    const size = end - start;
    if (size > 0) {
      if (this.#state === State.Sending) this.#replay.keep(bytes, start, end);
      else this.#replay.giveUp();
      this.#sendBody(bytes, start, end);
    }
    if (isLast) this.#markRequestDone();
    else if (this.#idleDeadlineMs !== NEVER && this.#state === State.Sending) {
      this.#idleDeadlineMs = NEVER;
    }
  }

  onBodyRefused(refused: Refused): void {
    const upstream = this.#upstream;
    this.#upstream = null;
    if (upstream !== null) {
      // Nothing has been sent while the head is in the writer: the connection can be reused.
      if (this.#headPending) this.#poolOf(this.#target).release(upstream);
      else this.#drop(upstream);
    }
    this.#headPending = false;
    const exchange = this.#exchange;
    if (exchange.answered) {
      this.#conclude("truncated");
      exchange.destroy();
      return;
    }
    this.#state = State.Failing;
    exchange.refuseBody(refused);
    this.#conclude("request-refused");
    exchange.finish();
  }

  onUpstreamBytes(bytes: Buffer, length: number): void {
    try {
      this.#takeUpstreamBytes(bytes, length);
    } catch (error) {
      this.#exchange.failHandler(error);
    }
  }

  onUpstreamEnd(): void {
    switch (this.#state) {
      case State.Sending:
        this.#failUnanswered("");
        break;
      case State.Answering:
        if (this.#content.endsWithUpstream) {
          this.#content.endWithUpstream();
          this.#completeAnswer(this.#exchange.host.engine.now());
        } else this.#truncate();
        break;
      default:
    }
  }

  onUpstreamClosed(code: string): void {
    if (this.#state === State.Sending) {
      this.#failUnanswered(code);
      return;
    }
    this.#upstream = null;
    if (this.#state === State.Answering) this.#truncate();
  }

  onUpstreamDrain(): void {
    if (this.#state === State.Sending) this.#idleDeadlineMs = NEVER;
    this.#exchange.resumeBody();
  }

  /** The client's write buffer has drained. */
  onClientDrain(): void {
    if (this.#tunnel !== null) this.#tunnel.onClientDrain();
    this.#content.filtered?.onDrain();
    this.releaseSource();
  }

  holdSource(): void {
    if (this.#upstreamPaused || this.#upstream === null) return;
    this.#upstreamPaused = true;
    this.#upstream.socket.pause();
  }

  releaseSource(): void {
    if (!this.#upstreamPaused || this.#upstream === null) return;
    const isHeld = this.#content.filtered?.isPaused === true;
    if (isHeld || this.#exchange.socket.writableNeedDrain) return;
    this.#upstreamPaused = false;
    if (!this.#isEnding) this.#touchAnswer();
    this.#upstream.socket.resume();
  }

  onFiltered(isWhole: boolean): void {
    if (!isWhole) {
      this.#truncate();
      return;
    }
    this.#dropUpstream();
    this.#conclude("complete");
    this.#exchange.finish();
  }

  onFilterFault(error: unknown): void {
    this.#exchange.failHandler(error);
  }

  /** The handler's own response, sent instead of the upstream's, is complete. */
  onOwnAnswer(): void {
    if (this.#state === State.Replaced) this.#conclude(this.#replacedOutcome);
    else if (this.#state === State.Answering) {
      this.#dropUpstream();
      this.#conclude("complete");
    } else return;
    this.#exchange.finish();
  }

  /** The client's socket has closed. */
  onClientGone(): void {
    if (this.#tunnel !== null) {
      this.#tunnel.end(false);
      return;
    }
    if (this.#state === State.Failing) return;
    if (this.#state === State.Acquiring) this.#poolOf(this.#target).cancel(this);
    this.#dropUpstream();
    this.#conclude("client-aborted");
  }

  /** Releases everything without reporting an end: the exchange is answered in another way. */
  abandon(): void {
    if (this.#state === State.Idle) return;
    if (this.#state === State.Acquiring) this.#poolOf(this.#target).cancel(this);
    this.#dropUpstream();
    this.#headPending = false;
    this.#state = State.Idle;
    this.#replay.forget();
    this.#closeTaps();
    this.#exchange.detachSink();
  }

  /**
   * Gracefully ends an endless response: an event stream after a chunk, a WebSocket by Close frames to both sides. False
   * for any other response or tunnel.
   */
  endStream(): boolean {
    if (this.#state === State.Answering && this.#content.isEventStream) {
      if (this.#isEnding) return true;
      this.#isEnding = true;
      this.#idleDeadlineMs = this.#deadlineIn(ENDING_MS);
      this.#endEvents();
      return true;
    }
    return this.#tunnel !== null && this.#tunnel.endGracefully();
  }

  onTunnelInput(bytes: Buffer, start: number): void {
    this.#tunnel?.onClientBytes(bytes, start);
  }

  onTunnelClientEnd(): void {
    this.#tunnel?.onClientEnd();
  }

  sweep(nowMs: number): void {
    this.#tunnel?.sweep(nowMs);
    if (nowMs >= this.#totalDeadlineMs) {
      if (this.#state === State.Answering) this.#truncate();
      else this.#fail("total-timeout", "");
      return;
    }
    if (nowMs < this.#idleDeadlineMs) return;
    this.#idleDeadlineMs = NEVER;
    switch (this.#state) {
      case State.Sending:
        this.#fail("response-timeout", "");
        break;
      case State.Answering:
        // The client's connection has its own timeouts for slow readers.
        if (!this.#upstreamPaused) this.#truncate();
        break;
      default:
    }
  }

  #try(target: ForwardTarget, fresh: boolean): void {
    this.#target = target;
    this.#plan = target.plan as CompiledPlan;
    this.#attempts++;
    this.#state = State.Acquiring;
    this.#idleDeadlineMs = NEVER;
    this.#upstreamPaused = false;
    this.#informational = 0;
    const { head, bodyDone } = this.#exchange;
    const connection = this.#poolOf(target).acquire(
      this,
      fresh ? Reuse.Never : chooseReuse(head.methodId, !bodyDone),
    );
    if (connection !== null) this.onAcquired(connection);
  }

  #sendRequest(upstream: UpstreamConnection): void {
    const exchange = this.#exchange;
    const { head, collected } = exchange;
    const { writer } = exchange.host.engine;
    const plan = this.#plan;
    this.#isUpgrade = plan.upgrade && head.upgrade && mayUpgrade(head);
    upstream.parser.expect(head.methodId);
    writer.begin();
    writeRequestLine(writer, head, plan, exchange.forwardPath, exchange.forwardQuery);
    writeRequestFields(
      writer,
      head,
      plan,
      this.#isUpgrade,
      collected === null ? -1 : collected.length,
    );
    this.#observer.onRequestHead?.(exchange, writer, this.#target, upstream.stream);
    writer.endHead();
    this.#headPending = true;
    this.#requestDone = false;
    if (collected !== null) {
      if (collected.length > 0) this.#sendBody(collected, 0, collected.length);
      this.#markRequestDone();
    } else {
      for (const piece of this.#replay.pieces) this.#sendBody(piece, 0, piece.length);
      if (exchange.bodyDone) this.#markRequestDone();
      else exchange.attachSink(this.#tapped ?? this);
    }
    // If the sink has refused the body, nothing is sent.
    if (this.#headPending) this.#flushHead();
  }

  #flushHead(): void {
    this.#headPending = false;
    const upstream = this.#upstream!;
    const { writer, writeDirect } = this.#exchange.host.engine;
    const { socket } = upstream;
    this.#requestSent = true;
    if (upstream.readsKept || socket.writableLength > 0) {
      socket.write(Buffer.from(writer.view()));
    } else if (!writeDirect(socket as Socket, writer.view())) writer.takeOver();
  }

  #sendBody(bytes: Buffer, start: number, end: number): void {
    const { writer } = this.#exchange.host.engine;
    if (this.#headPending) {
      if (end - start + writer.length <= JOINED_BYTES_MAX) {
        writer.range(bytes, start, end);
        return;
      }
      this.#flushHead();
    }
    const { socket } = this.#upstream!;
    socket.write(bytes.subarray(start, end));
    if (socket.writableNeedDrain) {
      // The timeout for a response also applies to accepting the request.
      this.#idleDeadlineMs = this.#deadlineIn(this.#plan.responseHeadMs);
      this.#exchange.pauseBody();
    }
  }

  #markRequestDone(): void {
    this.#requestDone = true;
    if (this.#state === State.Sending) {
      this.#idleDeadlineMs = this.#deadlineIn(this.#plan.responseHeadMs);
    }
  }

  #takeUpstreamBytes(bytes: Buffer, length: number): void {
    let at = 0;
    while (this.#state === State.Sending) {
      const { parser } = this.#upstream!;
      switch (parser.execute(bytes, at, length)) {
        case Parse.NeedsMore:
          return;
        case Parse.Refused:
          this.#fail("malformed-response", parser.refusal!.code);
          return;
        default:
      }
      at = parser.next;
      if (parser.status === 101) {
        this.#beginTunnel(parser, bytes, at, length);
        return;
      }
      if (parser.informational) {
        if (!this.#passInformational(parser)) return;
        parser.reset();
        if (at === length) return;
      } else {
        if (!this.#tryAgain(parser)) this.#beginAnswer(parser, bytes, at, length);
        return;
      }
    }
    if (this.#state === State.Answering) {
      if (!this.#isEnding) this.#touchAnswer();
      this.#passAnswer(bytes, length);
    }
  }

  /** True if the observer wants another attempt instead of this response, of which the client has seen nothing. */
  #tryAgain(parser: ResponseParser): boolean {
    const isUnseen = this.#replay.isComplete && this.#informational === 0;
    if (!isUnseen || this.#attempts >= ATTEMPTS_MAX) return false;
    const next = this.#observer.onResponse?.(this.#exchange, parser) ?? null;
    if (next === null) return false;
    this.#exchange.detachSink();
    this.#dropUpstream();
    this.#try(next, false);
    return true;
  }

  #passInformational(parser: ResponseParser): boolean {
    if (++this.#informational > INFORMATIONAL_MAX) {
      this.#fail("malformed-response", "too_many_informational");
      return false;
    }
    // RFC 9110 §15.2: an HTTP/1.0 client must not be sent a 1xx.
    if (this.#exchange.minor === 0) return true;
    const { writer } = this.#exchange.host.engine;
    writer.begin();
    writeInformationalHead(writer, parser, this.#plan);
    writer.endHead();
    this.#exchange.flush();
    return true;
  }

  #beginAnswer(parser: ResponseParser, bytes: Buffer, at: number, length: number): void {
    if (parser.framing === Framing.Chunked) {
      const refusal = this.#content.judgeFirstChunks(bytes, at, length);
      if (refusal !== null) {
        this.#fail("malformed-response", refusal.code);
        return;
      }
    }
    const exchange = this.#exchange;
    const { engine } = exchange.host;
    const { writer } = engine;
    const nowMs = engine.now();
    this.#upstreamMs = nowMs - this.#startMs;
    this.#isEnding = false;
    this.#replay.forget();
    const content = this.#content;
    content.begin(parser);
    if (exchange.responseFilter !== null) {
      this.#beginFiltered(parser, bytes, at, length);
      return;
    }
    this.#state = State.Answering;
    const isUnchunked =
      content.isUnchunked || (exchange.minor === 0 && parser.framing === Framing.None);
    exchange.beginForwardedAnswer(parser.status, content.needsClose);
    writer.begin();
    writeResponseFields(writer, parser, this.#plan, isUnchunked);
    if (!parser.fields.has(Known.Date)) writer.date(engine.date, engine.coarseDateMs);
    this.#observer.onResponseHead?.(exchange, parser, writer);
    if (content.isRechunked) writer.raw(TRANSFER_ENCODING_CHUNKED);
    writer.connection(exchange.keepAlive, exchange.minor);
    writer.endHead();
    const progress = content.pass(this.#upstream!, bytes, at, length, true);
    if (progress === Progress.Broken) {
      this.#truncate();
      return;
    }
    exchange.flush();
    if (progress === Progress.Complete) this.#completeAnswer(nowMs);
    else {
      this.#upstream!.ownReads();
      this.#touchAnswer();
      this.#settleBackPressure();
      if (exchange.host.endsStreams) this.endStream();
    }
  }

  #beginFiltered(parser: ResponseParser, bytes: Buffer, at: number, length: number): void {
    const exchange = this.#exchange;
    const { engine } = exchange.host;
    const { writer } = engine;
    const content = this.#content;
    writer.begin();
    writeResponseFields(writer, parser, this.#plan, content.isUnchunked);
    if (!parser.fields.has(Known.Date)) writer.date(engine.date, engine.coarseDateMs);
    this.#observer.onResponseHead?.(exchange, parser, writer);
    const draft = readDraft(writer, parser, exchange.methodId === Method.HEAD);
    this.#state = State.Failing;
    const filters = exchange.responseFilter!.onResponse(exchange, draft, parser);
    if (exchange.aborted) {
      this.#dropUpstream();
      this.#conclude("client-aborted");
      return;
    }
    if (exchange.answered) {
      this.#replaceAnswer(parser, length - at);
      return;
    }
    this.#state = State.Answering;
    const filtered = new FilteredContent(exchange, draft, filters, this);
    content.filter(parser, filtered);
    const progress = content.pass(this.#upstream!, bytes, at, length, true);
    if (progress === Progress.Detached) return;
    if (progress === Progress.Broken) {
      this.#truncate();
      return;
    }
    if (progress === Progress.Complete) this.#completeAnswer(engine.now());
    else this.#upstream!.ownReads();
    filtered.settleFirstRead();
    if (filtered.isOver) return;
    this.#touchAnswer();
    this.#settleBackPressure();
    if (exchange.host.endsStreams) this.endStream();
  }

  /** The filter has answered instead of the upstream, whose response has `size` bytes in this read. */
  #replaceAnswer(parser: ResponseParser, size: number): void {
    const upstream = this.#upstream!;
    const isRead = parser.framing === Framing.None || parser.framing === Framing.Length;
    const isWhole =
      isRead && size === Math.max(0, parser.framing === Framing.None ? 0 : parser.contentLength);
    this.#upstream = null;
    if (isWhole && this.#requestDone && parser.keepAlive)
      this.#poolOf(this.#target).release(upstream);
    else this.#drop(upstream);
    this.#endReplaced("complete");
  }

  /** The request was answered otherwise: it ends now, or with the end of the handler's stream. */
  #endReplaced(outcome: RequestOutcome): void {
    if (this.#exchange.isStreaming) {
      this.#state = State.Replaced;
      this.#replacedOutcome = outcome;
      this.#totalDeadlineMs = NEVER;
      return;
    }
    this.#conclude(outcome);
    this.#exchange.finish();
  }

  #passAnswer(bytes: Buffer, length: number): void {
    switch (this.#content.pass(this.#upstream!, bytes, 0, length, false)) {
      case Progress.Complete:
        this.#completeAnswer(this.#exchange.host.engine.now());
        return;
      case Progress.Broken:
        this.#truncate();
        return;
      case Progress.Detached:
        return;
      default:
        this.#settleBackPressure();
        if (this.#isEnding) this.#endEvents();
    }
  }

  #endEvents(): void {
    if (!this.#content.endEarly()) return;
    this.#dropUpstream();
    this.#exchange.keepAlive = false;
    if (this.#content.filtered !== null) {
      this.#content.filtered.endSource([]);
      return;
    }
    this.#conclude("complete");
    this.#exchange.finish();
  }

  #settleBackPressure(): void {
    if (this.#upstreamPaused || !this.#exchange.socket.writableNeedDrain) return;
    this.#upstreamPaused = true;
    this.#upstream!.socket.pause();
  }

  #completeAnswer(nowMs: number): void {
    const upstream = this.#upstream!;
    const exchange = this.#exchange;
    this.#upstream = null;
    upstream.shareReads(exchange.socket.writableLength === 0);
    if (this.#requestDone && upstream.parser.keepAlive)
      this.#poolOf(this.#target).release(upstream);
    else this.#drop(upstream);
    const { filtered } = this.#content;
    if (filtered !== null) {
      this.#touchAnswer();
      filtered.endSource(this.#content.trailers);
      return;
    }
    this.#conclude("complete", nowMs);
    exchange.finish();
  }

  /** The upstream broke off after its head was forwarded: the client must not see a complete response. */
  #truncate(): void {
    this.#dropUpstream();
    if (!this.#exchange.answered) {
      // Filters hold the head: the client can still get an error response.
      this.#replay.giveUp();
      this.#content.filtered?.abort();
      this.#fail("malformed-response", "truncated_content");
      return;
    }
    this.#conclude("truncated");
    this.#exchange.destroy();
  }

  #failUnanswered(code: string): void {
    const upstream = this.#upstream;
    const begun = upstream?.parser.begun ?? false;
    if (begun || this.#informational > 0)
      this.#fail("malformed-response", code || "truncated_head");
    else if (isReused(upstream)) this.#fail("reset-on-idle", code);
    else this.#fail("reset", code);
  }

  #fail(kind: FailureKind, code: string): void {
    const exchange = this.#exchange;
    const target = this.#target;
    if (this.#state === State.Acquiring) this.#poolOf(target).cancel(this);
    this.#dropUpstream();
    this.#idleDeadlineMs = NEVER;
    this.#state = State.Failing;
    exchange.detachSink();
    const failure: ForwardFailure = {
      kind,
      code,
      target,
      attempt: this.#attempts,
      requestSent: this.#requestSent,
      replayable: this.#replay.isComplete,
      status: statusOf(kind),
    };
    let next: ForwardTarget | null = null;
    try {
      next = this.#observer.onFailure?.(exchange, failure) ?? null;
    } catch (error) {
      this.#state = State.Idle;
      exchange.failHandler(error);
      return;
    }
    if (exchange.aborted) {
      this.#conclude("client-aborted");
      return;
    }
    if (
      next !== null &&
      !exchange.answered &&
      this.#replay.isComplete &&
      this.#attempts < ATTEMPTS_MAX &&
      kind !== "total-timeout"
    ) {
      this.#try(next, kind === "reset-on-idle");
      return;
    }
    if (!exchange.answered) {
      exchange.respond(prepareProblem(codeOf(kind), detailOf(kind)));
    }
    this.#endReplaced("failed");
  }

  #beginTunnel(parser: ResponseParser, bytes: Buffer, at: number, length: number): void {
    const exchange = this.#exchange;
    const { engine } = exchange.host;
    if (!this.#isUpgrade || !this.#requestDone) {
      this.#fail("malformed-response", "upgrade_not_asked_for");
      return;
    }
    this.#upstreamMs = engine.now() - this.#startMs;
    this.#state = State.Tunnel;
    this.#replay.forget();
    this.#totalDeadlineMs = NEVER;
    this.#idleDeadlineMs = NEVER;
    exchange.beginForwardedAnswer(101, true);
    const { writer } = engine;
    writer.begin();
    writeInformationalHead(writer, parser, this.#plan);
    this.#observer.onResponseHead?.(exchange, parser, writer);
    writer.endHead();
    writer.range(bytes, at, length);
    exchange.flush();
    const isWebSocket = (parser.fields.get(Known.Upgrade) ?? "").toLowerCase() === "websocket";
    const upstream = this.#upstream!;
    const { tunnelIdleMs } = this.#plan;
    const tunnel = new TunnelFlow(exchange, upstream, tunnelIdleMs, isWebSocket, () => {
      this.#tunnel = null;
      this.#upstream = null;
      exchange.bytesIn = tunnel.bytesIn;
      exchange.bytesOut = tunnel.bytesOut;
      this.#conclude("tunnel-closed");
    });
    this.#tunnel = tunnel;
    tunnel.begin(bytes, at, length);
    exchange.becomeTunnel();
    this.#observer.onTunnel?.(exchange, tunnel.present());
    // Bytes that the client sent after its request belong to the tunnel.
    exchange.pump();
    tunnel.settleBackPressure();
    if (exchange.host.endsStreams) tunnel.endGracefully();
  }

  #conclude(outcome: RequestOutcome, nowMs = this.#exchange.host.engine.now()): void {
    this.#state = State.Idle;
    this.#idleDeadlineMs = NEVER;
    this.#totalDeadlineMs = NEVER;
    this.#headPending = false;
    this.#replay.forget();
    this.#closeTaps();
    const exchange = this.#exchange;
    const { endReport } = exchange;
    endReport.send(exchange, outcome, nowMs, this.#upstreamMs, this.#attempts, this.#target);
  }

  #closeTaps(): void {
    if (this.#tapped !== null) {
      this.#tapped.close();
      this.#tapped = null;
    }
    const { filtered } = this.#content;
    if (filtered === null) return;
    this.#content.filtered = null;
    filtered.abort();
  }

  #dropUpstream(): void {
    const upstream = this.#upstream;
    this.#upstream = null;
    if (upstream !== null) this.#drop(upstream);
  }

  #drop(upstream: UpstreamConnection): void {
    upstream.user = null;
    upstream.destroy();
  }

  #poolOf(target: ForwardTarget): ConnectionPool {
    return target.pool as ConnectionPool;
  }

  #touchAnswer(): void {
    this.#idleDeadlineMs = this.#deadlineIn(this.#plan.bodyIdleMs);
  }

  #deadlineIn(timeoutMs: number): number {
    return this.#exchange.host.engine.deadlineIn(timeoutMs);
  }
}

function isReused(upstream: UpstreamConnection | null): boolean {
  return upstream !== null && (upstream.wasIdle || upstream.requests > 1);
}
