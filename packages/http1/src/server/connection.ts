// One client's connection: heads in, exchanges to the handler, answers out. It is the HTTP/1.1 form of `Exchange`.
import type { Socket } from "node:net";

import type { Engine } from "../engine/engine.ts";
import type { ForwardObserver, ForwardTarget } from "../forward/contract.ts";
import { Forwarding } from "../forward/forwarding.ts";
import { Chunk, ChunkedDecoder, Framing, Method, Parse, RequestParser } from "../parse/index.ts";
import type { RequestLimits } from "../parse/index.ts";
import {
  CHUNK_END,
  LAST_CHUNK,
  CHUNK_HEAD_BYTES_MAX,
  writeAnswer,
  viewAsBuffer,
  writeChunkHead,
  writePrepared,
  writeStreamHead,
} from "../write/index.ts";
import type { Answer, AnswerContext, AnswerHeaders, PreparedAnswer } from "../write/index.ts";
import { BodyCollector } from "./body.ts";
import type { BodySink, Refused } from "./body.ts";
import { readConnectionInfo } from "./connection-info.ts";
import type { ServerFault } from "./contract.ts";
import type {
  BodyReceiver,
  ConnectionInfo,
  Exchange,
  ReadBodyCallback,
  StreamHead,
} from "./exchange.ts";
import { prepareProblem } from "./problem.ts";

/** What a connection is doing. */
export const Phase = {
  /** Between requests, or within a head. */
  Head: 0,
  /** A request is with the handler. */
  Active: 1,
  /** The answer is out, the rest of the request body is thrown away. */
  Draining: 2,
  /** Nothing is written any more; what still comes is thrown away until the client closes. */
  Closing: 3,
  /** Bytes go to and fro after an upgrade. */
  Tunnel: 4,
  Closed: 5,
} as const;

/** One of the values of `Phase`. */
export type PhaseKind = (typeof Phase)[keyof typeof Phase];

/** What all connections of a server share. */
export interface ConnectionHost<U> {
  readonly engine: Engine;
  readonly parserLimits: RequestLimits;
  readonly bodyBytesMax: number;
  readonly requestsPerConnectionMax: number;
  readonly readAheadBytesMax: number;
  readonly headMs: number;
  readonly bodyIdleMs: number;
  readonly keepAliveMs: number;
  readonly writeStallMs: number;
  readonly lingerMs: number;
  readonly halfCloseMs: number;
  readonly draining: boolean;
  active: number;
  tunnels: number;
  handle(exchange: Exchange<U>): void;
  onHandlerError(error: unknown, exchange: Exchange<U>): void;
  onFault(fault: ServerFault): void;
  forget(connection: ClientConnection<U>): void;
}

const NEVER = Infinity;
const NO_BYTES = Buffer.alloc(0);
/** Bytes of an unread request body that are read and thrown away to keep the connection. */
const REST_BYTES_MAX = 262_144;
/** Bytes after which a lingering close gives up. */
const LINGER_BYTES_MAX = 16_777_216;
/** Larger content is written as it is, not copied behind its head. */
const JOINED_BYTES_MAX = 16_384;
const CONTINUE = Buffer.from("HTTP/1.1 100 Continue\r\n\r\n");

const requestTimeout: Refused = {
  code: "request_timeout",
  status: 408,
  detail: "The request did not arrive in time.",
};
const payloadTooLarge: Refused = {
  code: "payload_too_large",
  status: 413,
  detail: "The request body is too large.",
};
const connectRefused: Refused = {
  code: "not_implemented",
  status: 501,
  detail: "CONNECT is not offered here.",
};

/**
 * Input runs through `#pump`, which goes on as long as the phase takes bytes:
 *
 * ```text
 *   Head --head complete--> Active --answered, body taken--> Head
 *                             |  \--answered, small rest----> Draining --> Head
 *                             |   \-answered, must close----> Closing --> Closed
 *                             \-101------------------------> Tunnel --> Closed
 * ```
 */
