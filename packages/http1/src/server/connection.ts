// A client's connection: parses requests, passes exchanges to the handler, sends responses. Implements `Exchange`.
import type { Socket } from "node:net";
import { Outflow, type ReadTaker } from "@platform/kernel/sockets";
import type { ForwardTarget } from "../contract/forward.ts";
import type { BodySink, ForwardClient } from "../forward/client.ts";
import { Forwarding } from "../forward/forwarding.ts";
import { Framing, Method, Parse, RequestParser } from "../parse/index.ts";
import {
  type Answer,
  type AnswerContext,
  type AnswerHeaders,
  type PreparedAnswer,
  writeAnswer,
  writePrepared,
  writePreparedStart,
  writeStreamHead,
} from "../write/index.ts";
import { BodyCollector, ReceiverSink } from "./body.ts";
import type { ConnectionHost } from "./connection-host.ts";
import { readConnectionInfo } from "./connection-info.ts";
import type { ServerFault } from "../contract/server.ts";
import type {
  BodyReceiver,
  ConnectionInfo,
  Exchange,
  ForwardObserver,
  ReadBodyCallback,
  RequestEnd,
  TakenSocket,
} from "../contract/exchange.ts";
import type { RequestTap, ResponseFilter, StreamStart } from "../contract/content.ts";
import { EndReport } from "./end-report.ts";
import { copyRead, InputQueue } from "./input-queue.ts";
import {
  type Refused,
  connectRefused,
  handlerFailed,
  payloadTooLarge,
  requestTimeout,
  requestTooSlow,
} from "../write/refused.ts";
import { Phase, type PhaseKind } from "./phase.ts";
import { countContent, sendRefusedHead } from "./refused-head.ts";
import { RequestBody } from "./request-body.ts";
import { sendWritten } from "./send-written.ts";
import { StreamedAnswer } from "./streamed-answer.ts";
import { listenToSocket, switchProtocols } from "./taken-socket.ts";

const NEVER = Infinity;
const NO_BYTES = Buffer.alloc(0);
/** Maximum bytes of an unread request body that are discarded to keep the connection. */
const REST_BYTES_MAX = 262_144;
/** Maximum bytes that a lingering close discards. */
const LINGER_BYTES_MAX = 16_777_216;
const CONTINUE = Buffer.from("HTTP/1.1 100 Continue\r\n\r\n");

/**
 * `pump` processes input as long as the phase accepts bytes:
 *
 * ```text
 *   Head --head complete--> Active --answered, body read---> Head
 *                             |  \--answered, small rest----> Draining --> Head
 *                             |   \-answered, must close----> Closing --> Closed
 *                             \-101------------------------> Tunnel --> Closed
 * ```
 */
export class ClientConnection<U> implements ForwardClient<U>, AnswerContext {
  readonly head: RequestParser;
  readonly connection: ConnectionInfo;
  readonly socket: Socket;
  readonly host: ConnectionHost<U>;
  /** Unsent bytes of the socket, settled after each write that may be incomplete. */
  readonly outflow: Outflow;
  userData: U;
  sequence = 0;
  startedAtMs = 0;
  aborted = false;
  answered = false;
  bytesIn = 0;
  bytesOut = 0;
  bodyBytesMax = 0;
  bodyIdleMs = 0;
  forwardPath: string | null = null;
  forwardQuery: string | null = null;
  requestTap: RequestTap | null = null;
  responseFilter: ResponseFilter<Exchange<U>> | null = null;
  onAborted: ((exchange: Exchange<U>) => void) | null = null;
  onEnd: ((exchange: Exchange<U>, end: RequestEnd) => void) | null = null;
  onDrain: ((exchange: Exchange<U>) => void) | null = null;

  phase: PhaseKind = Phase.Head;
  collected: Buffer | null = null;
  keepAlive = true;
  status = 0;
  /** The client sent its FIN. */
  ended = false;
  isHandling = false;

