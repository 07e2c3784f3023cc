// Relays bytes between client and upstream after an upgrade, and closes WebSockets gracefully.
import type { ForwardClient } from "./client.ts";
import type { UpstreamConnection, UpstreamUser } from "../upstream/connection.ts";
import { relayToClient } from "./relay.ts";
import type { Tunnel } from "../contract/forward.ts";
import { CLOSE_FROM_CLIENT, CLOSE_FROM_SERVER, FrameScan } from "./websocket-frames.ts";

const NEVER = Infinity;
/** Idle timeout of one direction after the other has ended. */
const HALF_CLOSED_MS = 30_000;
/** Timeout for both sides when the gateway closes a WebSocket. */
const CLOSING_MS = 10_000;

/** One direction. */
class Direction {
  /** The frame scanner of a WebSocket. */
  readonly frames: FrameScan | null;
  bytes = 0;
  /** A Close frame was sent to its receiver: nothing more is relayed. */
  isClosed = false;

  constructor(isWebSocket: boolean) {
    this.frames = isWebSocket ? new FrameScan() : null;
  }

  /** Counts `bytes[start, end)` and returns the end of the bytes to relay. */
  take(bytes: Buffer, start: number, end: number, isClosing: boolean): number {
    let until = end;
    if (this.isClosed) until = start;
    else if (this.frames !== null && isClosing) {
      until = this.frames.takeToFrameEnd(bytes, start, end);
    } else this.frames?.take(bytes, start, end);
    this.bytes += until - start;
    return until;
  }

  /** True if a Close frame can be inserted now, or one has passed. */
  get canClose(): boolean {
    return !this.isClosed && this.frames !== null && this.frames.isBetweenFrames;
  }
}

/** A connected pair of sockets. */
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

  /** `idleMs` 0 disables the idle timeout; `onOver` is called once, before the client's socket is closed. */
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

  /** Starts after the 101, which was written together with `bytes[at, length)`. */
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

  /** The tunnel for the observer. */
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

  /** Pauses the upstream while the client does not read. */
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

  /** Forwards the client's FIN; the other direction stays open for a while. */
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
    // After a Close frame the client may still respond.
    if (!this.#fromUpstream.isClosed) this.end(code !== "");
  }

  /** Closes a WebSocket with 1001 to both sides after the current frames. False for other tunnels. */
  endGracefully(): boolean {
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
