// Delivers the body of the current request from the connection's input to a sink.
import type { BodyReceiver, ReadBodyCallback, ReadPartCallback } from "../contract/exchange.ts";
import type { BodySink, ForwardClient } from "../forward/client.ts";
import { Framing, type FramingKind } from "../parse/index.ts";
import { frameChunk } from "../write/chunk-framing.ts";
import { payloadTooLarge, type Refused } from "../write/refused.ts";
import { BodyCollector, PartReader, ReceiverSink } from "./body.ts";
import type { ConnectionHost } from "./connection-host.ts";
import type { ExchangeOwner } from "./exchange-owner.ts";
import { Phase } from "./phase.ts";
import { RequestBody } from "./request-body.ts";

const NO_BYTES = Buffer.alloc(0);
const CONTINUE = Buffer.from("HTTP/1.1 100 Continue\r\n\r\n");

/** An exchange whose body is delivered. */
interface BodyExchange<U> extends ForwardClient<U> {
  readonly host: ConnectionHost<U>;
  collected: Buffer | null;
}

/**
 * The bodies of one connection's requests.
 *
 * ```text
 *   input --take--> framing --onBody--> sink     while a sink is attached and not paused
 *         --takePart--> framing --> reader, ahead --> sink     a beginning that was read passes the sink first
 *         --discard--> framing                   after the response, to keep the connection
 * ```
 *
 * Without a sink, or while it is paused, body bytes stay in the input and the client's time does not run. Each attached
 * sink is told once how its body ends: `onBody` with `isLast`, or `onBodyRefused`; unless it is detached before.
 */
export class BodyDelivery<U> {
  /** The sink cannot accept more for now. */
  isPaused = false;
  readonly framing = new RequestBody();
  readonly #exchange: BodyExchange<U>;
  readonly #owner: ExchangeOwner;
  #sink: BodySink | null = null;
  #reader: BodyCollector<U> | PartReader<U> | null = null;
  /** Parts that `takePart` has read, in their order: the next sink gets them before the rest. */
  #ahead: Buffer[] = [];
  /** A part has been read. The framing of a chunked body is gone up to there: the rest gets a new one as well. */
  #isBegun = false;

  constructor(exchange: BodyExchange<U>, owner: ExchangeOwner) {
    this.#exchange = exchange;
    this.#owner = owner;
  }

  /** A part of the body has been read. */
  get isBegun(): boolean {
    return this.#isBegun;
  }

  /** Starts the body of the next request. */
  begin(framing: FramingKind, contentLength: number): void {
    this.framing.begin(framing, contentLength);
    this.#isBegun = false;
  }

  /** True if input can be delivered now. */
  get mayTake(): boolean {
    return (
      this.#sink !== null &&
      !this.isPaused &&
      !this.framing.isDone &&
      this.#owner.phase === Phase.Active
    );
  }

  /** True if input in memory that is used again afterwards can be delivered now. */
  get mayBorrow(): boolean {
    return this.#sink?.keepsPieces === false && this.mayTake;
  }

  /** See `Exchange.readBody`. */
  collect(bytesMax: number, done: ReadBodyCallback<U>): void {
    const exchange = this.#exchange;
    const { head, collected } = exchange;
    if (collected !== null) {
      if (collected.length > bytesMax) done(exchange, "too-large", NO_BYTES);
      else done(exchange, "complete", collected);
      return;
    }
    this.#expectUnread(this.framing.isDone && head.framing !== Framing.None);
    if (head.framing === Framing.Length && head.contentLength > bytesMax) {
      done(exchange, "too-large", NO_BYTES);
      return;
    }
    this.#invite();
    if (this.framing.isDone) {
      done(exchange, "complete", NO_BYTES);
      return;
    }
    this.#reader = new BodyCollector(
      exchange,
      bytesMax,
      done,
      (body) => {
        this.#reader = null;
        exchange.collected = body;
      },
      (refused) => {
        this.#reader = null;
        exchange.refuseBody(refused);
      },
    );
    this.attach(this.#reader);
  }

