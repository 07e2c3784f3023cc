// Returns memory to the system: the young generation grows while modules load and requests come in bursts, and V8 keeps it
// until the next collection, which an idle process never reaches.

const CHECK_MS = 2_000;
/** A collection takes as long as some requests, so none may be in flight. */
const QUIET_MS = 250;
const QUIET_SHARE = 0.05;
/** Share of an interval that counts as a busy time. */
const BUSY_SHARE = 0.1;
const IDLE_MS = 60_000;

/** Options of {@link MemoryReturn}. */
export interface MemoryReturnOptions {
  /** Share of the time since the last call in which this thread ran, 0 to 1. */
  readonly measureShare: () => number;
  /** Never rejects. */
  readonly collect: () => void | Promise<void>;
  /** Called to be called back after `ms`. */
  readonly wait: (ms: number, callback: () => void) => void;
}

/** Decides when to collect: soon after the start, and after a minute without load that followed load. */
export class MemoryReturn {
  readonly #options: MemoryReturnOptions;
  /** The start was a busy time; a service that is ready needs no minute. */
  #isDue = true;
  #idleMs = IDLE_MS;

  constructor(options: MemoryReturnOptions) {
    this.#options = options;
    this.#check();
  }

  #check(): void {
    const { wait, measureShare } = this.#options;
    wait(CHECK_MS, () => {
      if (measureShare() >= BUSY_SHARE) {
        // Load before the first collection only delays it.
        if (!this.#isDue) this.#idleMs = 0;
        this.#isDue = true;
      } else this.#idleMs += CHECK_MS;
      if (!this.#isDue || this.#idleMs < IDLE_MS) {
        this.#check();
        return;
      }
      wait(QUIET_MS, () => {
        if (measureShare() < QUIET_SHARE) void this.#collect();
        else this.#check();
      });
    });
  }

  async #collect(): Promise<void> {
    await this.#options.collect();
    this.#isDue = false;
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
    wait: (ms, callback) => void setTimeout(callback, ms).unref(),
  });
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
