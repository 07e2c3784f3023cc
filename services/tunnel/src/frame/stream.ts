// One stream of a session: credit in both directions, queued bytes, half-closes.
import { CREDIT_BYTES_MAX, INITIAL_CREDIT_BYTES, ResetCode, type ResetCodeId } from "./format.ts";
import type { Holder, ReceiveBudget } from "./receive-budget.ts";
import { ReceiveWindow } from "./receive-window.ts";

/** Writes up to this size are copied; larger ones are referenced until they are sent. */
export const COPIED_BYTES_MAX = 16_384;
/** Queued bytes from which on writers should wait for `onDrain`. */
const HIGH_WATER_BYTES = 65_536;

/** Receives the events of a stream. */
export interface StreamListener {
  /** Received bytes, which may be kept; see `Stream.keepReads`. */
  onBytes(bytes: Buffer): void;
  /** The peer sends no more bytes. `delivered`: bytes of this stream that its destination was handed. */
  onEnd(delivered: number): void;
  /** Queued bytes have been sent after `write` returned false. */
  onDrain(): void;
  /**
   * The stream is over, once: the peer reset it (`delivered` as in `onEnd`), or the session was lost (null). Not called
   * after `reset` by the owner.
   */
  onReset(code: ResetCodeId, delivered: number | null): void;
}

/** The session of a stream, as seen by the stream. */
export interface StreamHost {
  readonly budget: ReceiveBudget;
  /** Bytes that the session's socket has not accepted yet. */
  readonly unsentBytes: number;
  /** Shortest recent round trip in milliseconds. */
  readonly roundTripMs: number;
  now(): number;
  /** Sends as much of `bytes` as possible now, at most `bytesMax`; returns how much. */
  sendData(stream: Stream, bytes: Buffer, bytesMax: number): number;
  sendEnd(stream: Stream, delivered: number): void;
  sendReset(stream: Stream, code: ResetCodeId, delivered: number): void;
  sendWindow(stream: Stream, bytes: number): void;
  /** The stream has queued bytes and credit: it takes part in the round robin. */
  addReady(stream: Stream): void;
  /** The stream is over. `lateBytes`: bytes that the peer may have sent before it learns of it. */
  forget(stream: Stream, lateBytes: number): void;
  /** The bytes of the current read stay referenced. */
  keepReads(): void;
}

const UNHEARD: StreamListener = {
  onBytes: () => {},
  onEnd: () => {},
  onDrain: () => {},
  onReset: () => {},
};

/**
 * Sending: `written = sent + queued`; `sent` never exceeds the credit that the peer has granted.
 *
 * Receiving: the peer may send `credit` bytes more. Bytes go to the listener at once, or are held while it pauses; credit
 * is returned only for bytes that the listener has accepted, so held bytes never exceed the window:
 *
 * ```text
 *   window = credit (may still arrive) + held (here, not accepted) + accepted (accepted, not yet granted again)
 * ```
 */
export class Stream implements Holder {
  readonly id: number;
  listener: StreamListener = UNHEARD;
  /** Bytes passed to `write`. */
  written = 0;
  /** Bytes passed to the listener. */
  received = 0;
  /** Bytes that the destination was handed, reported with END and RESET; the owner of a destination counts them. */
  delivered = 0;
  isClosed = false;
  /** In the session's round robin. */
  isReady = false;
  readonly #host: StreamHost;
  readonly #queue: Buffer[] = [];
  #queueAt = 0;
  #queued = 0;
  #sendCredit = INITIAL_CREDIT_BYTES;
  #needsDrain = false;
  #isEnding = false;
  #isEnded = false;
  #peerEnded = false;
  #peerDelivered = 0;
  readonly #held: Buffer[] = [];
  #heldBytes = 0;
  #isPaused = false;
  #isDelivering = false;
  #credit = INITIAL_CREDIT_BYTES;
  #accepted = 0;
  readonly #window = new ReceiveWindow();

  constructor(host: StreamHost, id: number) {
    this.#host = host;
    this.id = id;
  }

  /** Bytes that were written and not yet given to the session's socket. */
  get writableLength(): number {
    return this.#queued;
  }

  /** True from a full queue until `onDrain`. */
  get writableNeedDrain(): boolean {
    return this.#needsDrain;
  }

  /** True if written bytes may still be referenced: their memory must not be reused. */
  get isRetaining(): boolean {
    return this.#queued > 0 || this.#host.unsentBytes > 0;
  }