export class ClientConnection<U> implements Exchange<U>, AnswerContext {
  readonly head: RequestParser;
  readonly connection: ConnectionInfo;
  readonly socket: Socket;
  readonly host: ConnectionHost<U>;
  userData: U;
  sequence = 0;
  startedAtMs = 0;
  aborted = false;
  answered = false;
  bytesIn = 0;
  bytesOut = 0;
  bodyBytesMax = 0;
  forwardPath: string | null = null;
  onAborted: ((exchange: Exchange<U>) => void) | null = null;
  onAnswered: ((exchange: Exchange<U>, status: number) => void) | null = null;
  onDrain: ((exchange: Exchange<U>) => void) | null = null;

  phase: PhaseKind = Phase.Head;
  /** Whether the whole request body has been taken from the input. */
  bodyDone = true;
  /** A body that `readBody` gathered: it is sent instead of the client's own framing. */
  collected: Buffer | null = null;
  /** Whether the connection stays open after the answer under way. */
  keepAlive = true;
  /** Status of the answer under way, 0 before. */
  status = 0;
  /** The client sent its FIN. */
  ended = false;
  /** The handler is being called for the request that has just begun. */
  isHandling = false;

  #forwarding: Forwarding<U> | null = null;
  #collector: BodyCollector<U> | null = null;
  #bodyRemaining = 0;
  #decoder: ChunkedDecoder | null = null;
  #sink: BodySink | null = null;
  #sinkPaused = false;
  /** Input that was not taken yet: `#input` from `#inputAt`, then `#more`. */
  #input: Buffer | null = null;
  #inputAt = 0;
  readonly #more: Buffer[] = [];
  #moreBytes = 0;
  #isPumping = false;
  #readPaused = false;
  #deadlineMs: number;
  #headStarted = true;
  #discarded = 0;
  #quietBytesOut = 0;
  #stallLength = 0;
  #stallDeadlineMs = NEVER;
  #streamFraming: number = Framing.None;
  #streamRemaining = 0;
  #isStreaming = false;

