// Delivers the body of the current request from the connection's input to a sink.
import type { BodyReceiver, ReadBodyCallback } from "../contract/exchange.ts";
import type { BodySink, ForwardClient } from "../forward/client.ts";
import { Framing } from "../parse/index.ts";
import { payloadTooLarge, type Refused } from "../write/refused.ts";
import { BodyCollector, ReceiverSink } from "./body.ts";
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
  #collector: BodyCollector<U> | null = null;

  constructor(exchange: BodyExchange<U>, owner: ExchangeOwner) {
    this.#exchange = exchange;
    this.#owner = owner;
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
    this.#collector = new BodyCollector(
      exchange,
      bytesMax,
      done,
      (body) => {
        this.#collector = null;
        exchange.collected = body;
      },
      (refused) => {
        this.#collector = null;
        exchange.refuseBody(refused);
      },
    );
    this.attach(this.#collector);
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
    this.takeAll();
    this.#owner.settleReading();
  }

  /** Keeps further body bytes in the input. */
  detach(): void {
    this.close();
    if (this.#owner.phase === Phase.Active) this.#owner.allow(0);
  }

  /** The request or the connection has ended. */
  close(): void {
    this.#sink = null;
    this.isPaused = false;
  }

  /** The client has disconnected: reports it to `collect`. */
  abort(): void {
    const collector = this.#collector;
    this.#collector = null;
    collector?.settle("aborted");
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
    const refusal = framing.take(chunk, input.at, sink.takesWireBytes);
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
    if (isDone || pieceEnd > pieceStart) sink.onBody(chunk, pieceStart, pieceEnd, isDone);
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

  #expectUnread(isRead: boolean): void {
    if (isRead || this.#sink !== null) throw new Error("The request body has already been read");
  }

  #invite(): void {
    const { head, socket } = this.#exchange;
    if (this.framing.invite(head.expectContinue)) socket.write(CONTINUE);
  }
}
