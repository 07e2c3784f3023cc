// Sinks of request bodies: a handler's receiver, a collector of whole bodies, and a reader of parts.
import type { BodySink } from "../forward/client.ts";
import type {
  BodyReceiver,
  Exchange,
  ReadBodyCallback,
  ReadPartCallback,
} from "../contract/exchange.ts";
import type { Refused } from "../write/refused.ts";

/** Passes data to a handler's receiver. */
export class ReceiverSink implements BodySink {
  readonly takesWireBytes = false;
  readonly keepsPieces: boolean;
  readonly #receiver: BodyReceiver;

  constructor(receiver: BodyReceiver) {
    this.#receiver = receiver;
    this.keepsPieces = receiver.keepsPieces !== false;
  }

  onBody(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    this.#receiver.onBody(bytes, start, end, isLast);
  }

  onBodyRefused(refused: Refused): void {
    this.#receiver.onBodyRefused(refused);
  }
}

/** Collects a body up to a maximum size. */
export class BodyCollector<U> implements BodySink {
  readonly takesWireBytes = false;
  readonly #exchange: Exchange<U>;
  readonly #bytesMax: number;
  readonly #pieces: Buffer[] = [];
  readonly #onCollected: (body: Buffer) => void;
  readonly #onRefused: (refused: Refused) => void;
  #done: ReadBodyCallback<U> | null;
  #size = 0;

  constructor(
    exchange: Exchange<U>,
    bytesMax: number,
    done: ReadBodyCallback<U>,
    onCollected: (body: Buffer) => void,
    onRefused: (refused: Refused) => void,
  ) {
    this.#exchange = exchange;
    this.#bytesMax = bytesMax;
    this.#done = done;
    this.#onCollected = onCollected;
    this.#onRefused = onRefused;
  }

  onBody(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#done === null) return;
    this.#size += end - start;
    if (this.#size > this.#bytesMax) {
      this.settle("too-large");
      return;
    }
    if (end > start) this.#pieces.push(bytes.subarray(start, end));
    if (!isLast) return;
    const body = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    this.#onCollected(body);
    this.settle("complete", body);
  }

  onBodyRefused(refused: Refused): void {
    if (refused.status === 413) this.settle("too-large");
    else {
      this.#done = null;
      this.#onRefused(refused);
    }
  }

  /** Calls `done` once. */
  settle(outcome: "complete" | "too-large" | "aborted", body: Buffer = Buffer.alloc(0)): void {
    const done = this.#done;
    this.#done = null;
    done?.(this.#exchange, outcome, body);
  }
}

/** Takes the next part of a body. */
export class PartReader<U> implements BodySink {
  readonly takesWireBytes = false;
  readonly #exchange: Exchange<U>;
  readonly #bytesMin: number;
  readonly #pieces: Buffer[] = [];
  readonly #onPart: (part: Buffer, isLast: boolean) => void;
  readonly #onRefused: (refused: Refused) => void;
  #done: ReadPartCallback<U> | null;
  #size = 0;

  /** `onPart` is called before `done`. */
  constructor(
    exchange: Exchange<U>,
    bytesMin: number,
    done: ReadPartCallback<U>,
    hooks: {
      readonly onPart: (part: Buffer, isLast: boolean) => void;
      readonly onRefused: (refused: Refused) => void;
    },
  ) {
    this.#exchange = exchange;
    this.#bytesMin = bytesMin;
    this.#done = done;
    this.#onPart = hooks.onPart;
    this.#onRefused = hooks.onRefused;
  }

  onBody(bytes: Buffer, start: number, end: number, isLast: boolean): void {
    if (this.#done === null) return;
    this.#size += end - start;
    if (end > start) this.#pieces.push(bytes.subarray(start, end));
    if (!isLast && this.#size < this.#bytesMin) return;
    const part = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    this.#onPart(part, isLast);
    this.settle(isLast ? "complete" : "part", part);
  }

  onBodyRefused(refused: Refused): void {
    if (refused.status === 413) this.settle("too-large");
    else {
      this.#done = null;
      this.#onRefused(refused);
    }
  }

  /** Calls `done` once. */
  settle(
    outcome: "part" | "complete" | "too-large" | "aborted",
    part: Buffer = Buffer.alloc(0),
  ): void {
    const done = this.#done;
    this.#done = null;
    done?.(this.#exchange, outcome, part);
  }
}
