// Shared state of the servers and pools of one thread: deadline sweep, read buffers, head writer.
import { performance } from "node:perf_hooks";

import { createDirectWriter, type DirectWriter, OutgoingBudget } from "@platform/kernel/sockets";

import { HeadWriter, HttpDate } from "../write/index.ts";

/** Size of one read from an upstream. */
const READ_BYTES = 65_536;

const SPARE_BUFFERS_MAX = 32;
/** Size of one read for a client while memory for unsent bytes is short. */
const READ_BYTES_TIGHT = 16_384;
/** A typical head followed by one whole read. */
const SCRATCH_BYTES = READ_BYTES + 32_768;

/** An owner of deadlines. `sweep` is called about once a second with the monotonic time in milliseconds. */
export interface Swept {
  sweep(nowMs: number): void;
  /** Closes idle upstream connections. */
  closeIdle?(): void;
}

/** Options of {@link createEngine}. */
export interface EngineOptions {
  /** Monotonic milliseconds; default `performance.now`. */
  now?: () => number;
  /** Milliseconds between two sweeps, 10–10 000; default 1 000. */
  intervalMs?: number;
  /**
   * Maximum response bytes buffered for all clients of this thread; default 268 435 456. The more is used, the less is
   * buffered per client; beyond it, clients that read nothing are disconnected (`slow-reader`).
   */
  unsentBytesMax?: number;
}

/** Creates the engine of a thread. Its timer does not keep the process alive. */
export function createEngine(options: EngineOptions = {}): Engine {
  return new Engine(
    options.now ?? (() => performance.now()),
    Math.min(10_000, Math.max(10, options.intervalMs ?? 1_000)),
    new OutgoingBudget(options.unsentBytesMax),
  );
}

/**
 * Shared by all servers and pools of one thread. Deadlines are checked once per interval, so a timeout of N ms fires
 * after N to N + `intervalMs` ms; in return, requests need no timers.
 */
export class Engine {
  /** Monotonic time in milliseconds at the last sweep: cheap to read, up to `intervalMs` old. */
  coarseNowMs: number;
  /**
   * Time between the last two sweeps, at most two intervals: peers must not be blamed for delays while this thread is
   * blocked.
   */
  sweptMs = 0;
  /** Exact monotonic time in milliseconds. */
  readonly now: () => number;
  /**
   * Read buffer of all upstream sockets while a response fits in one read. Longer responses use their own buffer. Views
   * of this one must not be kept after the read callback.
   */
  readonly sharedReadBuffer: Buffer = Buffer.allocUnsafeSlow(READ_BYTES);

  /** Builds all heads. */
  readonly writer: HeadWriter = new HeadWriter(SCRATCH_BYTES);
  readonly date: HttpDate = new HttpDate();
  /** Writes heads to plain sockets. */
  readonly writeDirect: DirectWriter = createDirectWriter();
  /** Budget for the unsent bytes of all clients. */
  readonly outgoing: OutgoingBudget;
  /** Upstream connections that are open or being opened. */
  upstreamsOpen = 0;
  /** At this number, idle connections are closed before another is opened, to save file descriptors. */
  upstreamsMax = Infinity;
  /** Wall-clock milliseconds at the last sweep, for Date. */
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
   * The deadline of a timeout that starts now, on the coarse clock; `Infinity` for 0. It is never early: it passes
   * `timeoutMs` to `timeoutMs` + 2 intervals from now.
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

  /** Sweeps immediately. */
  tick(): void {
    const nowMs = this.now();
    this.sweptMs = Math.min(nowMs - this.coarseNowMs, 2 * this.#intervalMs);
    this.coarseNowMs = nowMs;
    this.coarseDateMs = Date.now();
    for (const swept of this.#swept) swept.sweep(this.coarseNowMs);
    this.outgoing.sweep(this.sweptMs);
  }

  /** Counts an upstream connection that is about to be opened. */
  countUpstream(): void {
    if (this.upstreamsOpen >= this.upstreamsMax) this.closeIdleUpstreams();
    this.upstreamsOpen++;
  }

  /** Closes all idle upstream connections; their file descriptors are free when this returns. */
  closeIdleUpstreams(): void {
    for (const swept of this.#swept) swept.closeIdle?.();
  }

  /** Stops the timer. */
  close(): void {
    clearInterval(this.#timer);
    this.#swept.clear();
  }

  /** Returns a read buffer. A slow client retains it, so it is smaller while memory is short. */
  takeReadBuffer(): Buffer {
    if (this.outgoing.isTight) return Buffer.allocUnsafeSlow(READ_BYTES_TIGHT);
    return this.#spareBuffers.pop() ?? Buffer.allocUnsafeSlow(READ_BYTES);
  }

  /** Returns an unreferenced read buffer for reuse. */
  giveReadBuffer(buffer: Buffer): void {
    const isWhole = buffer.length === READ_BYTES;
    if (isWhole && this.#spareBuffers.length < SPARE_BUFFERS_MAX) this.#spareBuffers.push(buffer);
  }
}
