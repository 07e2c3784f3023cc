// A client's connection: its phases, input and deadlines. The requests on it are a `ServerExchange`.
import type { Socket } from "node:net";
import type { ReadTaker } from "@platform/kernel/sockets";
import type { TakenSocket } from "../contract/exchange.ts";
import { Parse } from "../parse/index.ts";
import { requestTimeout, requestTooSlow } from "../write/refused.ts";
import { refuseHead, reportFault } from "./client-faults.ts";
import type { ConnectionHost, HostedConnection } from "./connection-host.ts";
import { REST_BYTES_MAX, ServerExchange } from "./exchange.ts";
import type { ExchangeOwner } from "./exchange-owner.ts";
import { copyRead, InputQueue } from "./input-queue.ts";
import { Phase, type PhaseKind } from "./phase.ts";
import { listenToSocket, passReadsOn } from "./taken-socket.ts";

const NEVER = Infinity;
/** Maximum bytes that a lingering close discards. */
const LINGER_BYTES_MAX = 16_777_216;
const RECHECK_MS = 1_000;

/**
 * `pump` processes input as long as the phase accepts bytes:
 *
 * ```text
 *   Head --head complete--> Active --answered, body read---> Head
 *                             |  \--answered, small rest----> Draining --> Head
 *                             |   \-answered, must close----> Closing --> Closed
 *                             \-101------------------------> Tunnel --> Closed
 * ```
 *
 * - One deadline, of the current phase: the head, the next bytes of the body, the rest of the body, the client's FIN.
 * - `host.active` counts connections in Active, `host.tunnels` those in Tunnel.
 * - Input that no phase accepts now stays in `input`; the socket is paused while that is full.
 */
export class ClientConnection<U> implements ExchangeOwner, HostedConnection {
  phase: PhaseKind = Phase.Head;
  readonly input = new InputQueue();

  readonly #host: ConnectionHost<U>;
  readonly #socket: Socket;
  readonly #exchange: ServerExchange<U>;
  readonly #stopListening: () => void;
  #deadlineMs: number;
  /** The client sent its FIN. */
  #isEnded = false;
  #isPumping = false;
  #isReadPaused = false;
  /** The deadline is that of a head, not that of an idle connection. */
  #isHeadStarted = true;
  /** Bytes discarded in this phase. */
  #discarded = 0;
  /** Response bytes when a half-closed client was last seen to receive some. */
  #quietBytesOut = 0;