  /** See `Exchange.readBodyPart`. */
  takePart(bytesMin: number, done: ReadPartCallback<U>): void {
    const exchange = this.#exchange;
    this.#expectUnread(
      exchange.collected !== null ||
        (this.framing.isDone && exchange.head.framing !== Framing.None),
    );
    this.#invite();
    if (this.framing.isDone) {
      done(exchange, "complete", NO_BYTES);
      return;
    }
    this.#isBegun = true;
    const ahead = this.#ahead;
    this.#ahead = [];
    const reader = new PartReader(exchange, bytesMin, done, {
      onPart: (part, isLast) => {
        this.#reader = null;
        this.detach();
        this.#ahead = ahead;
        if (part.length > 0) ahead.push(part);
        if (!isLast) return;
        exchange.collected = ahead.length === 1 ? part : Buffer.concat(ahead);
        this.#ahead = [];
      },
      onRefused: (refused) => {
        this.#reader = null;
        exchange.refuseBody(refused);
      },
    });
    this.#reader = reader;
    this.attach(reader);
  }

  /** See `Exchange.streamBody`. */
  stream(receiver: BodyReceiver): void {
    this.#expectUnread(this.#exchange.collected !== null);
    this.#invite();
    if (this.framing.isDone) receiver.onBody(NO_BYTES, 0, 0, true);
    else this.attach(new ReceiverSink(receiver));
  }

  /** Delivers the body to `sink`, starting with input that is already here. */
  attach(sink: BodySink): void {
    this.#sink = sink;
    this.isPaused = false;
    if (this.framing.isDone) return;
    const { head, bodyBytesMax, bodyIdleMs } = this.#exchange;
    if (head.framing === Framing.Length && head.contentLength > bodyBytesMax) {
      this.refuse(payloadTooLarge);
      return;
    }
    this.#owner.allow(bodyIdleMs);
    for (const part of this.#ahead.splice(0)) this.#pass(sink, part, 0, part.length, false);
    this.takeAll();
    this.#owner.settleReading();
  }

  /** Keeps further body bytes in the input. */
  detach(): void {
    this.#sink = null;
    this.isPaused = false;
    if (this.#owner.phase === Phase.Active) this.#owner.allow(0);
  }

  /** The request or the connection has ended. */
  close(): void {
    this.#sink = null;
    this.isPaused = false;
    if (this.#isBegun) this.#ahead = [];
  }

  /** The client has disconnected: reports it to `collect` and `takePart`. */
  abort(): void {
    const reader = this.#reader;
    this.#reader = null;
    reader?.settle("aborted");
  }

  pause(): void {
    this.isPaused = true;
    this.#owner.allow(0);
    this.#owner.settleReading();
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    if (this.#owner.phase === Phase.Active && !this.framing.isDone) {
      this.#owner.allow(this.#exchange.bodyIdleMs);
    }
    this.#owner.pump();
  }

  /** Delivers all input that the current sink accepts. */
  takeAll(): void {
    const sink = this.#sink;
    const { input } = this.#owner;
    while (input.chunk !== null && this.#sink === sink && this.mayTake) this.take(input.chunk);
  }

  /** Delivers bytes of the input's first chunk to the sink, which must be able to accept them. */
  take(chunk: Buffer): void {
    const { framing } = this;
    const exchange = this.#exchange;
    const { input } = this.#owner;
    const sink = this.#sink!;
    const refusal = framing.take(chunk, input.at, sink.takesWireBytes && !this.#isBegun);
    exchange.bytesIn = framing.size;
    if (refusal !== null) {
      input.drop();
      this.refuse(refusal);
      return;
    }
    if (framing.size > exchange.bodyBytesMax) {
      this.refuse(payloadTooLarge);
      return;
    }
    input.advance(framing.next);
    const { isDone, pieceStart, pieceEnd } = framing;
    this.#owner.allow(isDone ? 0 : exchange.bodyIdleMs);
    if (isDone || pieceEnd > pieceStart) this.#pass(sink, chunk, pieceStart, pieceEnd, isDone);
  }

  /** Discards bytes of the input's first chunk. Returns their number, or -1 if the body is malformed. */
  discard(chunk: Buffer): number {
    const { input } = this.#owner;
    const start = input.at;
    if (this.framing.take(chunk, start, true) !== null) return -1;
    const { next } = this.framing;
    input.advance(next);
    return next - start;
  }

  /** Ends the delivery: the client's fault must be answered, and its connection closed. */
  refuse(refused: Refused): void {
    const sink = this.#sink;
    this.#sink = null;
    this.#owner.allow(0);
    this.#exchange.head.keepAlive = false;
    sink?.onBodyRefused(refused);
  }

  /** At each sweep: true if the client is slower than the server's minimum. Counts only time in which input is accepted. */
  isTooSlow(): boolean {
    const { requestBodyPace, engine } = this.#exchange.host;
    return this.mayTake && this.framing.isTooSlow(requestBodyPace, engine.sweptMs);
  }

  #pass(sink: BodySink, bytes: Buffer, start: number, end: number, isLast: boolean): void {
    const isFramedAnew =
      this.#isBegun && sink.takesWireBytes && this.#exchange.head.framing === Framing.Chunked;
    if (!isFramedAnew) {
      sink.onBody(bytes, start, end, isLast);
      return;
    }
    const framed = frameChunk(bytes.subarray(start, end), isLast);
    sink.onBody(framed, 0, framed.length, isLast);
  }

  #expectUnread(isRead: boolean): void {
    if (isRead || this.#sink !== null) throw new Error("The request body has already been read");
  }

  #invite(): void {
    const { head, socket } = this.#exchange;
    if (this.framing.invite(head.expectContinue)) socket.write(CONTINUE);
  }
}
