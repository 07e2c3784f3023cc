// Cores that were idle of late: recorded costs are those of another machine, and of another moment.
import { availableParallelism, cpus } from "node:os";

/** Shorter measurements say nothing: a test sleeps for a moment, and works again. */
const MEASURED_MS_MIN = 1_000;
/** The next sample replaces the first one after this time. */
const MEASURED_MS_MAX = 2_000;

/** Idle time of all cores since the start of the machine, and the time now. */
interface Sample {
  readonly idleMs: number;
  readonly nowMs: number;
}

/** Reads the clock of the machine's cores. */
function readIdleClock(): Sample {
  const idleMs = cpus().reduce((sum, { times }) => sum + times.idle, 0);
  return { idleMs, nowMs: performance.now() };
}

/** True if the clock is about the cores that this process may use: in a container it may be about others, too. */
export function isClockOurs(): boolean {
  return cpus().length === availableParallelism();
}

/** Measures idle cores since the last start of a file, at most over the last two seconds. */
export class IdleCores {
  readonly #read: () => Sample;
  #first: Sample;
  #second: Sample;

  constructor(read: () => Sample = readIdleClock) {
    this.#read = read;
    this.#first = this.#second = read();
  }

  /** Cores that were idle in the mean, for example 0.5; 0 as long as too little time has passed. */
  measure(): number {
    const now = this.#read();
    const ms = now.nowMs - this.#first.nowMs;
    if (ms < MEASURED_MS_MIN) return 0;
    const cores = (now.idleMs - this.#first.idleMs) / ms;
    if (now.nowMs - this.#second.nowMs >= MEASURED_MS_MAX / 2) {
      this.#first = this.#second;
      this.#second = now;
    }
    return cores;
  }

  /** Begins again: a file has been started, and what it needs is not known yet. */
  restart(): void {
    this.#first = this.#second = this.#read();
  }
}
