// What flows through a tunnel after an upgrade.
import type { Tunnel } from "./contract.ts";

/** How long one direction may stay open after the other has ended. */
const HALF_CLOSED_MS = 30_000;

/** The counts of one tunnel. */
export class TunnelFlow {
  /** From the client. */
  bytesIn = 0;
  /** To the client. */
  bytesOut: number;
  #isHalfClosed = false;
  readonly #idleMs: number;

  constructor(idleMs: number, bytesOut: number) {
    this.#idleMs = idleMs;
    this.bytesOut = bytesOut;
  }

  /** How long it may be silent from now on; 0: for ever. */
  get silenceMs(): number {
    return this.#isHalfClosed ? HALF_CLOSED_MS : this.#idleMs;
  }

  /** One side has sent its FIN. */
  noteEnd(): void {
    this.#isHalfClosed = true;
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
}
