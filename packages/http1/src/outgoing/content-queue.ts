// The content of a response on its way to its reader: straight into the reader's memory, or in pieces.
import type { UpstreamConnection } from "../upstream/connection.ts";
import { OutgoingError, type OutgoingFailure, type OutgoingRequest } from "./outgoing-call.ts";

/** Pieces that wait for their reader: at this size no more is received. */
const QUEUED_BYTES_MAX = 262_144;
/** At most so much is received by one call of the system, so that a large content does not block the thread. */
const READ_BYTES_MAX = 262_144;

/** Callbacks of a queue. */
export interface ContentOwner {
  /** A reader begins or stops to wait for the server. */
  onWaiting(isWaiting: boolean): void;
  /** The reader stops before the end. */
  onAbandoned(kind: OutgoingFailure): void;
}

/** Content that has been received and not read; it has one reader. */
export class ContentQueue {
  readonly #owner: ContentOwner;
  #connection: UpstreamConnection | null;
  #pieces: Buffer[] = [];
  #queuedBytes = 0;
  #isPaused = false;
  readonly #pace: OutgoingRequest["pace"];
  /** The next piece waits for a promise of `pace`. */
  #isResting = false;
  #isComplete = false;
  #failure: OutgoingError | null = null;
  readonly #memory: Buffer | null;
  #target: Buffer | null;
  #targetAt = 0;
  #remaining: number;
  #wake: (() => void) | null = null;

  /**
   * `length` is that of the content, -1 if it is not declared; `memory` receives all of it, if it is not null; `pace` is that
   * of the request.
   */
  constructor(
    owner: ContentOwner,
    connection: UpstreamConnection,
    length: number,
    memory: Buffer | null,
    pace?: OutgoingRequest["pace"],
  ) {
    this.#pace = pace;
    this.#owner = owner;
    this.#connection = connection;
    this.#remaining = length;
    this.#memory = memory;
    this.#target = memory;
  }

  /** Bytes that are still to come; -1 if unknown. */
  get remaining(): number {
    return this.#remaining;
  }

  /** Takes `bytes[start, end)` from the connection. */
  add(bytes: Buffer, start: number, end: number): void {
    const count = end - start;
    if (this.#remaining !== -1) this.#remaining -= count;
    if (this.#target !== null) {
      this.#fill(this.#target, bytes, start, end);
      this.#rest(count);
      return;
    }
    if (count === 0) return;
    this.#rest(count);
    this.#pieces.push(this.#connection!.keepBytes(bytes, start, end));
    this.#queuedBytes += count;
    if (this.#queuedBytes >= QUEUED_BYTES_MAX) this.#pause();
    this.#settle();
  }

  /** The content is complete; the connection is no longer used. */
  complete(): void {
    this.#isComplete = true;
    this.#leave();
  }

  fail(error: OutgoingError): void {
    if (this.#isComplete) return;
    this.#failure ??= error;
    this.#leave();
  }

  async readInto(target: Buffer): Promise<number> {
    if (this.#memory !== null) {
      const whole = await this.readAll(target.length);
      return this.#memory === target ? whole.length : whole.copy(target);
    }
    for (const piece of this.#pieces.splice(0)) this.#fill(target, piece, 0, piece.length);
    this.#queuedBytes = 0;
    this.#target = target;
    this.#resume();
    this.#readDirectly();
    while (!this.#isOver()) await this.#wait();
    this.#target = null;
    return this.#targetAt;
  }

  async readAll(bytesMax: number): Promise<Buffer> {
    const received = this.#memory === null ? this.#queuedBytes : this.#targetAt;
    const length = this.#remaining === -1 ? -1 : received + this.#remaining;
    if (length > bytesMax) throw this.#abandon("content-too-large");
    if (this.#memory !== null) {
      while (!this.#isOver()) await this.#wait();
      return this.#memory.subarray(0, this.#targetAt);
    }
    if (length !== -1) {
      const whole = Buffer.allocUnsafe(length);
      return whole.subarray(0, await this.readInto(whole));
    }
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of this.chunks()) {
      bytes += piece.length;
      if (bytes > bytesMax) throw this.#abandon("content-too-large");
      pieces.push(piece);
    }
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, bytes);
  }

  async *chunks(): AsyncGenerator<Buffer, void, undefined> {
    if (this.#memory !== null) {
      const whole = await this.readAll(this.#memory.length);
      if (whole.length > 0) yield whole;
      return;
    }
    try {
      for (;;) {
        const piece = this.#pieces.shift();
        if (piece !== undefined) {
          this.#queuedBytes -= piece.length;
          if (this.#queuedBytes < QUEUED_BYTES_MAX / 2) this.#resume();
          yield piece;
        } else if (this.#isOver()) return;
        else await this.#wait();
      }
    } finally {
      if (!this.#isComplete) this.#abandon("destroyed");
    }
  }

  // All bytes that were received before a failure are read first.
  #isOver(): boolean {
    if (this.#failure !== null) throw this.#failure;
    return this.#isComplete;
  }

  #abandon(kind: OutgoingFailure): OutgoingError {
    this.#failure ??= new OutgoingError(kind);
    this.#owner.onAbandoned(kind);
    return this.#failure;
  }

  async #wait(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    if (!this.#isResting) this.#owner.onWaiting(true);
    await promise;
    this.#owner.onWaiting(false);
  }

  #settle(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }

  #leave(): void {
    // Its next user waits for bytes.
    this.#isResting = false;
    this.#resume();
    this.#connection?.readInto(null);
    this.#connection?.shareReads(true);
    this.#connection = null;
    this.#settle();
  }

  // Nobody waits for the server meanwhile.
  #rest(count: number): void {
    const rest = this.#pace?.(count);
    if (rest === undefined || this.#isResting || this.#remaining === 0) return;
    this.#isResting = true;
    this.#pause();
    this.#owner.onWaiting(false);
    void rest.then(() => {
      if (!this.#isResting) return;
      this.#isResting = false;
      if (this.#queuedBytes < QUEUED_BYTES_MAX) this.#resume();
      if (this.#wake !== null) this.#owner.onWaiting(true);
    });
  }

  #pause(): void {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#connection?.socket.pause();
  }

  #resume(): void {
    if (!this.#isPaused || this.#isResting) return;
    this.#isPaused = false;
    this.#connection?.socket.resume();
  }

  #fill(target: Buffer, bytes: Buffer, start: number, end: number): void {
    const at = this.#targetAt;
    const isInPlace =
      bytes.buffer === target.buffer && bytes.byteOffset + start === target.byteOffset + at;
    if (at + end - start > target.length) {
      this.#abandon("content-too-large");
      return;
    }
    if (!isInPlace) bytes.copy(target, at, start, end);
    this.#targetAt = at + end - start;
    this.#readDirectly();
  }

  // Only bytes of this content can follow, so they need no memory of their own.
  #readDirectly(): void {
    const connection = this.#connection;
    const target = this.#target;
    if (connection === null || target === null || this.#remaining <= 0) return;
    const at = this.#targetAt;
    const count = Math.min(this.#remaining, READ_BYTES_MAX);
    const fits = at + this.#remaining <= target.length;
    connection.readInto(fits ? target.subarray(at, at + count) : null);
  }
}
