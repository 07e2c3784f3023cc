// What the servers and pools of one thread share: the sweep over deadlines and the buffers for reading.
import { performance } from "node:perf_hooks";

import { OutgoingBudget } from "@platform/kernel/sockets";

import { HeadWriter, HttpDate } from "../write/index.ts";

/** Bytes of one read from an upstream. */
export const READ_BYTES = 65_536;

const SPARE_BUFFERS_MAX = 32;
/** Bytes of one read for a client while memory for unsent bytes is short. */
const READ_BYTES_TIGHT = 16_384;
/** A usual head and one whole read behind it. */
const SCRATCH_BYTES = READ_BYTES + 32_768;

/** Something that holds deadlines. `sweep` is called about once a second with the monotonic time in milliseconds. */
export interface Swept {
  sweep(nowMs: number): void;
  /** Closes upstream connections that are not in use. */
  closeIdle?(): void;
}

/** Options of {@link createEngine}. */
export interface EngineOptions {
  /** Monotonic milliseconds; default `performance.now`. */
  now?: () => number;
  /** Milliseconds between two sweeps, 10–10 000; default 1 000. */
  intervalMs?: number;
  /**
   * Bytes of answers that may wait for clients of this thread, in all; default 268 435 456. The more of it is used, the less
   * each reader is given ahead; beyond it, clients that read nothing are dropped (`slow-reader`).
   */
  unsentBytesMax?: number;
}

/** Makes the engine of a thread. Its timer does not keep the process alive. */
export function createEngine(options: EngineOptions = {}): Engine {
  return new Engine(
    options.now ?? (() => performance.now()),
    Math.min(10_000, Math.max(10, options.intervalMs ?? 1_000)),
    new OutgoingBudget(options.unsentBytesMax),
  );
}

/**
 * The part that servers and pools of one thread share. Deadlines are compared once per interval, so a timeout of N ms
 * fires between N and N + `intervalMs` ms later; in exchange no request ever arms a timer.
 */
export class Engine {
  /** Monotonic time in milliseconds as of the last sweep: free to read, up to `intervalMs` old. */
  coarseNowMs: number;
  /**
   * Time between the last two sweeps, at most two intervals: while this thread is busy with something else, peers are not to
   * blame for what was not read or sent.
   */
  sweptMs = 0;
  /** Monotonic time in milliseconds, exact. */
  readonly now: () => number;
  /**
   * Where all upstream sockets read while an answer fits into one read. Whoever reads on beyond that takes a buffer of
   * its own, so nothing may keep a view of this one after the read callback.
   */
  readonly sharedReadBuffer: Buffer = Buffer.allocUnsafeSlow(READ_BYTES);

  /** Where every head is built. */
  readonly writer: HeadWriter = new HeadWriter(SCRATCH_BYTES);
  readonly date: HttpDate = new HttpDate();
  /** What the sockets of all clients hold. */
  readonly outgoing: OutgoingBudget;
  /** Open connections to upstreams, those that are being opened included. */
  upstreamsOpen = 0;
  /** At so many, idle ones are closed before another is opened: file descriptors are few. */
  upstreamsMax = Infinity;
  /** Wall-clock milliseconds as of the last sweep, for Date. */
  coarseDateMs: number = Date.now();

  readonly #intervalMs: number;
  readonly #swept = new Set<Swept>();
  readonly #spareBuffers: Buffer[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor(now: () => number, intervalMs: number, outgoing: OutgoingBudget) {
    this.now = now;
    this.outgoing = outgoing;
    this.#intervalMs = intervalMs;
    this.coarseNowMs = now();
    this.#timer = setInterval(() => {
      this.tick();
    }, intervalMs);
    this.#timer.unref();
  }

  /**
   * The deadline for something that may take `timeoutMs` from now on, on the coarse clock; 0 gives `Infinity`. It is
   * never early: it passes between `timeoutMs` and `timeoutMs` + 2 intervals from now.
   */
  deadlineIn(timeoutMs: number): number {
    return timeoutMs === 0 ? Infinity : this.coarseNowMs + this.#intervalMs + timeoutMs;
  }

  add(swept: Swept): void {
    this.#swept.add(swept);
  }

  remove(swept: Swept): void {
    this.#swept.delete(swept);
  }

  /** Sweeps at once. */
  tick(): void {
    const nowMs = this.now();
    this.sweptMs = Math.min(nowMs - this.coarseNowMs, 2 * this.#intervalMs);
    this.coarseNowMs = nowMs;
    this.coarseDateMs = Date.now();
    for (const swept of this.#swept) swept.sweep(this.coarseNowMs);
    this.outgoing.sweep(this.sweptMs);
  }

  /** Counts a connection to an upstream that is about to be opened. */
  countUpstream(): void {
    if (this.upstreamsOpen >= this.upstreamsMax) this.closeIdleUpstreams();
    this.upstreamsOpen++;
  }

  /** Closes all connections to upstreams that are not in use; their file descriptors are free when this returns. */
  closeIdleUpstreams(): void {
    for (const swept of this.#swept) swept.closeIdle?.();
  }

  /** Stops the timer: nothing is swept any more. */
  close(): void {
    clearInterval(this.#timer);
    this.#swept.clear();
  }

  /** A read buffer of one's own. A client that reads slowly keeps it: it is smaller while memory is short. */
  takeReadBuffer(): Buffer {
    if (this.outgoing.isTight) return Buffer.allocUnsafeSlow(READ_BYTES_TIGHT);
    return this.#spareBuffers.pop() ?? Buffer.allocUnsafeSlow(READ_BYTES);
  }

  /** Gives a read buffer back that nothing refers to any more. */
  giveReadBuffer(buffer: Buffer): void {
    const isWhole = buffer.length === READ_BYTES;
    if (isWhole && this.#spareBuffers.length < SPARE_BUFFERS_MAX) this.#spareBuffers.push(buffer);
  }
}
