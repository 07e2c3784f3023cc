// One request of a client connection and its response; reused for each request.
import type { Socket } from "node:net";
import { Outflow } from "@platform/kernel/sockets";
import type { RequestTap, ResponseFilter, StreamStart } from "../contract/content.ts";
import type {
  BodyReceiver,
  ConnectionInfo,
  Exchange,
  ForwardObserver,
  HeadChange,
  ReadBodyCallback,
  ReadPartCallback,
  RequestEnd,
  TakenSocket,
} from "../contract/exchange.ts";
import type { ForwardTarget } from "../contract/forward.ts";
import type { BodySink, ForwardClient } from "../forward/client.ts";
import { Forwarding } from "../forward/forwarding.ts";
import { Framing, Method, RequestParser } from "../parse/index.ts";
import {
  type Answer,
  type AnswerContext,
  type AnswerHeaders,
  countContent,
  type PreparedAnswer,
  writeAnswer,
  writePrepared,
  writePreparedStart,
  writeStreamHead,
} from "../write/index.ts";
import { type Refused, connectRefused, handlerFailed } from "../write/refused.ts";
import { BodyDelivery } from "./body-delivery.ts";
import { appendToHead, changeHead } from "./change-head.ts";
import type { ConnectionHost } from "./connection-host.ts";
import { readConnectionInfo } from "./connection-info.ts";
import { EndReport } from "./end-report.ts";
import type { ExchangeOwner } from "./exchange-owner.ts";
import { Phase } from "./phase.ts";
import { sendSwitchHead, sendWritten } from "./send-written.ts";
import { StreamedAnswer } from "./streamed-answer.ts";

/** Maximum bytes of an unread request body that are discarded to keep the connection. */
export const REST_BYTES_MAX = 262_144;

/**
 * The exchange that handlers and forwarding see. Its connection begins it when a head is complete, and is told to end it
 * exactly once: `endRequest` after the response, `becomeTunnel`, `releaseSocket`, or by the loss of the socket (`abort`).
 *
 * ```text
 *   begin --> handler --respond | startResponse … end | forward | takeSocket--> onEnd --> owner.endRequest
 * ```
 *
 * `answered` becomes true when response bytes are written, and stays so: what fails after that destroys the socket.
 */
export class ServerExchange<U> implements ForwardClient<U>, AnswerContext {
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
  answersLater = false;
  requestTap: RequestTap | null = null;
  responseFilter: ResponseFilter<Exchange<U>> | null = null;
  onAborted: ((exchange: Exchange<U>) => void) | null = null;
  onEnd: ((exchange: Exchange<U>, end: RequestEnd) => void) | null = null;
  onDrain: ((exchange: Exchange<U>) => void) | null = null;

  collected: Buffer | null = null;
  keepAlive = true;
  status = 0;
  isHandling = false;
  readonly body: BodyDelivery<U>;
  readonly endReport = new EndReport();
  /** Null before the first request that is forwarded. */
  forwarding: Forwarding<U> | null = null;

  readonly #owner: ExchangeOwner;
  #streamed: StreamedAnswer | null = null;

  /** `onSlowReader` must destroy the socket. */
  constructor(
    owner: ExchangeOwner,
    socket: Socket,
    host: ConnectionHost<U>,
    userData: U,
    onSlowReader: (code: string) => void,
  ) {
    this.#owner = owner;
    this.socket = socket;
    this.host = host;
    this.userData = userData;
    this.head = new RequestParser(host.parserLimits);
    this.connection = readConnectionInfo(socket);
    this.outflow = new Outflow(socket, host.engine.outgoing, host, onSlowReader);
    this.body = new BodyDelivery(this, owner);
  }

  get methodId(): RequestParser["methodId"] {
    return this.head.methodId;
  }

  get minor(): 0 | 1 {
    return this.head.minor;
  }

  get bodyDone(): boolean {
    return this.body.framing.isDone;
  }

  get isBodyBegun(): boolean {
    return this.body.isBegun;
  }

  get isStreaming(): boolean {
    return this.#streamed?.isOpen === true;
  }

  get nowMs(): number {
    return this.host.engine.coarseDateMs;
  }

  get unsentBytes(): number {
    return this.socket.writableLength;
  }

