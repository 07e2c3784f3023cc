// What flows through a tunnel after an upgrade, and how a WebSocket in it is taken leave of.
import type { Tunnel } from "./contract.ts";
import { CLOSE_FROM_CLIENT, CLOSE_FROM_SERVER, FrameScan } from "./websocket-frames.ts";

/** How long one direction may stay open after the other has ended. */
const HALF_CLOSED_MS = 30_000;

/** Bytes to send before a direction is ended. */
export interface Farewell {
  /** For the client: a Close frame, or nothing where one has passed already. Null: not yet. */
  readonly toClient: Buffer | null;
  readonly toUpstream: Buffer | null;
}

const NO_BYTES = Buffer.alloc(0);

/** The counts of one tunnel. */
export class TunnelFlow {
  /** From the client. */
  bytesIn = 0;
  /** To the client. */
  bytesOut = 0;
  /** The tunnel is being ended in order: what still comes is dropped once its receiver has been told. */
  isClosing = false;
  #isHalfClosed = false;
  #toldClient = false;
  #toldUpstream = false;
  readonly #idleMs: number;
  readonly #fromClient: FrameScan | null;
  readonly #fromUpstream: FrameScan | null;

  constructor(idleMs: number, isWebSocket: boolean) {
    this.#idleMs = idleMs;
    this.#fromClient = isWebSocket ? new FrameScan() : null;
    this.#fromUpstream = isWebSocket ? new FrameScan() : null;
  }

  /** How long it may be silent from now on; 0: for ever. */
  get silenceMs(): number {
    return this.#isHalfClosed ? HALF_CLOSED_MS : this.#idleMs;
  }

  /** Whether it can be ended in order at all. */
  get isWebSocket(): boolean {
    return this.#fromUpstream !== null;
  }

  /** The client was told that it is over: it may still answer. */
  get hasToldClient(): boolean {
    return this.#toldClient;
  }

  /** One side has sent its FIN. */
  noteEnd(): void {
    this.#isHalfClosed = true;
  }

  /** Takes what the client sent, and gives where that ends which the upstream still gets. */
  takeInput(bytes: Buffer, start: number): number {
    const end = this.#toldUpstream
      ? start
      : takeFrames(this.#fromClient, bytes, start, bytes.length, this.isClosing);
    this.bytesIn += end - start;
    return end;
  }

  /** Takes what the upstream sent, and gives where that ends which the client still gets. */
  takeOutput(bytes: Buffer, start: number, length: number): number {
    const end = this.#toldClient
      ? start
      : takeFrames(this.#fromUpstream, bytes, start, length, this.isClosing);
    this.bytesOut += end - start;
    return end;
  }

  /** What has to be sent now to end a WebSocket; each part is given once. */
  takeFarewell(): Farewell {
    return { toClient: this.#tellClient(), toUpstream: this.#tellUpstream() };
  }

  /** What the observer is given. */
  present(close: () => void): Tunnel {
    const count = (): TunnelFlow => this;
    return {
      get bytesIn() {
        return count().bytesIn;
      },
      get bytesOut() {
        return count().bytesOut;
      },
      close,
    };
  }

  #tellClient(): Buffer | null {
    const frames = this.#fromUpstream!;
    if (this.#toldClient || !frames.isBetweenFrames) return null;
    this.#toldClient = true;
    return frames.sawClose ? NO_BYTES : CLOSE_FROM_SERVER;
  }

  #tellUpstream(): Buffer | null {
    const frames = this.#fromClient!;
    if (this.#toldUpstream || !frames.isBetweenFrames) return null;
    this.#toldUpstream = true;
    return frames.sawClose ? NO_BYTES : CLOSE_FROM_CLIENT;
  }
}

function takeFrames(
  frames: FrameScan | null,
  bytes: Buffer,
  start: number,
  end: number,
  isClosing: boolean,
): number {
  if (frames === null) return end;
  if (isClosing) return frames.takeToFrameEnd(bytes, start, end);
  frames.take(bytes, start, end);
  return end;
}
