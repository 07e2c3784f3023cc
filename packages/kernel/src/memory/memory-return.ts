// Returns memory to the system: the young generation grows while modules load and requests come in bursts, and V8 keeps it
// until the next collection, which an idle process never reaches.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

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
  /** False if it could not collect: it is tried again. */
  readonly collect: () => boolean;
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
        if (measureShare() < QUIET_SHARE && this.#options.collect()) {
          this.#isDue = false;
          measureShare();
        }
        this.#check();
      });
    });
  }
}

/** Returns memory of this thread for the rest of its life. No effect on Bun, whose collector does so by itself. */
export function returnMemory(): void {
  if (process.versions["bun"] !== undefined) return;
  let last = performance.eventLoopUtilization();
  void new MemoryReturn({
    measureShare: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      return utilization;
    },
    collect: collectGarbage,
    wait: (ms, callback) => void setTimeout(callback, ms).unref(),
  });
}

/**
 * Collects all garbage and gives free pages back. The flag is set for one moment only: with it, V8 would reject the compiled
 * modules that it has kept. It is one for all threads: false if another thread has reset it in that moment.
 */
export function collectGarbage(): boolean {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("globalThis.gc") as ((options: object) => void) | undefined;
  setFlagsFromString("--no-expose-gc");
  collect?.({ type: "major", execution: "sync", flavor: "last-resort" });
  return collect !== undefined;
}