  #forwarding: Forwarding<U> | null = null;
  #collector: BodyCollector<U> | null = null;
  readonly #body = new RequestBody();
  #sink: BodySink | null = null;
  #sinkPaused = false;
  readonly #input = new InputQueue();
  #isPumping = false;
  #readPaused = false;
  #deadlineMs: number;
  #headStarted = true;
  #discarded = 0;
  #quietBytesOut = 0;
  #streamed: StreamedAnswer | null = null;
  readonly #stopListening: () => void;
  readonly endReport = new EndReport();

  constructor(socket: Socket, host: ConnectionHost<U>, userData: U) {
    this.socket = socket;
    this.host = host;
    this.userData = userData;
    this.head = new RequestParser(host.parserLimits);
    this.connection = readConnectionInfo(socket);
    this.outflow = new Outflow(socket, host.engine.outgoing, host, (fault) => {
      this.#reportFault("slow-reader", 0, fault);
      this.destroy();
    });
    this.#deadlineMs = this.#deadlineIn(host.headMs);
    if (host.draining) this.drain();
    const onRead: ReadTaker = (bytes, length, isShared) => {
      if (isShared && this.#takeBorrowed(bytes, length)) return;
      this.#input.push(isShared ? copyRead(bytes, length) : bytes);
      this.pump();
    };
    if (!this.connection.secure) host.shortenReads(socket, onRead);
    this.#stopListening = listenToSocket(socket, {
      data: (chunk: Buffer) => onRead(chunk, chunk.length, false),
      end: () => this.#onEnd(),
      drain: () => this.#onSocketDrain(),
      close: () => this.#onClose(),
    });
  }

  get methodId(): RequestParser["methodId"] {
    return this.head.methodId;
  }

  get minor(): 0 | 1 {
    return this.head.minor;
  }

  get bodyDone(): boolean {
    return this.#body.isDone;
  }

  get isStreaming(): boolean {
    return this.#streamed?.isOpen === true;
  }

  get nowMs(): number {
    return this.host.engine.coarseDateMs;
  }

  respond(answer: Answer | PreparedAnswer): void {
    this.#expectUnanswered();
    const { writer, date } = this.host.engine;
    this.keepAlive = this.#canKeepAlive();
    writer.begin();
    const content =
      "head" in answer
        ? writePrepared(writer, date, answer, this)
        : writeAnswer(writer, date, answer, this);
    this.answered = true;
    this.status = answer.status;
    if (!this.aborted) {
      if (this.methodId !== Method.HEAD) this.bytesOut = countContent(answer);
      this.flush(content);
    }
    this.#settleAnswer();
  }

  startResponse(head: StreamStart): void {
    this.#expectUnanswered();
    const { writer, date } = this.host.engine;
    this.keepAlive = this.#canKeepAlive();
    writer.begin();
    const framing =
      "head" in head
        ? writePreparedStart(writer, date, head, this)
        : writeStreamHead(writer, date, head, this);
    if (framing === Framing.UntilClose) this.keepAlive = false;
    this.answered = true;
    this.status = head.status;
    this.#streamed ??= new StreamedAnswer(this);
    this.#streamed.begin(framing, head.contentLength ?? 0);
    if (!this.aborted) this.flush();
  }

  write(chunk: Uint8Array | string): boolean {
    return this.#expectStreamed().write(chunk);
  }

  get unsentBytes(): number {
    return this.socket.writableLength;
  }

  end(trailers?: AnswerHeaders): void {
    const streamed = this.#expectStreamed();
    if (this.aborted) streamed.isOpen = false;
    else if (!streamed.end(trailers)) this.destroy();
    this.#settleAnswer();
  }

  readBody(bytesMax: number, done: ReadBodyCallback<U>): void {
    if (this.collected !== null) {
      if (this.collected.length > bytesMax) done(this, "too-large", NO_BYTES);
      else done(this, "complete", this.collected);
      return;
    }
    if (this.#sink !== null || (this.bodyDone && this.head.framing !== Framing.None)) {
      throw new Error("The request body has already been read");
    }
    if (this.head.framing === Framing.Length && this.head.contentLength > bytesMax) {
      done(this, "too-large", NO_BYTES);
      return;
    }
    if (this.#body.invite(this.head.expectContinue)) this.socket.write(CONTINUE);
    if (this.bodyDone) return done(this, "complete", NO_BYTES);
    this.#collector = new BodyCollector(
      this,
      bytesMax,
      done,
      (body) => {
        this.#collector = null;
        this.collected = body;
      },
      (refused) => {
        this.#collector = null;
        this.refuseBody(refused);
      },
    );
    this.attachSink(this.#collector);
  }

  streamBody(receiver: BodyReceiver): void {
    if (this.#sink !== null || this.collected !== null) {
      throw new Error("The request body has already been read");
    }
    if (this.#body.invite(this.head.expectContinue)) this.socket.write(CONTINUE);
    if (this.bodyDone) {
      receiver.onBody(NO_BYTES, 0, 0, true);
      return;
    }
    this.attachSink(new ReceiverSink(receiver));
  }

  forward(target: ForwardTarget, observer: ForwardObserver<U>): void {
    this.#expectUnanswered();
    this.#forwarding ??= new Forwarding(this);
    this.#forwarding.start(target, observer);
  }

  endStream(): boolean {
    return this.#forwarding !== null && this.#forwarding.endStream();
  }

  takeSocket(headers: AnswerHeaders | null): TakenSocket {
    this.#expectUnanswered();
    this.#stopListening();
    return switchProtocols(this, headers, this.#input.takeAll());
  }

  destroy(): void {
    this.socket.destroy();
  }

  refuseBody(refused: Refused): void {
    this.head.keepAlive = false;
    this.respond(this.host.prepareRefusal(refused, this.head));
  }

  /** Sends the content of the writer, followed by `content`, in one write. */
  flush(content: Buffer | null = null): void {
    const { engine } = this.host;
    if (sendWritten(this.socket, engine, this.connection.secure, content)) this.outflow.settle();
  }

  beginForwardedAnswer(status: number, needsClose: boolean): void {
    this.answered = true;
    this.status = status;
    this.keepAlive = !needsClose && this.#canKeepAlive();
  }

  attachSink(sink: BodySink): void {
    this.#sink = sink;
    this.#sinkPaused = false;
    if (this.bodyDone) return;
    if (this.head.framing === Framing.Length && this.head.contentLength > this.bodyBytesMax) {
      this.#refuseToSink(payloadTooLarge);
      return;
    }
    this.#deadlineMs = this.#deadlineIn(this.bodyIdleMs);
    while (this.#input.chunk !== null && this.#mayTakeBody(sink)) this.#takeBody(this.#input.chunk);
    this.#settleReading();
  }

  detachSink(): void {
    this.#sink = null;
    this.#sinkPaused = false;
    if (this.phase === Phase.Active) this.#deadlineMs = NEVER;
  }

  /** The sink cannot accept more for now. */
  pauseBody(): void {
    this.#sinkPaused = true;
    this.#deadlineMs = NEVER;
    this.#settleReading();
  }

  /** The sink accepts more again. */
  resumeBody(): void {
    if (!this.#sinkPaused) return;
    this.#sinkPaused = false;
    if (this.phase === Phase.Active && !this.bodyDone) {
      this.#deadlineMs = this.#deadlineIn(this.bodyIdleMs);
    }
    this.pump();
  }

  becomeTunnel(): void {
    this.phase = Phase.Tunnel;
    this.host.active--;
    this.host.tunnels++;
    this.#deadlineMs = NEVER;
    this.head.reset();
  }

  finish(): void {
    if (this.phase !== Phase.Active) return;
    this.host.active--;
    this.outflow.endClaims();
    this.#sink = null;
    this.#sinkPaused = false;
    if (!this.keepAlive) {
      this.closeGently();
    } else if (this.bodyDone) {
      this.#awaitHead();
    } else {
      this.phase = Phase.Draining;
      this.#discarded = 0;
      this.#deadlineMs = this.#deadlineIn(this.host.lingerMs);
    }
    this.pump();
  }

  /** Sends FIN after the written bytes, and continues reading for a while so that the client sees the response. */
  closeGently(): void {
    this.phase = Phase.Closing;
    this.#discarded = 0;
    this.#input.drop();
    this.#deadlineMs = this.#deadlineIn(this.host.lingerMs);
    this.socket.end();
    this.#settleReading();
  }

  /** The server drains: closes an idle connection now, any other after its response. */
  drain(): void {
    if (this.phase !== Phase.Head || this.head.begun) return;
    if (this.sequence > 0) return this.closeGently();
    // A client that has just connected sends its request without knowing of this, and may not try twice.
    this.#headStarted = false;
    this.#deadlineMs = Math.min(this.#deadlineMs, this.#deadlineIn(this.host.firstRequestMs));
  }

  /** Checks the deadlines. */
  sweep(nowMs: number): void {
    if (this.phase === Phase.Active || this.phase === Phase.Tunnel) {
      this.#forwarding?.sweep(nowMs);
      const isFlowing = this.bytesOut !== this.#quietBytesOut;
      if (this.ended && this.phase === Phase.Active && isFlowing) this.#allowHalfClosed();
      this.#sweepBodyPace();
    }
    if (nowMs < this.#deadlineMs) return;
    this.#deadlineMs = NEVER;
    switch (this.phase) {
      case Phase.Head:
        if (this.#input.chunk !== null) this.#deadlineMs = this.#deadlineIn(1_000);
        else if (this.head.begun) this.#refuseHead(requestTimeout, "head-timeout");
        else this.closeGently();
        break;
      case Phase.Active:
        if (this.ended) this.destroy();
        else this.#refuseToSink(requestTimeout);
        break;
      case Phase.Draining:
        this.closeGently();
        break;
      case Phase.Closing:
        // The outflow handles slow readers of the last response.
        if (this.socket.writableLength > 0) this.#deadlineMs = this.#deadlineIn(1_000);
        else this.destroy();
        break;
      default:
    }
  }

  #sweepBodyPace(): void {
    const { host } = this;
    const sink = this.#sink;
    if (sink === null || !this.#mayTakeBody(sink)) return;
    if (!this.#body.isTooSlow(host.requestBodyPace, host.engine.sweptMs)) return;
    this.#reportFault("slow-body", requestTooSlow.status, requestTooSlow.code);
    this.#refuseToSink(requestTooSlow);
  }

  #reportFault(kind: ServerFault["kind"], status: number, code: string): void {
    this.host.onFault({ kind, status, code, remoteAddress: this.connection.remoteAddress });
  }

  /** Passes body bytes to a sink that retains none and copies the rest. Returns false, without any effect, if it cannot. */
  #takeBorrowed(buffer: Buffer, length: number): boolean {
    const sink = this.#sink;
    const mayBorrow = sink?.keepsPieces === false && this.#input.chunk === null && !this.#isPumping;
    if (!mayBorrow || !this.#mayTakeBody(sink)) return false;
    this.#isPumping = true;
    this.#input.push(buffer.subarray(0, length));
    while (this.#input.chunk !== null && this.#mayTakeBody(sink)) this.#takeBody(this.#input.chunk);
    this.#input.own();
    this.#isPumping = false;
    this.pump();
    return true;
  }

  #mayTakeBody(sink: BodySink): boolean {
    return (
      this.#sink === sink && !this.#sinkPaused && !this.bodyDone && this.phase === Phase.Active
    );
  }

  pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (this.#input.chunk !== null && this.#step(this.#input.chunk));
    this.#isPumping = false;
    this.#settleReading();
  }

  /** Processes some input; false if the phase accepts none now. */
  #step(input: Buffer): boolean {
    switch (this.phase) {
      case Phase.Head:
        // A client that does not read its responses gets no more of them.
        return !this.socket.writableNeedDrain && this.#takeHead(input);
      case Phase.Active:
        if (this.bodyDone || this.#sink === null || this.#sinkPaused) return false;
        this.#takeBody(input);
        return true;
      case Phase.Draining:
        this.#discardBody(input);
        return true;
      case Phase.Closing:
        this.#discarded += input.length - this.#input.at;
        this.#input.next();
        if (this.#discarded > LINGER_BYTES_MAX) this.destroy();
        return true;
      case Phase.Tunnel: {
        if (this.#sinkPaused) return false;
        const start = this.#input.at;
        this.#input.next();
        this.#forwarding!.onTunnelInput(input, start);
        return true;
      }
      case Phase.Closed:
        this.#input.drop();
        return false;
      default:
        return false;
    }
  }

  #takeHead(input: Buffer): boolean {
    const { head } = this;
    switch (head.execute(input, this.#input.at, input.length)) {
      case Parse.NeedsMore:
        this.#input.next();
        if (head.begun && !this.#headStarted) {
          this.#headStarted = true;
          this.#deadlineMs = this.#deadlineIn(this.host.headMs);
        }
        return true;
      case Parse.Refused: {
        const refusal = head.refusal!;
        this.#refuseHead(refusal, "malformed-request");
        return true;
      }
      default:
        this.#input.advance(head.next);
        this.#beginExchange();
        return true;
    }
  }

  #beginExchange(): void {
    const { head, host } = this;
    this.sequence++;
    this.phase = Phase.Active;
    this.#deadlineMs = NEVER;
    this.startedAtMs = host.engine.now();
    this.answered = false;
    this.status = 0;
    this.bytesIn = this.bytesOut = 0;
    this.bodyBytesMax = host.bodyBytesMax;
    this.bodyIdleMs = host.bodyIdleMs;
    this.forwardPath = this.forwardQuery = null;
    this.requestTap = this.responseFilter = null;
    this.onAborted = null;
    this.onEnd = null;
    this.onDrain = null;
    this.collected = null;
    this.#body.begin(head.framing, head.contentLength);
    host.active++;
    if (head.methodId === Method.CONNECT) this.refuseBody(connectRefused);
    else this.#callHandler();
  }

  #callHandler(): void {
    this.isHandling = true;
    try {
      this.host.handle(this);
    } catch (error) {
      this.failHandler(error);
    }
    this.isHandling = false;
  }

  failHandler(error: unknown): void {
    this.host.onHandlerError(error, this);
    if (this.phase !== Phase.Active) return;
    this.#forwarding?.abandon();
    if (this.answered) {
      this.destroy();
      return;
    }
    this.refuseBody(handlerFailed);
  }

  #takeBody(input: Buffer): void {
    const sink = this.#sink!;
    const body = this.#body;
    const refusal = body.take(input, this.#input.at, sink.takesWireBytes);
    this.bytesIn = body.size;
    if (refusal !== null) {
      this.#input.drop();
      this.#refuseToSink(refusal);
      return;
    }
    if (body.size > this.bodyBytesMax) {
      this.#refuseToSink(payloadTooLarge);
      return;
    }
    this.#input.advance(body.next);
    const { isDone, pieceStart, pieceEnd } = body;
    this.#deadlineMs = isDone ? NEVER : this.#deadlineIn(this.bodyIdleMs);
    if (isDone || pieceEnd > pieceStart) sink.onBody(input, pieceStart, pieceEnd, isDone);
  }

  #discardBody(input: Buffer): void {
    const body = this.#body;
    const start = this.#input.at;
    if (body.take(input, start, true) !== null) {
      this.closeGently();
      return;
    }
    this.#discarded += body.next - start;
    this.#input.advance(body.next);
    if (body.isDone) this.#awaitHead();
    else if (this.#discarded > REST_BYTES_MAX) this.closeGently();
  }

  #awaitHead(): void {
    this.head.reset();
    this.phase = Phase.Head;
    if (this.host.draining && this.#input.chunk === null) {
      this.closeGently();
      return;
    }
    this.#headStarted = false;
    this.#deadlineMs = this.#deadlineIn(this.host.keepAliveMs);
    // The client sent its FIN during the response: no further request follows.
    if (this.ended && this.#input.chunk === null) this.closeGently();
  }

  #refuseHead(refused: Refused, kind: "malformed-request" | "head-timeout"): void {
    this.#input.drop();
    this.sequence++;
    this.keepAlive = false;
    const status = sendRefusedHead(this, refused);
    this.closeGently();
    this.#reportFault(kind, status, refused.code);
  }

  #refuseToSink(refused: Refused): void {
    const sink = this.#sink;
    this.#sink = null;
    this.#deadlineMs = NEVER;
    this.head.keepAlive = false;
    sink?.onBodyRefused(refused);
  }

  #canKeepAlive(): boolean {
    const { head, host } = this;
    const isLast = this.ended && this.#input.chunk === null;
    if (!head.keepAlive || host.draining || isLast) return false;
    if (this.sequence >= host.requestsPerConnectionMax) return false;
    // It is unknown if a client that waits for 100 still sends its body.
    const awaitsInvitation = head.expectContinue && this.bytesIn === 0;
    if (this.bodyDone) return !awaitsInvitation || this.#body.isInvited;
    if (awaitsInvitation) return false;
    return head.framing === Framing.Chunked || this.#body.remaining <= REST_BYTES_MAX;
  }

  #expectUnanswered(): void {
    if (this.answered || this.phase !== Phase.Active) {
      throw new Error("This exchange has already been answered");
    }
  }

  #expectStreamed(): StreamedAnswer {
    if (this.#streamed === null || !this.#streamed.isOpen) {
      throw new Error("No streamed response has been started");
    }
    return this.#streamed;
  }

  /** The handler's own response is complete; a failing forward ends the request itself. */
  #settleAnswer(): void {
    if (this.#forwarding !== null && this.#forwarding.isBusy) {
      this.#forwarding.onOwnAnswer();
      return;
    }
    this.endReport.sendOwn(this, "complete");
    this.finish();
  }

  /** Pauses the socket while the input is full. */
  #settleReading(): void {
    const { size } = this.#input;
    if (size === 0 && this.ended && this.phase === Phase.Active && !this.bodyDone) {
      // The client had disconnected while its last bytes were buffered: the body is incomplete.
      this.destroy();
      return;
    }
    const isFull = size > 0 && (this.#sinkPaused || size > this.host.readAheadBytesMax);
    if (isFull === this.#readPaused) return;
    this.#readPaused = isFull;
    if (isFull) this.socket.pause();
    else this.socket.resume();
  }

  #onSocketDrain(): void {
    this.outflow.settle();
    if (this.phase === Phase.Head) this.pump();
    else if (this.#streamed?.isOpen === true) this.onDrain?.(this);
    else if (this.#forwarding !== null && this.#forwarding.isBusy) this.#forwarding.onClientDrain();
  }

  #onEnd(): void {
    this.ended = true;
    switch (this.phase) {
      case Phase.Head:
        if (this.#input.chunk === null) this.closeGently();
        break;
      case Phase.Active:
        // An incomplete body cannot be completed; a complete request can still be answered.
        if (!this.bodyDone && this.#input.chunk === null) this.destroy();
        else this.#allowHalfClosed();
        break;
      case Phase.Draining:
        this.closeGently();
        break;
      case Phase.Tunnel:
        this.#forwarding!.onTunnelClientEnd();
        break;
      default:
    }
  }

  /** A half-closed client may have disconnected: it is kept only while response bytes flow. */
  #allowHalfClosed(): void {
    this.#quietBytesOut = this.bytesOut;
    this.#deadlineMs = this.#deadlineIn(this.host.halfCloseMs);
  }

  #onClose(): void {
    const { phase, host } = this;
    if (phase === Phase.Closed) return;
    this.phase = Phase.Closed;
    this.aborted = true;
    this.#input.drop();
    this.outflow.close();
    this.#sink = null;
    host.forget(this);
    if (phase === Phase.Active) host.active--;
    else if (phase === Phase.Tunnel) host.tunnels--;
    else return;
    const wasStreaming = this.isStreaming;
    if (this.#streamed !== null) this.#streamed.isOpen = false;
    const collector = this.#collector;
    this.#collector = null;
    collector?.settle("aborted");
    const isForwarding = this.#forwarding !== null && this.#forwarding.isBusy;
    if (!isForwarding || wasStreaming) this.onAborted?.(this);
    if (isForwarding) this.#forwarding!.onClientGone();
    else this.endReport.sendOwn(this, "client-aborted");
  }

  #deadlineIn(timeoutMs: number): number {
    return this.host.engine.deadlineIn(timeoutMs);
  }
}
