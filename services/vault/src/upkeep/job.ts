// Background work of the store, as people see it: what runs, how far it is, how the last round ended, when the next begins.
import type { DriveMonitor } from "./drive-monitor.ts";
import type { EndedRound } from "./round.ts";
import type { ScrubReport } from "./scrubber.ts";

/** The kinds. `healing` and `index_copy` depend on the number of drives, `rewrap` and `rewrite_heads` on keys. */
export const JOB_KINDS = [
  "scrub",
  "lifecycle",
  "transition",
  "compaction",
  "index_copy",
  "healing",
  "rewrap",
  "rewrite_heads",
] as const;

/** A kind of background work. */
export type JobKind = (typeof JOB_KINDS)[number];

/** Results of a round, by name. */
export type JobCounts = Readonly<Record<string, number>>;

/** The progress of a running round. */
export interface JobProgress {
  readonly unit: "files" | "buckets";
  readonly done: number;
  /** As counted at the beginning; undefined if it is not known. */
  readonly total?: number;
  readonly bytes?: number;
}

/** A kind of work and its state. */
export interface Job {
  readonly kind: JobKind;
  readonly running?: {
    /** In ms since 1970; undefined if it is not known. */
    readonly startedMs?: number;
    /** True if it was asked to end. */
    readonly isCancelled: boolean;
    readonly progress?: JobProgress;
  };
  readonly last?: EndedRound<JobCounts>;
  /** Planned start of the next round, in ms since 1970; undefined if it is not planned. */
  readonly nextMs?: number;
  /** True if people can start and cancel it. */
  readonly isManual: boolean;
}

/** The answer to a request to start a round: it runs, the work has no rounds, or a cancelled round has not ended yet. */
export type JobStart = "started" | "automatic" | "ending";

/** The end of a round with its report in numbers. */
export function countEnded<Report>(
  { report, ...last }: EndedRound<Report>,
  count: (report: Report) => JobCounts,
): EndedRound<JobCounts> {
  return { ...last, ...(report === undefined ? {} : { report: count(report) }) };
}

/** A scrub in numbers. */
export function countScrub(report: Omit<ScrubReport, "isComplete">): JobCounts {
  const { files, bytes, healed, damaged, missing, quarantined } = report;
  return { files, bytes, healed, damaged: damaged.length, missing: missing.length, quarantined };
}

/** Healing has no rounds: it begins when a drive returns and ends when the drive is complete. */
export function describeHealing(monitor: DriveMonitor): Job {
  const { shards, segments, bytes } = monitor.healer.totals;
  const isRunning = monitor.list().some(({ state }) => state === "healing");
  const progress = { unit: "files", done: shards + segments, bytes } as const;
  return {
    kind: "healing",
    ...(isRunning ? { running: { isCancelled: false, progress } } : {}),
    isManual: false,
  };
}
