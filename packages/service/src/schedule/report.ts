// Reports on schedules, which a service sends to the process that supervises it.

/** A finished run. */
export interface LastRun {
  /** RFC 3339. */
  readonly started_at: string;
  readonly duration_ms: number;
  readonly outcome: "done" | "failed";
  /** Of a failed run, at most 500 characters; otherwise `null`. */
  readonly error: string | null;
}

/** State of a schedule. */
export interface ScheduleReport {
  /** Unique within the service. */
  readonly name: string;
  /** A duration or a cron expression. */
  readonly timing: string;
  /** RFC 3339; `null` while the service starts. */
  readonly next_run_at: string | null;
  readonly is_running: boolean;
  /** The last run of this process; `null` before the first one. */
  readonly last_run: LastRun | null;
}
