// A stream of a session as a connection of an http1 pool: HTTP/1.1 over it, request after request.
import { viewAsBuffer, type UpstreamStream, type UpstreamStreamEvents } from "@platform/http1";
import type { RequestTap } from "../capture/tap.ts";
import { ResetCode, type ResetCodeId } from "../frame/format.ts";
import { COPIED_BYTES_MAX, type Stream, type StreamListener } from "../frame/stream.ts";

/** Why a stream was lost, as the code of a failed attempt. */
export type StreamLoss =
  | "REFUSED"
  | "UNREACHABLE"
  | "TIMED_OUT"
  | "BROKEN"
  | "TLS_FAILED"
  | "OVERLOADED"
  /** The session has ended. */
  | "SESSION_LOST"
  /** The client does not respond. */
  | "SILENT"
  /** The target had closed the connection before any byte of the request was delivered: it may be sent again. */
  | "UNDELIVERED";

export class TunnelStream implements UpstreamStream, StreamListener {
  tap: RequestTap | null = null;
  readonly #stream: Stream;
  readonly #events: UpstreamStreamEvents;
  readonly #onClosed: (stream: TunnelStream) => void;
  /** Bytes written when the last ones were received: what follows belongs to the current request. */
  #writtenAtRead = 0;
  #pieceBytes = 0;
  #isClosed = false;

  /** `onClosed` is called once. */
  constructor(
    stream: Stream,
    events: UpstreamStreamEvents,
    onClosed: (stream: TunnelStream) => void,
  ) {
    this.#stream = stream;
    this.#events = events;
    this.#onClosed = onClosed;
    stream.listener = this;
  }

  get writableLength(): number {
    return this.#stream.writableLength;
  }

  get writableNeedDrain(): boolean {
    return this.#stream.writableNeedDrain;
  }

  /** True while a request has been sent and nothing of its response has arrived. */
  get isAwaiting(): boolean {
    return this.#stream.written > this.#writtenAtRead;
  }

  write(bytes: Uint8Array): boolean {
    this.tap?.onRequestBytes(bytes);
    return this.#stream.write(viewAsBuffer(bytes));
  }

  end(bytes?: Uint8Array): void {
    if (bytes !== undefined && bytes.length > 0) this.write(bytes);
    this.#stream.end();
  }

  destroy(): void {
    this.#stream.reset(ResetCode.Cancelled);
    this.#closeSoon("");
  }

  destroySoon(): void {
    this.#stream.end();
    if (this.#stream.writableLength === 0) this.destroy();
  }

  pause(): void {
    this.#stream.pause();
  }

  resume(): void {
    this.#stream.resume();
  }

  keepReads(): void {
    // Smaller pieces have been copied.
    if (this.#pieceBytes > COPIED_BYTES_MAX) this.#stream.keepReads();
  }

  /** Gives the stream up because of the client. */
  abandon(loss: StreamLoss): void {
    this.#stream.reset(ResetCode.Cancelled);
    this.#close(loss);
  }

  onBytes(bytes: Buffer): void {
    this.#writtenAtRead = this.#stream.written;
    this.#pieceBytes = bytes.length;
    this.tap?.onResponseBytes(bytes);
    this.#events.onBytes(bytes);
  }

  onEnd(delivered: number): void {
    if (this.#wasUndelivered(delivered)) this.abandon("UNDELIVERED");
    else this.#events.onEnd();
  }

  onDrain(): void {
    this.#events.onDrain();
  }

  onReset(code: ResetCodeId, delivered: number | null): void {
    const isUndelivered = delivered !== null && this.#wasUndelivered(delivered);
    const isConnectFailure = code !== ResetCode.Broken && code !== ResetCode.Cancelled;
    this.#close(isUndelivered && !isConnectFailure ? "UNDELIVERED" : nameLoss(code, delivered));
  }

  /** True if nothing of the current request has reached the target, on a stream that has carried others before. */
  #wasUndelivered(delivered: number): boolean {
    return this.isAwaiting && this.#writtenAtRead > 0 && delivered <= this.#writtenAtRead;
  }

  /** Like a socket, which reports its end after the call that caused it. */
  #closeSoon(code: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.tap = null;
    this.#onClosed(this);
    queueMicrotask(() => this.#events.onClose(code));
  }

  #close(code: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.tap = null;
    this.#onClosed(this);
    this.#events.onClose(code);
  }
}

function nameLoss(code: ResetCodeId, delivered: number | null): StreamLoss {
  switch (code) {
    case ResetCode.Refused:
      return "REFUSED";
    case ResetCode.Unreachable:
    case ResetCode.UnknownTunnel:
      return "UNREACHABLE";
    case ResetCode.TimedOut:
      return "TIMED_OUT";
    case ResetCode.TlsFailed:
      return "TLS_FAILED";
    case ResetCode.Overloaded:
      return "OVERLOADED";
    case ResetCode.Broken:
    case ResetCode.OverCredit:
      return "BROKEN";
    case ResetCode.Cancelled:
      return delivered === null ? "SESSION_LOST" : "BROKEN";
    default:
      return code satisfies never;
  }
}