  /** Starts the request whose head is complete, and calls the handler. */
  begin(): void {
    const { head, host } = this;
    this.sequence++;
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
    this.answersLater = false;
    this.body.begin(head.framing, head.contentLength);
    if (head.methodId === Method.CONNECT) this.refuseBody(connectRefused);
    else this.#callHandler();
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

  end(trailers?: AnswerHeaders): void {
    const streamed = this.#expectStreamed();
    if (this.aborted) streamed.isOpen = false;
    else if (!streamed.end(trailers)) this.destroy();
    this.#settleAnswer();
  }

  readBody(bytesMax: number, done: ReadBodyCallback<U>): void {
    this.body.collect(bytesMax, done);
  }

  readBodyPart(bytesMin: number, done: ReadPartCallback<U>): void {
    this.body.takePart(bytesMin, done);
  }

  streamBody(receiver: BodyReceiver): void {
    this.body.stream(receiver);
  }

  replaceHead(change: HeadChange): void {
    changeHead(this.head, change);
  }

  appendFields(fields: readonly (readonly [name: string, value: string])[]): void {
    appendToHead(this.head, fields);
  }

  replaceBody(bytes: Buffer): void {
    if (!this.bodyDone) throw new Error("The request body has not been collected");
    this.collected = bytes;
  }

  forward(target: ForwardTarget, observer: ForwardObserver<U>): void {
    this.#expectUnanswered();
    this.forwarding ??= new Forwarding(this);
    this.forwarding.start(target, observer);
  }

  endStream(): boolean {
    return this.forwarding !== null && this.forwarding.endStream();
  }

  takeSocket(headers: AnswerHeaders | null): TakenSocket {
    this.#expectUnanswered();
    if (headers !== null) sendSwitchHead(this, headers);
    this.answered = true;
    this.status = 101;
    this.endReport.sendOwn(this, "complete");
    return this.#owner.releaseSocket();
  }

  destroy(): void {
    this.socket.destroy();
  }

  refuseBody(refused: Refused): void {
    this.head.keepAlive = false;
    this.respond(this.host.prepareRefusal(refused, this.head));
  }

  failHandler(error: unknown): void {
    this.host.onHandlerError(error, this);
    if (this.#owner.phase !== Phase.Active) return;
    this.forwarding?.abandon();
    if (this.answered) {
      this.destroy();
      return;
    }
    this.refuseBody(handlerFailed);
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
    this.body.attach(sink);
  }

  detachSink(): void {
    this.body.detach();
  }

  pauseBody(): void {
    this.body.pause();
  }

  resumeBody(): void {
    this.body.resume();
  }

  becomeTunnel(): void {
    this.#owner.becomeTunnel();
  }

  pump(): void {
    this.#owner.pump();
  }

  finish(): void {
    this.#owner.endRequest();
  }

  /** The socket's write buffer has drained. */
  onSocketDrain(): void {
    if (this.isStreaming) this.onDrain?.(this);
    else if (this.#isForwarding) this.forwarding!.onClientDrain();
  }

  /** The socket has closed during the request or its tunnel. */
  abort(): void {
    const wasStreaming = this.isStreaming;
    if (this.#streamed !== null) this.#streamed.isOpen = false;
    this.body.abort();
    const isForwarding = this.#isForwarding;
    if (!isForwarding || wasStreaming) this.onAborted?.(this);
    if (isForwarding) this.forwarding!.onClientGone();
    else this.endReport.sendOwn(this, "client-aborted");
  }

  get #isForwarding(): boolean {
    return this.forwarding !== null && this.forwarding.isBusy;
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

  #canKeepAlive(): boolean {
    const { head, host } = this;
    const { framing } = this.body;
    if (!head.keepAlive || host.draining || this.#owner.isLastRequest) return false;
    if (this.sequence >= host.requestsPerConnectionMax) return false;
    // It is unknown if a client that waits for 100 still sends its body.
    const awaitsInvitation = head.expectContinue && this.bytesIn === 0;
    if (framing.isDone) return !awaitsInvitation || framing.isInvited;
    if (awaitsInvitation) return false;
    return head.framing === Framing.Chunked || framing.remaining <= REST_BYTES_MAX;
  }

  #expectUnanswered(): void {
    if (this.answered || this.#owner.phase !== Phase.Active) {
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
    if (this.#isForwarding) {
      this.forwarding!.onOwnAnswer();
      return;
    }
    this.endReport.sendOwn(this, "complete");
    this.finish();
  }
}
