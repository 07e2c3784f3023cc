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
  readonly collect: () => void;
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
        if (measureShare() < QUIET_SHARE) {
          this.#options.collect();
          this.#isDue = false;
          measureShare();
        }
        this.#check();
      });
    });
  }
}

/**
 * Returns memory of this thread for the rest of its life, if the process was started with `--expose-gc`. To enable that flag later
 * and take `gc` from a context of its own costs a service up to a third of its speed until it ends.
 */
export function returnMemory(): void {
  const { gc } = globalThis;
  if (gc === undefined) return;
  let last = performance.eventLoopUtilization();
  void new MemoryReturn({
    measureShare: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      return utilization;
    },
    collect: () => gc({ type: "major", execution: "sync", flavor: "last-resort" }),
    wait: (ms, callback) => void setTimeout(callback, ms).unref(),
  });
}
