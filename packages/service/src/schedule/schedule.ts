// Scheduled work: declared with `every()`, run by one replica at a time.
import type { Logger } from "@platform/kernel/log";
import { parseCron } from "./cron.ts";
import { parseDuration } from "./duration.ts";

/** Context of a run. */
export interface Tick {
  /** Aborted when the service stops or this process loses the lease. */
  readonly signal: AbortSignal;
  /** Time for which the run was scheduled. Missed ticks run once, so it may be in the past. */
  readonly scheduledAt: Date;
  /** Grows with each run of a schedule, over all replicas; 0 without a database. */
  readonly fence: number;
  /** Logger whose lines name the schedule. */
  readonly log: Logger;
}

/** Options of {@link Schedule}. */
export interface ScheduleOptions {
  /** Name in logs, metrics and the database; default: the timing and a number. */
  name?: string;
}

/** The work of a schedule. */
export type Work = (tick: Tick) => unknown;

/** A schedule that was declared with `every()`. */
export class Schedule {
  readonly name: string;
  readonly timing: string;
  readonly work: Work;
  readonly #next: (afterMs: number) => number;

  /** `timing` is a duration (`5m`) or a cron expression (`0 3 * * *`, UTC). Throws if it is neither. */
  constructor(timing: string, work: Work, name: string) {
    if (typeof work !== "function")
      throw new TypeError(`every ${timing}: the work must be a function`);
    this.name = name;
    this.timing = timing;
    this.work = work;
    this.#next = readTiming(timing);
  }

  /** Time of the first tick after a moment, in ms since 1970. */
  findNext(afterMs: number): number {
    return this.#next(afterMs);
  }
}

/** Checks a timing, for tools that do not run the service. Throws if it is not valid. */
export function checkTiming(timing: string): void {
  readTiming(timing);
}

/** The function that finds the first tick after a moment. */
function readTiming(timing: string): (afterMs: number) => number {
  const durationMs = parseDuration(timing);
  if (durationMs !== undefined) return (afterMs) => afterMs + durationMs;
  const cron = parseCron(timing);
  return (afterMs) => cron.next(afterMs);
}
