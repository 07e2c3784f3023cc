// Sends one request to its upstream: the head, then the body as the client sends it.
import type { Socket } from "node:net";
import type { UpstreamConnection } from "../upstream/connection.ts";
import type { Refused } from "../write/refused.ts";
import type { BodySink } from "./client.ts";
import { type ForwardedRequest, type ForwardOwner, NEVER } from "./forwarded-request.ts";
import { mayUpgrade, writeRequestFields, writeRequestLine } from "./heads.ts";
import { TappedBody } from "./request-tap.ts";
import { State } from "./state.ts";

/** Maximum size of head and request body that are joined in one write. */
const JOINED_BYTES_MAX = 16_384;

/**
 * The way of a request to its upstream.
 *
 * ```text
 *   client --attachSink--> [tap] --onBody--> writer (head pending) --one write--> upstream
 *                                       \--> replay, for another attempt
 * ```
 *
 * The head stays in the thread's writer until `send` returns, so that body bytes that are already here follow it in the same
 * write: no other head may be written in between.
 */
export class RequestFlow<U> implements BodySink {
  readonly takesWireBytes = true;
  readonly #request: ForwardedRequest<U>;
  readonly #owner: ForwardOwner;
  /** The head is still in the writer: body bytes are appended to it. */
  #isHeadPending = false;
  /** Observes the body on its way to this sink. */
  #tapped: TappedBody<U> | null = null;

  constructor(request: ForwardedRequest<U>, owner: ForwardOwner) {
    this.#request = request;
    this.#owner = owner;
  }

  /** Starts the next request. */
  begin(): void {
    const { exchange } = this.#request;
    const tap = exchange.requestTap;
    if (tap !== null) this.#tapped = new TappedBody(exchange, tap, this);
  }

  /** Sends the request, as far as it is here, to the connection of this attempt. */
  send(upstream: UpstreamConnection): void {
    try {
      this.#send(upstream);
    } catch (error) {
      this.#isHeadPending = false;
      this.#request.exchange.failHandler(error);
    }
  }

  onBody(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const request = this.#request;
    if (request.state !== State.Sending && request.state !== State.Answering) return;
    const size = end - start;
    if (size > 0) {
      if (request.state === State.Sending) request.replay.keep(bytes, start, end);
      else request.replay.giveUp();
      this.#sendBody(bytes, start, end);
    }
    if (isLast) this.#markSent();
    else if (request.idleDeadlineMs !== NEVER && request.state === State.Sending) {
      request.idleDeadlineMs = NEVER;
    }
  }

  onBodyRefused(refused: Refused): void {
    const request = this.#request;
    const { exchange } = request;
    // Nothing has been sent while the head is in the writer: the connection can be reused.
    if (request.upstream !== null) request.releaseUpstream(this.#isHeadPending);
    this.#isHeadPending = false;
    if (exchange.answered) {
      this.#owner.conclude("truncated");
      exchange.destroy();
      return;
    }
    request.state = State.Failing;
    exchange.refuseBody(refused);
    this.#owner.conclude("request-refused");
    exchange.finish();
  }

  /** The upstream's write buffer has drained. */
  onDrain(): void {
    const request = this.#request;
    if (request.state === State.Sending) request.idleDeadlineMs = NEVER;
    request.exchange.resumeBody();
  }

  /** Nothing more is sent. */
  close(): void {
    this.#isHeadPending = false;
    if (this.#tapped === null) return;
    this.#tapped.close();
    this.#tapped = null;
  }

  #send(upstream: UpstreamConnection): void {
    const request = this.#request;
    const { exchange, plan } = request;
    const { head, collected } = exchange;
    const { writer } = exchange.host.engine;
    request.isUpgrade = plan.upgrade && head.upgrade && mayUpgrade(head);
    upstream.parser.expect(head.methodId);
    writer.begin();
    writeRequestLine(writer, head, plan, exchange.forwardPath, exchange.forwardQuery);
    writeRequestFields(writer, head, plan, {
      isUpgrade: request.isUpgrade,
      isBegun: exchange.isBodyBegun,
      collectedBytes: collected === null ? -1 : collected.length,
    });
    request.observer.onRequestHead?.(exchange, writer, request.target, upstream.stream);
    writer.endHead();
    this.#isHeadPending = true;
    request.isWholeSent = false;
    if (collected !== null) {
      if (collected.length > 0) this.#sendBody(collected, 0, collected.length);
      this.#markSent();
    } else {
      for (const piece of request.replay.pieces) this.#sendBody(piece, 0, piece.length);
      if (exchange.bodyDone) this.#markSent();
      else exchange.attachSink(this.#tapped ?? this);
    }
    // If the sink has refused the body, nothing is sent.
    if (this.#isHeadPending) this.#flushHead();
  }

  #flushHead(): void {
    this.#isHeadPending = false;
    const request = this.#request;
    const upstream = request.upstream!;
    const { writer, writeDirect } = request.exchange.host.engine;
    const { socket } = upstream;
    request.isHeadSent = true;
    if (upstream.readsKept || socket.writableLength > 0) {
      socket.write(Buffer.from(writer.view()));
    } else if (!writeDirect(socket as Socket, writer.view())) writer.takeOver();
  }

  #sendBody(bytes: Buffer, start: number, end: number): void {
    const request = this.#request;
    const { exchange } = request;
    const { writer } = exchange.host.engine;
    if (this.#isHeadPending) {
      if (end - start + writer.length <= JOINED_BYTES_MAX) {
        writer.range(bytes, start, end);
        return;
      }
      this.#flushHead();
    }
    const { socket } = request.upstream!;
    socket.write(bytes.subarray(start, end));
    if (!socket.writableNeedDrain) return;
    // The timeout for a response also applies to accepting the request.
    request.expectHead();
    exchange.pauseBody();
  }

  #markSent(): void {
    const request = this.#request;
    request.isWholeSent = true;
    if (request.state === State.Sending) request.expectHead();
  }
}
