// Durable tasks: work that a commit has caused, until a later commit ends it.

/** Kinds of tasks. */
export const TASK_KINDS = [
  "drop-vectors",
  "embed",
  "embed-existing",
  "trigger",
  "delete-remote",
  "restore",
  "end-restore",
  "replicate",
] as const;

/** A kind of tasks. */
export type TaskKind = (typeof TASK_KINDS)[number];

/** A task as it was read. With another `seq` it has begun again meanwhile, and stays. */
export interface TaskAddress {
  readonly id: number;
  readonly seq: number;
}

/** Tasks of one rule of a bucket. Times are in epoch ms. */
export interface TaskCount {
  readonly kind: TaskKind;
  /** Number of the bucket in the index. */
  readonly bucket: number;
  /** "" for kinds without rules. */
  readonly rule: string;
  readonly waiting: number;
  readonly dead: number;
  /** Most failed attempts of one task. */
  readonly attemptsMax: number;
  /** When the oldest waiting task was added; undefined if none waits, or it is older than this information. */
  readonly oldestMs: number | undefined;
}

/** Tasks that cannot succeed, by their numbers or what they are about; without any member all of them. */
export interface DeadTaskFilter {
  readonly ids?: readonly number[] | undefined;
  readonly kind?: TaskKind | undefined;
  readonly bucket?: number | undefined;
  readonly rule?: string | undefined;
}

/** A task that cannot succeed. */
export interface DeadTask {
  readonly id: number;
  readonly kind: TaskKind;
  readonly bucket: number;
  readonly rule: string;
  readonly key: string;
  readonly version: string;
  readonly attempts: number;
  readonly reason: string;
  /** Time of the last attempt, epoch ms. */
  readonly failedMs: number;
}

/** A task cannot succeed: no attempt follows. */
export class DeadTaskError extends Error {
  override readonly name = "DeadTaskError";
  /** The run of the trigger, for the list of its last runs. */
  readonly run: TriggerRun | undefined;

  constructor(reason: string, run?: TriggerRun, options?: ErrorOptions) {
    super(reason, options);
    this.run = run;
  }
}

/** An error after which a task is tried again within a time, however often it has failed. */
export interface BoundedRetry {
  readonly retryMsMax: number | undefined;
}

/** A run of a trigger: the list of the last ones is kept in the index. */
export interface TriggerRun {
  readonly trigger: string;
  readonly key: string;
  readonly version_id: string;
  /** RFC 3339. */
  readonly started_at: string;
  readonly duration_ms: number;
  /** Written bytes. */
  readonly bytes: number;
  readonly outcome: "done" | "skipped" | "failed" | "dead";
  /** Error of a run that has failed. */
  readonly reason?: string | undefined;
  /** First line of what the guest wrote to standard error. */
  readonly stderr?: string | undefined;
}
