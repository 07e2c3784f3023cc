// What the servers and pools of one thread share: the sweep over deadlines and the buffers for reading.
import { performance } from "node:perf_hooks";

import { HeadWriter, HttpDate } from "../write/index.ts";

/** Bytes of one read from an upstream. */
export const READ_BYTES = 65_536;

const SPARE_BUFFERS_MAX = 32;
/** A usual head and one whole read behind it. */
const SCRATCH_BYTES = READ_BYTES + 32_768;

/** Something that holds deadlines. `sweep` is called about once a second with the monotonic time in milliseconds. */
export interface Swept {
  sweep(nowMs: number): void;
}

/** Options of {@link createEngine}. */
export interface EngineOptions {
  /** Monotonic milliseconds; default `performance.now`. */
  now?: () => number;
  /** Milliseconds between two sweeps, 10–10 000; default 1 000. */
  intervalMs?: number;
}

/** Makes the engine of a thread. Its timer does not keep the process alive. */
export function createEngine(options: EngineOptions = {}): Engine {
  return new Engine(
    options.now ?? (() => performance.now()),
    Math.min(10_000, Math.max(10, options.intervalMs ?? 1_000)),
  );
}

/**
 * The part that servers and pools of one thread share. Deadlines are compared once per interval, so a timeout of N ms
 * fires between N and N + `intervalMs` ms later; in exchange no request ever arms a timer.
 */
export class Engine {
  /** Monotonic time in milliseconds as of the last sweep: free to read, up to `intervalMs` old. */
  coarseNowMs: number;
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
  /** Wall-clock milliseconds as of the last sweep, for Date. */
  coarseDateMs: number = Date.now();

  readonly #intervalMs: number;
  readonly #swept = new Set<Swept>();
  readonly #spareBuffers: Buffer[] = [];
  readonly #timer: NodeJS.Timeout;

  constructor(now: () => number, intervalMs: number) {
    this.now = now;
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
    this.coarseNowMs = this.now();
    this.coarseDateMs = Date.now();
    for (const swept of this.#swept) swept.sweep(this.coarseNowMs);
  }

  /** Stops the timer: nothing is swept any more. */
  close(): void {
    clearInterval(this.#timer);
    this.#swept.clear();
  }

  /** A read buffer of one's own. */
  takeReadBuffer(): Buffer {
    return this.#spareBuffers.pop() ?? Buffer.allocUnsafeSlow(READ_BYTES);
  }

  /** Gives a read buffer back that nothing refers to any more. */
  giveReadBuffer(buffer: Buffer): void {
    if (this.#spareBuffers.length < SPARE_BUFFERS_MAX) this.#spareBuffers.push(buffer);
  }
}
