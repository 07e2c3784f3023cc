// What flows between client and upstream after an upgrade, and how a WebSocket is taken leave of.
import type { ForwardClient } from "./client.ts";
import type { UpstreamConnection, UpstreamUser } from "../upstream/connection.ts";
import { relayToClient } from "./answer-content.ts";
import type { Tunnel } from "../contract/forward.ts";
import { CLOSE_FROM_CLIENT, CLOSE_FROM_SERVER, FrameScan } from "./websocket-frames.ts";

const NEVER = Infinity;
/** How long one direction may stay open after the other has ended. */
const HALF_CLOSED_MS = 30_000;
/** How long both sides may take once a WebSocket is being closed in the gateway's name. */
const CLOSING_MS = 10_000;

/** One direction. */
class Direction {
  /** Its frames, where it is a WebSocket's. */
  readonly frames: FrameScan | null;
  bytes = 0;
  /** Its receiver was told that it is over: nothing more is passed on. */
  isClosed = false;

  constructor(isWebSocket: boolean) {
    this.frames = isWebSocket ? new FrameScan() : null;
  }

  /** Counts `bytes[start, end)` and gives where that ends which is still to be passed on. */
  take(bytes: Buffer, start: number, end: number, isClosing: boolean): number {
    let until = end;
    if (this.isClosed) until = start;
    else if (this.frames !== null && isClosing) {
      until = this.frames.takeToFrameEnd(bytes, start, end);
    } else this.frames?.take(bytes, start, end);
    this.bytes += until - start;
    return until;
  }

  /** Whether a Close frame may be put here now, or one has passed. */
  get canClose(): boolean {
    return !this.isClosed && this.frames !== null && this.frames.isBetweenFrames;
  }
}

/** A spliced pair of sockets. */
export class TunnelFlow<U> implements UpstreamUser {
  readonly #exchange: ForwardClient<U>;
  readonly #upstream: UpstreamConnection;
  readonly #idleMs: number;
  readonly #onOver: () => void;
  readonly #fromClient: Direction;
  readonly #fromUpstream: Direction;
  #deadlineMs = NEVER;
  #isUpstreamPaused = false;
  #isHalfClosed = false;
  #isClosing = false;
  #isOver = false;

  /** `idleMs` 0 lets it be silent for ever; `onOver` is called once, before the client's socket is closed. */
  constructor(
    exchange: ForwardClient<U>,
    upstream: UpstreamConnection,
    idleMs: number,
    isWebSocket: boolean,
    onOver: () => void,
  ) {
    this.#exchange = exchange;
    this.#upstream = upstream;
    this.#idleMs = idleMs;
    this.#onOver = onOver;
    this.#fromClient = new Direction(isWebSocket);
    this.#fromUpstream = new Direction(isWebSocket);
  }

  /** Takes over from the 101 on, whose write had `bytes[at, length)` behind it. */
  begin(bytes: Buffer, at: number, length: number): void {
    this.#fromUpstream.take(bytes, at, length, false);
    this.#upstream.ownReads();
    this.#upstream.user = this;
    this.#touch();
  }

  get bytesIn(): number {
    return this.#fromClient.bytes;
  }

  get bytesOut(): number {
    return this.#fromUpstream.bytes;
  }

  /** What the observer is given. */
  present(): Tunnel {
    const flow = (): TunnelFlow<U> => this;
    return {
      get bytesIn() {
        return flow().bytesIn;
      },
      get bytesOut() {
        return flow().bytesOut;
      },
      close: () => this.end(true),
    };
  }

  onClientBytes(bytes: Buffer, start: number): void {
    const { socket } = this.#upstream;
    const end = this.#fromClient.take(bytes, start, bytes.length, this.#isClosing);
    if (end === start) return;
    this.#touch();
    socket.write(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end));
    if (socket.writableNeedDrain) this.#exchange.pauseBody();
    if (this.#isClosing) this.#sendCloseFrames();
  }

  onUpstreamBytes(bytes: Buffer, length: number): void {
    const end = this.#fromUpstream.take(bytes, 0, length, this.#isClosing);
    if (end === 0) return;
    this.#touch();
    relayToClient(this.#exchange, this.#upstream, bytes, 0, end);
    this.settleBackPressure();
    if (this.#isClosing) this.#sendCloseFrames();
  }

  /** Reads no faster than the client does. */
  settleBackPressure(): void {
    if (this.#isOver || this.#isUpstreamPaused || !this.#exchange.socket.writableNeedDrain) return;
    this.#isUpstreamPaused = true;
    this.#upstream.socket.pause();
  }

  onClientDrain(): void {
    if (!this.#isUpstreamPaused) return;
    this.#isUpstreamPaused = false;
    this.#touch();
    this.#upstream.socket.resume();
  }

  onUpstreamDrain(): void {
    this.#exchange.resumeBody();
  }

  /** The client's FIN is passed on; the other direction stays open for a while. */
  onClientEnd(): void {
    if (this.#isClosing) {
      this.end(false);
      return;
    }
    this.#isHalfClosed = true;
    this.#touch();
    this.#upstream.socket.end();
  }

  onUpstreamEnd(): void {
    this.#isHalfClosed = true;
    this.#touch();
    this.#exchange.socket.end();
  }

  onUpstreamClosed(code: string): void {
    // A client that was told that it is over may still answer.
    if (!this.#fromUpstream.isClosed) this.end(code !== "");
  }

  /** Closes a WebSocket with 1001 to both sides, behind the frames that are under way. False: it is none. */
  endInOrder(): boolean {
    if (this.#fromUpstream.frames === null) return false;
    if (this.#isClosing) return true;
    this.#isClosing = true;
    this.#deadlineMs = this.#exchange.host.engine.deadlineIn(CLOSING_MS);
    this.#sendCloseFrames();
    return true;
  }

  /** Closes both sides. */
  end(isAbrupt: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const exchange = this.#exchange;
    const upstream = this.#upstream;
    upstream.user = null;
    upstream.dead = true;
    if (isAbrupt) upstream.destroy();
    else upstream.socket.destroySoon();
    this.#onOver();
    if (isAbrupt) exchange.destroy();
    else exchange.socket.destroySoon();
  }

  sweep(nowMs: number): void {
    if (nowMs >= this.#deadlineMs) this.end(true);
  }

  #sendCloseFrames(): void {
    if (this.#fromClient.canClose) {
      this.#fromClient.isClosed = true;
      this.#upstream.socket.end(chooseFarewell(this.#fromClient, CLOSE_FROM_CLIENT));
    }
    if (this.#fromUpstream.canClose) {
      this.#fromUpstream.isClosed = true;
      this.#exchange.socket.end(chooseFarewell(this.#fromUpstream, CLOSE_FROM_SERVER));
    }
  }

  #touch(): void {
    if (this.#isClosing) return;
    const silenceMs = this.#isHalfClosed ? HALF_CLOSED_MS : this.#idleMs;
    this.#deadlineMs = this.#exchange.host.engine.deadlineIn(silenceMs);
  }
}

// One Close frame is enough (RFC 6455 §5.5.1).
function chooseFarewell({ frames }: Direction, frame: Buffer): Buffer {
  return frames!.sawClose ? Buffer.alloc(0) : frame;
}