  constructor(socket: Socket, host: ConnectionHost<U>, userData: U) {
    this.#host = host;
    this.#socket = socket;
    this.#exchange = new ServerExchange(this, socket, host, userData, (fault) => {
      reportFault(this.#exchange, "slow-reader", 0, fault);
      this.destroy();
    });
    this.#deadlineMs = host.engine.deadlineIn(host.headMs);
    if (host.draining) this.drain();
    const onRead: ReadTaker = (bytes, length, isShared) => {
      if (isShared && this.#takeBorrowed(bytes, length)) return;
      this.input.push(isShared ? copyRead(bytes, length) : bytes);
      this.pump();
    };
    if (!this.#exchange.connection.secure) host.shortenReads(socket, onRead);
    this.#stopListening = listenToSocket(socket, {
      data: (chunk: Buffer) => onRead(chunk, chunk.length, false),
      end: () => this.#onEnd(),
      drain: () => this.#onSocketDrain(),
      close: () => this.#onClose(),
    });
  }

  get isLastRequest(): boolean {
    return this.#isEnded && this.input.chunk === null;
  }

  allow(timeoutMs: number): void {
    this.#deadlineMs = this.#host.engine.deadlineIn(timeoutMs);
  }

  pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (this.input.chunk !== null && this.#step(this.input.chunk));
    this.#isPumping = false;
    this.settleReading();
  }

  settleReading(): void {
    const { size } = this.input;
    const { body } = this.#exchange;
    if (size === 0 && this.#isEnded && this.phase === Phase.Active && !body.framing.isDone) {
      // The client had disconnected while its last bytes were buffered: the body is incomplete.
      this.destroy();
      return;
    }
    const isFull = size > 0 && (body.isPaused || size > this.#host.readAheadBytesMax);
    if (isFull === this.#isReadPaused) return;
    this.#isReadPaused = isFull;
    if (isFull) this.#socket.pause();
    else this.#socket.resume();
  }

  endRequest(): void {
    if (this.phase !== Phase.Active) return;
    const exchange = this.#exchange;
    this.#host.active--;
    exchange.outflow.endClaims();
    exchange.body.close();
    if (!exchange.keepAlive) {
      this.#closeGently();
    } else if (exchange.bodyDone) {
      this.#awaitHead();
    } else {
      this.phase = Phase.Draining;
      this.#discarded = 0;
      this.allow(this.#host.lingerMs);
    }
    this.pump();
  }

  becomeTunnel(): void {
    this.phase = Phase.Tunnel;
    this.#host.active--;
    this.#host.tunnels++;
    this.#deadlineMs = NEVER;
    this.#exchange.head.reset();
  }

  releaseSocket(): TakenSocket {
    this.#stopListening();
    this.phase = Phase.Closed;
    this.#host.active--;
    this.#exchange.outflow.close();
    this.#host.forget(this);
    // Reads pass by the stream's queue: its new owner listens for `data`.
    if (!this.#exchange.connection.secure) passReadsOn(this.#socket, this.#host.shortenReads);
    return { socket: this.#socket, rest: this.input.takeAll() };
  }

  /** The server drains: closes an idle connection now, any other after its response. */
  drain(): void {
    const { head, sequence } = this.#exchange;
    if (this.phase !== Phase.Head || head.begun) return;
    if (sequence > 0) return this.#closeGently();
    // A client that has just connected sends its request without knowing of this, and may not try twice.
    this.#isHeadStarted = false;
    // Its time counts from the connect: one that has been silent for longer is idle.
    const { headMs, firstRequestMs } = this.#host;
    this.#deadlineMs -= Math.max(0, headMs - firstRequestMs);
  }

  endStream(): boolean {
    return this.#exchange.endStream();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Checks the deadlines. */
  sweep(nowMs: number): void {
    const exchange = this.#exchange;
    if (this.phase === Phase.Active || this.phase === Phase.Tunnel) {
      exchange.forwarding?.sweep(nowMs);
      const isFlowing = exchange.bytesOut !== this.#quietBytesOut;
      if (this.#isEnded && this.phase === Phase.Active && isFlowing) this.#allowHalfClosed();
      if (exchange.body.isTooSlow()) {
        reportFault(exchange, "slow-body", requestTooSlow.status, requestTooSlow.code);
        exchange.body.refuse(requestTooSlow);
      }
    }
    if (nowMs < this.#deadlineMs) return;
    this.#deadlineMs = NEVER;
    this.#endPhase();
  }

  /** The deadline of the phase has passed. */
  #endPhase(): void {
    const { head, body } = this.#exchange;
    switch (this.phase) {
      case Phase.Head:
        if (this.input.chunk !== null) this.allow(RECHECK_MS);
        else {
          if (head.begun) refuseHead(this.#exchange, requestTimeout, "head-timeout");
          this.#closeGently();
        }
        break;
      case Phase.Active:
        if (this.#isEnded) this.destroy();
        else body.refuse(requestTimeout);
        break;
      case Phase.Draining:
        this.#closeGently();
        break;
      case Phase.Closing:
        // The outflow handles slow readers of the last response.
        if (this.#socket.writableLength > 0) this.allow(RECHECK_MS);
        else this.destroy();
        break;
      default:
    }
  }

  /** Passes body bytes to a sink that retains none and copies the rest. Returns false, without any effect, if it cannot. */
  #takeBorrowed(buffer: Buffer, length: number): boolean {
    const { body } = this.#exchange;
    if (this.#isPumping || this.input.chunk !== null || !body.mayBorrow) return false;
    this.#isPumping = true;
    this.input.push(buffer.subarray(0, length));
    body.takeAll();
    this.input.own();
    this.#isPumping = false;
    this.pump();
    return true;
  }

  /** Processes some input; false if the phase accepts none now. */
  #step(chunk: Buffer): boolean {
    const { body, forwarding } = this.#exchange;
    switch (this.phase) {
      case Phase.Head:
        // A client that does not read its responses gets no more of them.
        return !this.#socket.writableNeedDrain && this.#takeHead(chunk);
      case Phase.Active:
        if (!body.mayTake) return false;
        body.take(chunk);
        return true;
      case Phase.Draining:
        this.#discardBody(chunk);
        return true;
      case Phase.Closing:
        this.#discarded += chunk.length - this.input.at;
        this.input.next();
        if (this.#discarded > LINGER_BYTES_MAX) this.destroy();
        return true;
      case Phase.Tunnel: {
        if (body.isPaused) return false;
        const start = this.input.at;
        this.input.next();
        forwarding!.onTunnelInput(chunk, start);
        return true;
      }
      default:
        this.input.drop();
        return false;
    }
  }

  #takeHead(chunk: Buffer): boolean {
    const { head } = this.#exchange;
    switch (head.execute(chunk, this.input.at, chunk.length)) {
      case Parse.NeedsMore:
        this.input.next();
        if (head.begun && !this.#isHeadStarted) {
          this.#isHeadStarted = true;
          this.allow(this.#host.headMs);
        }
        return true;
      case Parse.Refused:
        refuseHead(this.#exchange, head.refusal!, "malformed-request");
        this.#closeGently();
        return true;
      default:
        this.input.advance(head.next);
        this.phase = Phase.Active;
        this.#deadlineMs = NEVER;
        this.#host.active++;
        this.#exchange.begin();
        return true;
    }
  }

  #discardBody(chunk: Buffer): void {
    const { body } = this.#exchange;
    const bytes = body.discard(chunk);
    if (bytes === -1) {
      this.#closeGently();
      return;
    }
    this.#discarded += bytes;
    if (body.framing.isDone) this.#awaitHead();
    else if (this.#discarded > REST_BYTES_MAX) this.#closeGently();
  }

  #awaitHead(): void {
    this.#exchange.head.reset();
    this.phase = Phase.Head;
    if (this.#host.draining && this.input.chunk === null) {
      this.#closeGently();
      return;
    }
    this.#isHeadStarted = false;
    this.allow(this.#host.keepAliveMs);
    // The client sent its FIN during the response.
    if (this.isLastRequest) this.#closeGently();
  }

  /** Sends FIN after the written bytes, and continues reading for a while so that the client sees the response. */
  #closeGently(): void {
    this.phase = Phase.Closing;
    this.#discarded = 0;
    this.input.drop();
    this.allow(this.#host.lingerMs);
    this.#socket.end();
    this.settleReading();
  }

  #onSocketDrain(): void {
    this.#exchange.outflow.settle();
    if (this.phase === Phase.Head) this.pump();
    else this.#exchange.onSocketDrain();
  }

  #onEnd(): void {
    const { phase } = this;
    const isDrained = this.input.chunk === null;
    this.#isEnded = true;
    if (phase === Phase.Draining || (phase === Phase.Head && isDrained)) this.#closeGently();
    else if (phase === Phase.Tunnel) this.#exchange.forwarding!.onTunnelClientEnd();
    else if (phase === Phase.Active) {
      // An incomplete body cannot be completed; a complete request can still be answered.
      if (!this.#exchange.bodyDone && isDrained) this.destroy();
      else this.#allowHalfClosed();
    }
  }

  /** A half-closed client may have disconnected: it is kept only while response bytes flow. */
  #allowHalfClosed(): void {
    this.#quietBytesOut = this.#exchange.bytesOut;
    this.allow(this.#host.halfCloseMs);
  }

  #onClose(): void {
    const { phase } = this;
    if (phase === Phase.Closed) return;
    const exchange = this.#exchange;
    const host = this.#host;
    this.phase = Phase.Closed;
    exchange.aborted = true;
    this.input.drop();
    exchange.outflow.close();
    exchange.body.close();
    host.forget(this);
    if (phase === Phase.Active) host.active--;
    else if (phase === Phase.Tunnel) host.tunnels--;
    else return;
    exchange.abort();
  }
}
