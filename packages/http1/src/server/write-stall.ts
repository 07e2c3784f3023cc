// Notices a client that does not read what it was sent.
import type { Socket } from "node:net";

import type { Engine } from "../engine/engine.ts";

const NEVER = Infinity;

/** Watches what a socket holds back; one per connection. */
export class WriteStall {
  readonly #socket: Socket;
  readonly #engine: Engine;
  readonly #timeoutMs: number;
  #heldBytes = 0;
  #deadlineMs = NEVER;

  constructor(socket: Socket, engine: Engine, timeoutMs: number) {
    this.#socket = socket;
    this.#engine = engine;
    this.#timeoutMs = timeoutMs;
  }

  /** The socket may hold bytes back now. */
  watch(): void {
    const { writableLength } = this.#socket;
    if (writableLength === 0 || this.#deadlineMs !== NEVER) return;
    this.#heldBytes = writableLength;
    this.#deadlineMs = this.#engine.deadlineIn(this.#timeoutMs);
  }

  /** The socket holds nothing back any more. */
  clear(): void {
    this.#deadlineMs = NEVER;
  }

  /** True once nothing of it has been read for too long. */
  sweep(nowMs: number): boolean {
    if (this.#deadlineMs === NEVER) return false;
    const { writableLength } = this.#socket;
    if (writableLength === 0) {
      this.#deadlineMs = NEVER;
    } else if (writableLength !== this.#heldBytes) {
      this.#heldBytes = writableLength;
      this.#deadlineMs = this.#engine.deadlineIn(this.#timeoutMs);
    }
    return nowMs >= this.#deadlineMs;
  }
}
