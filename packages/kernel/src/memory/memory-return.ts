// Returns memory to the system: the young generation grows while modules load and requests come in bursts, and V8 keeps it
// until the next collection, which an idle process never reaches.

import { setTimeout as sleep } from "node:timers/promises";

const CHECK_MS = 2_000;
/** A collection takes as long as some requests, so none may be in flight. */
const QUIET_MS = 250;
const QUIET_SHARE = 0.05;
/** Share of an interval that counts as a busy time. */
const BUSY_SHARE = 0.1;
/** A start takes less; requests compile what a collection would discard. */
const START_MS_MAX = 1_500;
const SHRINK_IDLE_MS = 60_000;
const COLLECT_IDLE_MS = 600_000;

/** V8 shrinks the young generation at a minor collection while the thread allocates less than a byte per microsecond. */
const TRICKLE_BYTES = 262_144;
const TRICKLE_MS = 500;
const TRICKLES_MAX = 240;
/** Larger objects are not allocated in the young generation's ordinary pages. */
const CHUNK_BYTES = 32_768;
const YOUNG_BYTES = 4_194_304;

/** Options of {@link MemoryReturn}. */
export interface MemoryReturnOptions {
  /** Share of the time since the last call in which this thread ran, 0 to 1. */
  readonly measureShare: () => number;
  /** Collects all that is not used; compiled code is among it. Never rejects. */
  readonly collect: () => void | Promise<void>;
  /** Returns what can be returned without a loss of speed; not awaited, never rejects. */
  readonly shrink: () => void | Promise<void>;
  /** Called to be called back after `ms`. */
  readonly wait: (ms: number, callback: () => void) => void;
}

/**
 * Decides when to return memory. A full collection discards the optimized code of functions that no object in use belongs to: in
 * the seconds after it, requests take 1.4 to 1.8 times the CPU time. So it comes soon after the start, while no request has been
 * served, and otherwise only after ten minutes without load; after the first of them the young generation alone is shrunk.
 */
export class MemoryReturn {
  readonly #options: MemoryReturnOptions;
  /** Undefined once the start has ended: by a collection, or by requests. */
  #startMs: number | undefined = 0;
  #isShrinkDue = false;
  #isCollectDue = true;
  #idleMs = 0;

  constructor(options: MemoryReturnOptions) {
    this.#options = options;
    this.#check();
  }

  #check(): void {
    const { wait, measureShare } = this.#options;
    wait(CHECK_MS, () => {
      const share = measureShare();
      this.#note(share);
      if (this.#isShrinkDue && this.#idleMs >= SHRINK_IDLE_MS) {
        this.#isShrinkDue = false;
        void this.#options.shrink();
      }
      const isStarted = this.#startMs !== undefined && share < BUSY_SHARE;
      if (!this.#isCollectDue || (!isStarted && this.#idleMs < COLLECT_IDLE_MS)) {
        this.#check();
        return;
      }
      wait(QUIET_MS, () => {
        if (measureShare() < QUIET_SHARE) void this.#collect();
        else this.#check();
      });
    });
  }

  #note(share: number): void {
    if (this.#startMs !== undefined) {
      this.#startMs += share * CHECK_MS;
      if (this.#startMs < START_MS_MAX) return;
      this.#startMs = undefined;
    }
    if (share < BUSY_SHARE) {
      this.#idleMs += CHECK_MS;
      return;
    }
    this.#idleMs = 0;
    this.#isShrinkDue = true;
    this.#isCollectDue = true;
  }

  async #collect(): Promise<void> {
    await this.#options.collect();
    this.#startMs = undefined;
    this.#isShrinkDue = false;
    this.#isCollectDue = false;
    this.#options.measureShare();
    this.#check();
  }
}

/**
 * Returns memory of this thread for the rest of its life. The collection is that of V8's inspector: the function `gc` would take
 * a flag, with which Node rejects the compiled form of its own modules at every start, or a context of its own, which costs a
 * service up to a third of its speed. Programs without an inspector keep their memory.
 */
export function returnMemory(): void {
  if (!process.features.inspector || process.versions["bun"] !== undefined) return;
  let last = performance.eventLoopUtilization();
  void new MemoryReturn({
    measureShare: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      return utilization;
    },
    collect,
    shrink: shrinkYoung,
    wait: (ms, callback) => void setTimeout(callback, ms).unref(),
  });
}

/** Allocates slowly until a minor collection has shrunk the young generation, for two minutes at most. */
export async function shrinkYoung(): Promise<void> {
  const { getHeapSpaceStatistics } = await import("node:v8");
  const measure = (): number =>
    getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")
      ?.physical_space_size ?? 0;
  for (let count = 0; count < TRICKLES_MAX && measure() > YOUNG_BYTES; count++) {
    for (let bytes = 0; bytes < TRICKLE_BYTES; bytes += CHUNK_BYTES) allocate();
    await sleep(TRICKLE_MS, undefined, { ref: false });
  }
}

function allocate(): number {
  // A compiler could leave out an array that no other function gets.
  return Array.from<number>({ length: CHUNK_BYTES / 8 }).length;
}

async function collect(): Promise<void> {
  // Loaded when it is needed, which is never the case in short programs.
  const { Session } = await import("node:inspector");
  const session = new Session();
  session.connect();
  await new Promise<void>((resolve) => {
    session.post("HeapProfiler.collectGarbage", () => resolve());
  });
  session.disconnect();
}
