// Jobs that are not about objects: their beginning, their end, their progress.
import type { Logger } from "@platform/kernel/log";
import { BackupError } from "@platform/kernel/backup";
import type { KeyRing } from "../keys/key-ring.ts";
import { describeReason, type Run } from "../job/run-steps.ts";
import type { JobPosition, JobProgress, JobRow, JobState } from "../model/job.ts";
import type { Store } from "../object-store.ts";
import { StoreError } from "../model/store-error.ts";
import { S3Error } from "../model/s3-error.ts";
import type { OpenRepositoryPlace } from "./repository-place.ts";

const PROGRESS_EVERY_MS = 1_000;

/** The parts that backups and restores use. */
export interface BackupParts {
  readonly store: Store;
  readonly keys: KeyRing;
  readonly log: Logger;
  readonly now: () => number;
  readonly openPlace: OpenRepositoryPlace;
  /** Reads the passphrase of repositories; undefined if none is configured. */
  readonly readPassphrase: () => Promise<string | undefined>;
  /** Identifies the store in repositories. */
  readonly owner: string;
  /** Folder for staged files of restores. */
  readonly stagingFolder: string;
}

/** The numbers that a job shows. */
export interface JobCounts {
  readonly matched: number;
  readonly done: number;
  readonly bytes: number;
}

/** A job that is not about objects, with its progress. */
export abstract class OtherRun implements Run {
  protected readonly parts: BackupParts;
  protected readonly job: JobRow;
  protected readonly signal: AbortSignal;
  protected progress: JobProgress;
  #shownMs = 0;
  #showing: Promise<void> | undefined;

  constructor(parts: BackupParts, job: JobRow, signal: AbortSignal) {
    this.parts = parts;
    this.job = job;
    this.signal = signal;
    this.progress = job.progress;
  }

  // These jobs are as fast as the disk.
  set rate(_rate: number) {}

  /** Works until the end. Resolves to what the job shows then, or undefined if it was stopped. */
  protected abstract work(): Promise<Pick<JobProgress, "reason" | "snapshot"> | undefined>;

  async run(): Promise<void> {
    const { store, log } = this.parts;
    if (this.job.state === "queued") await store.jobs.begin(this.job.id);
    try {
      const change = await this.work();
      if (change !== undefined) await this.#end("completed", change);
    } catch (error) {
      if (this.signal.aborted) return;
      const isKnown =
        error instanceof BackupError || error instanceof StoreError || error instanceof S3Error;
      const reason = describeReason(error);
      log[isKnown ? "warn" : "error"]("a job has failed", {
        job: this.job.id,
        reason,
        ...(isKnown ? {} : { error }),
      });
      await this.#end("failed", { reason });
    }
  }

  /** Shows the progress, at most each second. */
  protected show(counts: JobCounts): void {
    const nowMs = performance.now();
    if (this.#showing !== undefined || nowMs - this.#shownMs < PROGRESS_EVERY_MS) return;
    this.#shownMs = nowMs;
    this.#showing = this.setCounts(counts)
      .catch(() => undefined)
      .finally(() => {
        this.#showing = undefined;
      });
  }

  /** Sets the numbers: a run that begins again counts from the start. */
  protected async setCounts(counts: JobCounts): Promise<void> {
    const step = this.describeStep(counts, this.progress.position, {});
    ({ progress: this.progress } = await this.parts.store.jobs.advance([], step).last);
  }

  /** A step of the job to `counts` and `position`. */
  protected describeStep(
    counts: JobCounts,
    position: JobPosition,
    change: Partial<Pick<JobProgress, "reason" | "snapshot">>,
  ) {
    const { matched, done, bytes } = this.progress;
    return {
      id: this.job.id,
      items: [],
      lines: [],
      matched: counts.matched - matched,
      counted: { done: counts.done - done, bytes: counts.bytes - bytes },
      position,
      reportsSuccesses: false,
      change,
    };
  }

  async #end(
    state: JobState,
    change: Partial<Pick<JobProgress, "reason" | "snapshot">>,
  ): Promise<void> {
    await this.#showing;
    const step = this.describeStep(this.progress, this.progress.position, change);
    await this.parts.store.jobs.advance([], { ...step, state }).last;
  }
}