  constructor(socket: Socket, host: ConnectionHost<U>, userData: U) {
    this.socket = socket;
    this.host = host;
    this.userData = userData;
    this.head = new RequestParser(host.parserLimits);
    this.connection = readConnectionInfo(socket);
    this.#deadlineMs = this.#deadlineIn(host.headMs);
    const onData = (chunk: Buffer): void => {
      this.#onData(chunk);
    };
    socket.on("data", onData);
    if (!this.connection.secure) shortenReads(socket, onData);
    socket.on("end", () => {
      this.#onEnd();
    });
    socket.on("drain", () => {
      this.#onSocketDrain();
    });
    // What went wrong shows in "close", which always follows.
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#onClose();
    });
  }

  get methodId(): RequestParser["methodId"] {
    return this.head.methodId;
  }

  get minor(): 0 | 1 {
    return this.head.minor;
  }

  get nowMs(): number {
    return this.host.engine.coarseDateMs;
  }

  respond(answer: Answer | PreparedAnswer): void {
    this.#expectUnanswered();
    const { engine } = this.host;
    const { writer, date } = engine;
    this.keepAlive = this.#canKeepAlive();
    writer.begin();
    if ("head" in answer) writePrepared(writer, date, answer, this);
    else writeAnswer(writer, date, answer, this);
    this.answered = true;
    this.status = answer.status;
    if (!this.aborted) {
      const { body } = answer;
      if (body !== undefined && this.methodId !== Method.HEAD) {
        this.bytesOut = typeof body === "string" ? Buffer.byteLength(body) : body.length;
      }
      this.flush();
    }
    this.#settleAnswer();
  }

  startResponse(head: StreamHead): void {
    this.#expectUnanswered();
    const { writer, date } = this.host.engine;
    this.keepAlive = this.#canKeepAlive();
    writer.begin();
    const framing = writeStreamHead(writer, date, head, this);
    if (framing === Framing.UntilClose) this.keepAlive = false;
    this.answered = true;
    this.status = head.status;
    this.#isStreaming = true;
    this.#streamFraming = framing;
    this.#streamRemaining = framing === Framing.Length ? head.contentLength! : 0;
    if (!this.aborted) this.flush();
  }

  write(chunk: Uint8Array | string): boolean {
    if (!this.#isStreaming) throw new Error("No streamed answer was started");
    if (this.aborted) return true;
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    if (bytes.length === 0) return true;
    switch (this.#streamFraming) {
      case Framing.Chunked:
        this.#writeChunk(bytes);
        break;
      case Framing.Length:
        if (bytes.length > this.#streamRemaining) {
          throw new Error("More bytes than the answer's Content-Length");
        }
        this.#streamRemaining -= bytes.length;
        this.socket.write(bytes);
        break;
      case Framing.UntilClose:
        this.socket.write(bytes);
        break;
      default:
        return true;
    }
    this.bytesOut += bytes.length;
    this.watchStall();
    return !this.socket.writableNeedDrain;
  }

  end(trailers?: AnswerHeaders): void {
    if (!this.#isStreaming) throw new Error("No streamed answer was started");
    this.#isStreaming = false;
    if (!this.aborted) {
      if (this.#streamFraming === Framing.Length && this.#streamRemaining > 0) {
        this.destroy();
      } else if (this.#streamFraming === Framing.Chunked) {
        this.#writeLastChunk(trailers);
      }
    }
    this.#settleAnswer();
  }

  readBody(bytesMax: number, done: ReadBodyCallback<U>): void {
    if (this.collected !== null) {
      if (this.collected.length > bytesMax) done(this, "too-large", NO_BYTES);
      else done(this, "complete", this.collected);
      return;
    }
    if (this.#sink !== null || (this.bodyDone && this.head.framing !== Framing.None)) {
      throw new Error("The request body has been taken already");
    }
    if (this.bodyDone) {
      done(this, "complete", NO_BYTES);
      return;
    }
    if (this.head.framing === Framing.Length && this.head.contentLength > bytesMax) {
      done(this, "too-large", NO_BYTES);
      return;
    }
    if (this.head.expectContinue && this.bytesIn === 0) this.socket.write(CONTINUE);
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
      throw new Error("The request body has been taken already");
    }
    if (this.bodyDone) {
      receiver.onBody(NO_BYTES, 0, 0, true);
      return;
    }
    if (this.head.expectContinue && this.bytesIn === 0) this.socket.write(CONTINUE);
    this.attachSink({
      takesWireBytes: false,
      onBody: receiver.onBody.bind(receiver),
      onBodyRefused: receiver.onBodyRefused.bind(receiver),
    });
  }

  forward(target: ForwardTarget, observer: ForwardObserver<U>): void {
    this.#expectUnanswered();
    this.#forwarding ??= new Forwarding(this);
    this.#forwarding.start(target, observer);
  }

  destroy(): void {
    this.socket.destroy();
  }

  /** Answers in the handler's stead and closes: the rest of the request cannot be trusted or is not wanted. */
  refuseBody(refused: Refused): void {
    this.head.keepAlive = false;
    this.respond(prepareProblem(refused.status, refused.code, refused.detail));
  }

  /** Sends what the writer holds, in one write. */
  flush(): void {
    const { writer } = this.host.engine;
    const { socket } = this;
    // TLS keeps its input until the record is out: a copy is cheaper than a new scratch each time.
    if (this.connection.secure) {
      socket.write(Buffer.from(writer.view()));
      this.watchStall();
      return;
    }
    socket.write(writer.view());
    if (socket.writableLength > 0) {
      writer.takeOver();
      this.watchStall();
    }
  }

  /** Notes that the socket may hold bytes that the client does not read. */
  watchStall(): void {
    const length = this.socket.writableLength;
    if (length === 0 || this.#stallDeadlineMs !== NEVER) return;
    this.#stallLength = length;
    this.#stallDeadlineMs = this.#deadlineIn(this.host.writeStallMs);
  }

  /** Begins the answer of a forwarded request: decides whether the connection will stay. */
  beginForwardedAnswer(status: number, needsClose: boolean): void {
    this.answered = true;
    this.status = status;
    this.keepAlive = !needsClose && this.#canKeepAlive();
  }

  /** Sends the body to `sink`, what is here already at once. */
  attachSink(sink: BodySink): void {
    this.#sink = sink;
    this.#sinkPaused = false;
    if (this.bodyDone) return;
    if (this.head.framing === Framing.Length && this.head.contentLength > this.bodyBytesMax) {
      this.#refuseToSink(payloadTooLarge);
      return;
    }
    this.#deadlineMs = this.#deadlineIn(this.host.bodyIdleMs);
    while (
      this.#input !== null &&
      this.#sink === sink &&
      !this.#sinkPaused &&
      !this.bodyDone &&
      this.phase === Phase.Active
    ) {
      this.#takeBody(this.#input);
    }
    this.#settleReading();
  }

  /** Body bytes stay in the input from now on. */
  detachSink(): void {
    this.#sink = null;
    this.#sinkPaused = false;
    if (this.phase === Phase.Active) this.#deadlineMs = NEVER;
  }

  /** The sink cannot take more for now. */
  pauseBody(): void {
    this.#sinkPaused = true;
    this.#deadlineMs = NEVER;
    this.#settleReading();
  }

  /** The sink takes more again. */
  resumeBody(): void {
    if (!this.#sinkPaused) return;
    this.#sinkPaused = false;
    if (this.phase === Phase.Active && !this.bodyDone) {
      this.#deadlineMs = this.#deadlineIn(this.host.bodyIdleMs);
    }
    this.pump();
  }

  /** Becomes a tunnel: from now on input goes to `forwarding.onTunnelInput`. */
  becomeTunnel(): void {
    this.phase = Phase.Tunnel;
    this.host.active--;
    this.host.tunnels++;
    this.#deadlineMs = NEVER;
    this.head.reset();
  }

  /** The answer is complete: what comes next on this connection. */
  finish(): void {
    if (this.phase !== Phase.Active) return;
    this.host.active--;
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

  /** Sends FIN behind what is written, and reads on for a while so that the client sees the answer. */
  closeGently(): void {
    this.phase = Phase.Closing;
    this.#discarded = 0;
    this.#dropInput();
    this.#deadlineMs = this.#deadlineIn(this.host.lingerMs);
    this.socket.end();
    this.#settleReading();
  }

  /** The server drains: an idle connection closes now, any other after its answer. */
  drain(): void {
    if (this.phase === Phase.Head && !this.head.begun) this.closeGently();
  }

  /** Compares the deadlines. */
  sweep(nowMs: number): void {
    this.#sweepStall(nowMs);
    if (this.phase === Phase.Active || this.phase === Phase.Tunnel) {
      this.#forwarding?.sweep(nowMs);
      if (this.ended && this.phase === Phase.Active) this.#sweepHalfClosed(nowMs);
    }
    if (nowMs < this.#deadlineMs) return;
    this.#deadlineMs = NEVER;
    switch (this.phase) {
      case Phase.Head:
        if (this.head.begun) this.#refuseHead(requestTimeout, "head-timeout");
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
        // A slow reader of the last answer is the write stall's business.
        if (this.socket.writableLength > 0) this.#deadlineMs = this.#deadlineIn(1_000);
        else this.destroy();
        break;
      default:
    }
  }

  #onData(chunk: Buffer): void {
    if (this.#input === null) {
      this.#input = chunk;
      this.#inputAt = 0;
    } else {
      this.#more.push(chunk);
      this.#moreBytes += chunk.length;
    }
    this.pump();
  }

  /** Goes on with the input as far as the phase takes it. */
  pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (this.#input !== null && this.#step(this.#input));
    this.#isPumping = false;
    this.#settleReading();
  }

  /** Takes some input; false if the phase takes none now. */
  #step(input: Buffer): boolean {
    switch (this.phase) {
      case Phase.Head:
        return this.#takeHead(input);
      case Phase.Active:
        if (this.bodyDone || this.#sink === null || this.#sinkPaused) return false;
        this.#takeBody(input);
        return true;
      case Phase.Draining:
        this.#discardBody(input);
        return true;
      case Phase.Closing:
        this.#discarded += input.length - this.#inputAt;
        this.#nextInput();
        if (this.#discarded > LINGER_BYTES_MAX) this.destroy();
        return true;
      case Phase.Tunnel: {
        if (this.#sinkPaused) return false;
        const start = this.#inputAt;
        this.#nextInput();
        this.#forwarding!.onTunnelInput(input, start);
        return true;
      }
      case Phase.Closed:
        this.#dropInput();
        return false;
      default:
        return false;
    }
  }

  #takeHead(input: Buffer): boolean {
    const { head } = this;
    switch (head.execute(input, this.#inputAt, input.length)) {
      case Parse.NeedsMore:
        this.#nextInput();
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
        if (head.next === input.length) this.#nextInput();
        else this.#inputAt = head.next;
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
    this.bytesIn = 0;
    this.bytesOut = 0;
    this.bodyBytesMax = host.bodyBytesMax;
    this.forwardPath = null;
    this.onAborted = null;
    this.onDrain = null;
    this.collected = null;
    this.bodyDone = head.framing === Framing.None;
    if (!this.bodyDone) {
      this.#bodyRemaining = head.contentLength;
      if (head.framing === Framing.Chunked) {
        this.#decoder ??= new ChunkedDecoder();
        this.#decoder.reset();
      }
    }
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

  /** A handler or observer threw: 500 where nothing was answered yet, and the connection ends. */
  failHandler(error: unknown): void {
    this.host.onHandlerError(error, this);
    if (this.phase !== Phase.Active) return;
    this.#forwarding?.abandon();
    if (this.answered) {
      this.destroy();
      return;
    }
    this.refuseBody({ code: "internal", status: 500, detail: "The request could not be handled." });
  }

  #takeBody(input: Buffer): void {
    const sink = this.#sink!;
    const start = this.#inputAt;
    if (this.head.framing === Framing.Length) {
      const taken = Math.min(input.length - start, this.#bodyRemaining);
      this.#bodyRemaining -= taken;
      this.bytesIn += taken;
      this.#advance(start + taken);
      this.#noteBody(this.#bodyRemaining === 0);
      sink.onBody(input, start, start + taken, this.bodyDone);
      return;
    }
    const decoder = this.#decoder!;
    const wire = sink.takesWireBytes;
    const status = wire
      ? decoder.skim(input, start, input.length)
      : decoder.execute(input, start, input.length);
    this.bytesIn = decoder.dataBytes;
    if (status === Chunk.Refused) {
      this.#dropInput();
      this.#refuseToSink(decoder.refusal!);
      return;
    }
    if (decoder.dataBytes > this.bodyBytesMax) {
      this.#refuseToSink(payloadTooLarge);
      return;
    }
    const { next } = decoder;
    this.#advance(next);
    this.#noteBody(status === Chunk.Complete);
    if (wire) sink.onBody(input, start, next, this.bodyDone);
    else if (status === Chunk.Data) sink.onBody(input, decoder.dataStart, decoder.dataEnd, false);
    else if (this.bodyDone) sink.onBody(NO_BYTES, 0, 0, true);
  }

  #noteBody(isDone: boolean): void {
    this.bodyDone = isDone;
    this.#deadlineMs = isDone ? NEVER : this.#deadlineIn(this.host.bodyIdleMs);
  }

  #discardBody(input: Buffer): void {
    const start = this.#inputAt;
    let next: number;
    let isDone: boolean;
    if (this.head.framing === Framing.Length) {
      const taken = Math.min(input.length - start, this.#bodyRemaining);
      this.#bodyRemaining -= taken;
      next = start + taken;
      isDone = this.#bodyRemaining === 0;
    } else {
      const decoder = this.#decoder!;
      const status = decoder.skim(input, start, input.length);
      if (status === Chunk.Refused) {
        this.closeGently();
        return;
      }
      next = decoder.next;
      isDone = status === Chunk.Complete;
    }
    this.#discarded += next - start;
    this.#advance(next);
    if (isDone) {
      this.bodyDone = true;
      this.#awaitHead();
    } else if (this.#discarded > REST_BYTES_MAX) {
      this.closeGently();
    }
  }

  #awaitHead(): void {
    this.head.reset();
    this.phase = Phase.Head;
    if (this.host.draining && this.#input === null) {
      this.closeGently();
      return;
    }
    this.#headStarted = false;
    this.#deadlineMs = this.#deadlineIn(this.host.keepAliveMs);
    // A FIN that came during the answer: nothing more will be asked.
    if (this.ended && this.#input === null) this.closeGently();
  }

  #refuseHead(refused: Refused, kind: "malformed-request" | "head-timeout"): void {
    this.#dropInput();
    const { host } = this;
    this.sequence++;
    this.keepAlive = false;
    const { writer, date } = host.engine;
    writer.begin();
    writePrepared(writer, date, prepareProblem(refused.status, refused.code, refused.detail), {
      methodId: Method.GET,
      minor: 1,
      keepAlive: false,
      nowMs: this.nowMs,
    });
    this.flush();
    this.closeGently();
    host.onFault({
      kind,
      status: refused.status,
      code: refused.code,
      remoteAddress: this.connection.remoteAddress,
    });
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
    if (!head.keepAlive || host.draining || this.ended) return false;
    if (this.sequence >= host.requestsPerConnectionMax) return false;
    if (this.bodyDone) return true;
    // Whether a client that waits for 100 will send its body after all is anyone's guess.
    if (head.expectContinue && this.bytesIn === 0) return false;
    return head.framing === Framing.Chunked || this.#bodyRemaining <= REST_BYTES_MAX;
  }

  #expectUnanswered(): void {
    if (this.answered || this.phase !== Phase.Active) {
      throw new Error("This exchange has been answered already");
    }
  }

  /** An answer given in place is complete. A forwarding that is failing goes on by itself. */
  #settleAnswer(): void {
    this.onAnswered?.(this, this.status);
    if (this.#forwarding === null || !this.#forwarding.isBusy) this.finish();
  }

  #writeChunk(bytes: Uint8Array): void {
    const { writer } = this.host.engine;
    if (bytes.length <= JOINED_BYTES_MAX) {
      writer.begin();
      writer.length = writeChunkHead(writer.bytes, 0, bytes.length);
      writer.raw(viewAsBuffer(bytes));
      writer.raw(CHUNK_END);
      this.flush();
      return;
    }
    const head = Buffer.allocUnsafe(CHUNK_HEAD_BYTES_MAX);
    this.socket.cork();
    this.socket.write(head.subarray(0, writeChunkHead(head, 0, bytes.length)));
    this.socket.write(bytes);
    this.socket.write(CHUNK_END);
    this.socket.uncork();
  }

  #writeLastChunk(trailers: AnswerHeaders | undefined): void {
    if (trailers === undefined || trailers.length === 0) {
      this.socket.write(LAST_CHUNK);
      return;
    }
    const { writer } = this.host.engine;
    writer.begin();
    writer.byte(0x30);
    writer.lineEnd();
    for (const [name, value] of trailers) writer.field(name, value);
    writer.endHead();
    this.flush();
  }

  #advance(to: number): void {
    if (to === this.#input!.length) this.#nextInput();
    else this.#inputAt = to;
  }

  #nextInput(): void {
    this.#inputAt = 0;
    if (this.#more.length === 0) {
      this.#input = null;
      return;
    }
    const next = this.#more.shift()!;
    this.#moreBytes -= next.length;
    this.#input = next;
  }

  #dropInput(): void {
    this.#input = null;
    this.#inputAt = 0;
    this.#more.length = 0;
    this.#moreBytes = 0;
  }

  /** Reads from the socket only while there is room for what comes. */
  #settleReading(): void {
    const input = this.#input;
    if (input === null) {
      if (this.ended && this.phase === Phase.Active && !this.bodyDone) {
        // The client had left when its last bytes were still held back: the body breaks off here.
        this.destroy();
        return;
      }
      if (this.#readPaused) this.#resumeReading();
      return;
    }
    const queued = input.length - this.#inputAt + this.#moreBytes;
    const isFull = this.#sinkPaused || queued > this.host.readAheadBytesMax;
    if (isFull && !this.#readPaused) {
      this.#readPaused = true;
      this.socket.pause();
    } else if (!isFull && this.#readPaused) {
      this.#resumeReading();
    }
  }

  #resumeReading(): void {
    this.#readPaused = false;
    this.socket.resume();
  }

  #onSocketDrain(): void {
    this.#stallDeadlineMs = NEVER;
    if (this.#forwarding !== null && this.#forwarding.isBusy) this.#forwarding.onClientDrain();
    else if (this.#isStreaming) this.onDrain?.(this);
  }

  #onEnd(): void {
    this.ended = true;
    switch (this.phase) {
      case Phase.Head:
        this.closeGently();
        break;
      case Phase.Active:
        // A body that breaks off cannot be completed any more; a whole request may still be answered.
        if (!this.bodyDone && this.#input === null) this.destroy();
        else {
          this.#quietBytesOut = this.bytesOut;
          this.#deadlineMs = this.#deadlineIn(this.host.halfCloseMs);
        }
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

  /** A client that has half-closed looks like one that is gone: it may wait as long as bytes flow. */
  #sweepHalfClosed(nowMs: number): void {
    if (this.bytesOut === this.#quietBytesOut) return;
    this.#quietBytesOut = this.bytesOut;
    this.#deadlineMs = nowMs + this.host.halfCloseMs;
  }

  #sweepStall(nowMs: number): void {
    if (this.#stallDeadlineMs === NEVER) return;
    const length = this.socket.writableLength;
    if (length === 0) this.#stallDeadlineMs = NEVER;
    else if (length !== this.#stallLength) {
      this.#stallLength = length;
      this.#stallDeadlineMs = this.#deadlineIn(this.host.writeStallMs);
    } else if (nowMs >= this.#stallDeadlineMs) {
      this.destroy();
    }
  }

  #onClose(): void {
    const { phase, host } = this;
    if (phase === Phase.Closed) return;
    this.phase = Phase.Closed;
    this.aborted = true;
    this.#dropInput();
    this.#sink = null;
    host.forget(this);
    if (phase === Phase.Active) host.active--;
    else if (phase === Phase.Tunnel) host.tunnels--;
    else return;
    this.#isStreaming = false;
    const collector = this.#collector;
    this.#collector = null;
    collector?.settle("aborted");
    if (this.#forwarding !== null && this.#forwarding.isBusy) this.#forwarding.onClientGone();
    else this.onAborted?.(this);
  }

  #deadlineIn(timeoutMs: number): number {
    return this.host.engine.deadlineIn(timeoutMs);
  }
}

/**
 * Hands what the system has read to `onData` without the way through the stream's queue, which costs a tick and an event
 * for each read. While the socket is paused, and for the end, the queue does its work as ever.
 */
function shortenReads(socket: Socket, onData: (chunk: Buffer) => void): void {
  const push = socket.push.bind(socket);
  socket.push = (chunk: Buffer | null): boolean => {
    if (chunk === null || socket.isPaused() || socket.readableLength > 0) return push(chunk);
    onData(chunk);
    return true;
  };
}