  /** Sends bytes; on false, wait for `onDrain`. Up to 16 KiB are copied, more stay referenced while `isRetaining`. */
  write(bytes: Buffer): boolean {
    if (this.isClosed || this.#isEnding) return true;
    this.written += bytes.length;
    let sent = 0;
    if (this.#queued === 0 && this.#sendCredit > 0) {
      sent = this.#host.sendData(this, bytes, this.#sendCredit);
      this.#sendCredit -= sent;
    }
    if (sent < bytes.length) this.#enqueue(bytes, sent);
    return !this.#needsDrain;
  }

  /** Sends END after the queued bytes. */
  end(): void {
    if (this.isClosed || this.#isEnding) return;
    this.#isEnding = true;
    if (this.#queued === 0) this.#sendEnd();
  }

  /** Drops the stream in both directions. No event follows. */
  reset(code: ResetCodeId): void {
    if (this.isClosed) return;
    this.#host.sendReset(this, code, this.delivered);
    this.#close();
  }

  /** Holds further received bytes. */
  pause(): void {
    this.#isPaused = true;
  }

  /** Passes held bytes on, then grants credit again. */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#deliver();
  }

  /** For listeners that keep the bytes of the current `onBytes` call, or a socket that does. */
  keepReads(): void {
    this.#host.keepReads();
  }

  dropForMemory(): void {
    this.#breakOff(ResetCode.Overloaded);
  }

  /** Sends queued bytes, at most `bytesMax` and as the credit allows; true if the stream can send more. */
  sendQueued(bytesMax: number): boolean {
    const first = this.#queue[0];
    if (first === undefined || this.isClosed) return false;
    const rest = this.#queueAt === 0 ? first : first.subarray(this.#queueAt);
    const sent = this.#host.sendData(this, rest, Math.min(bytesMax, this.#sendCredit));
    this.#sendCredit -= sent;
    this.#queued -= sent;
    if (sent === rest.length) {
      this.#queue.shift();
      this.#queueAt = 0;
    } else this.#queueAt += sent;
    if (this.#queued === 0) this.#settleQueue();
    return this.#queued > 0 && this.#sendCredit > 0;
  }

  /** The peer grants credit; false if it exceeds the maximum. */
  onWindow(bytes: number): boolean {
    this.#sendCredit += bytes;
    if (this.#sendCredit > CREDIT_BYTES_MAX) return false;
    if (this.#queued > 0) this.#host.addReady(this);
    return true;
  }

  /** Received `bytes[start, end)`; `isOwn` if the bytes may be kept without a copy. */
  onData(bytes: Buffer, start: number, end: number, isOwn: boolean): void {
    const size = end - start;
    this.#credit -= size;
    if (this.#credit < 0 || this.#peerEnded) {
      this.#breakOff(ResetCode.OverCredit);
      return;
    }
    const mustCopy = !isOwn || size <= COPIED_BYTES_MAX;
    const piece = mustCopy ? copyRange(bytes, start, end) : bytes.subarray(start, end);
    if (!this.#isPaused && this.#heldBytes === 0) {
      this.received += size;
      this.listener.onBytes(piece);
      this.#accept(size);
      return;
    }
    if (!mustCopy) this.#host.keepReads();
    this.#held.push(piece);
    this.#heldBytes += size;
    this.#host.budget.hold(this, size);
  }

  /** The peer sent END. */
  onEnd(delivered: number): void {
    if (this.#peerEnded) return;
    this.#peerEnded = true;
    this.#peerDelivered = delivered;
    if (this.#heldBytes === 0) this.#endReceiving();
  }

  /** The peer sent RESET, or the session was lost. */
  onReset(code: ResetCodeId, delivered: number | null): void {
    if (this.isClosed) return;
    // The peer sends nothing after RESET.
    this.#peerEnded = true;
    this.#close();
    this.listener.onReset(code, delivered);
  }

  #enqueue(bytes: Buffer, sent: number): void {
    const rest = sent === 0 ? bytes : bytes.subarray(sent);
    this.#queue.push(rest.length <= COPIED_BYTES_MAX ? Buffer.from(rest) : rest);
    this.#queued += rest.length;
    if (this.#queued >= HIGH_WATER_BYTES) this.#needsDrain = true;
    if (this.#sendCredit > 0) this.#host.addReady(this);
  }

  #settleQueue(): void {
    if (this.#isEnding) this.#sendEnd();
    if (!this.#needsDrain) return;
    this.#needsDrain = false;
    this.listener.onDrain();
  }

  #sendEnd(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#host.sendEnd(this, this.delivered);
    this.#settleEnds();
  }

  #endReceiving(): void {
    this.listener.onEnd(this.#peerDelivered);
    this.#settleEnds();
  }

  #settleEnds(): void {
    if (this.#isEnded && this.#peerEnded && this.#heldBytes === 0) this.#close();
  }

  #accept(size: number): void {
    this.#accepted += size;
    // A listener that paused holds this piece in its destination's buffer.
    if (!this.#isPaused) this.#grant();
  }

  /** Returns accepted bytes as credit once they are half of the window. */
  #grant(): void {
    if (this.isClosed || this.#peerEnded || this.#accepted < this.#window.bytes / 2) return;
    const { budget, roundTripMs } = this.#host;
    const conditions = { nowMs: this.#host.now(), roundTripMs, mayGrow: !budget.isTight };
    const grant = this.#accepted + this.#window.adapt(this.#accepted, conditions);
    this.#accepted = 0;
    if (grant === 0) return;
    this.#credit += grant;
    this.#host.sendWindow(this, grant);
  }

  #deliver(): void {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    while (!this.#isPaused && this.#held.length > 0 && !this.isClosed) {
      const piece = this.#held.shift()!;
      this.#heldBytes -= piece.length;
      this.#host.budget.release(this, piece.length, this.#heldBytes === 0);
      this.received += piece.length;
      this.listener.onBytes(piece);
      this.#accepted += piece.length;
    }
    this.#isDelivering = false;
    if (this.isClosed || this.#isPaused) return;
    if (this.#peerEnded) this.#endReceiving();
    else this.#grant();
  }

  /** Drops the stream because of the peer, or for memory: the listener is told. */
  #breakOff(code: ResetCodeId): void {
    if (this.isClosed) return;
    this.#host.sendReset(this, code, this.delivered);
    this.#close();
    this.listener.onReset(code, null);
  }

  #close(): void {
    this.isClosed = true;
    const held = this.#heldBytes;
    this.#held.length = 0;
    this.#heldBytes = 0;
    if (held > 0) this.#host.budget.release(this, held, true);
    this.#queue.length = 0;
    this.#queued = 0;
    this.#host.forget(this, this.#peerEnded ? 0 : Math.max(0, this.#credit));
  }
}

function copyRange(bytes: Buffer, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafe(end - start);
  bytes.copy(copy, 0, start, end);
  return copy;
}
