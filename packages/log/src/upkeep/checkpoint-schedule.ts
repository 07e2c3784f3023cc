// Starts checkpoints: after enough bytes, after some time, on request, and at shutdown.
import type { Clock } from "../disk/port.ts";
import type { Journal } from "../journal/journal.ts";
import type { LogEvent } from "../types.ts";
import type { Checkpointer } from "./checkpoint.ts";
import type { Committer } from "../commit/committer.ts";
import { isDiskFull } from "../disk/disk-error.ts";

/** In-place bytes after which a checkpoint saves the indexes, which shortens the scan of a restart. */
const IN_PLACE_CHECKPOINT_BYTES = 1024 * 1024 * 1024;

/** Options of a `CheckpointSchedule`. */
export interface CheckpointScheduleOptions {
  checkpointer: Checkpointer;
  committer: Committer;
  journal: Journal;
  clock: Clock;
  limits: { checkpointBytes: number; checkpointMs: number };
  onEvent: (event: LogEvent) => void;
}

/** Runs checkpoints, one at a time. */
export class CheckpointSchedule {
  readonly #options: CheckpointScheduleOptions;
  #running: Promise<void> | undefined;
  /** The checkpoint after the running one, for callers whose changes the running one may not include. */
  #next: Promise<void> | undefined;
  #journalBytesAtLast = 0;
  #timer: (() => void) | undefined;
  #stopped = false;

  constructor(options: CheckpointScheduleOptions) {
    this.#options = options;
  }

  get isStopped(): boolean {
    return this.#stopped;
  }

  /** Starts a checkpoint if enough was written, otherwise arms the timer. Called after each durable group. */
  consider(): void {
    const { committer, journal, limits } = this.#options;
    const isLarge =
      journal.bytes - this.#journalBytesAtLast > limits.checkpointBytes ||
      committer.tailBytes > limits.checkpointBytes ||
      committer.inPlaceBytes > IN_PLACE_CHECKPOINT_BYTES;
    if (isLarge) this.#runInBackground();
    else this.#armTimer();
  }

  /** Runs a checkpoint that includes everything up to this call: after the running one, if there is one. */
  run(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    this.#next ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return this.#running ?? this.#start();
      });
    return this.#next;
  }

  /**
   * Runs a checkpoint, and then `work` before another one can start. `work` runs as well if the disk is too full for
   * the checkpoint; rejects if writing has stopped.
   */
  async runAndThen<Result>(work: () => Promise<Result>): Promise<Result> {
    while (this.#running !== undefined) await this.#running.catch(() => undefined);
    const result = this.#runOnce()
      .catch((error: unknown) => {
        if (!isDiskFull(error)) throw error;
      })
      .then(work);
    this.#running = result
      .then(() => undefined)
      .finally(() => {
        this.#running = undefined;
        this.#armTimer();
      });
    // Its callers join a checkpoint; the failure is reported to the caller of this method.
    this.#running.catch(() => undefined);
    return result;
  }

  /** Stops automatic checkpoints. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.();
  }

  /** After the committer has stopped: waits for the running checkpoint, and runs the last one if it is due. */
  async finish(): Promise<void> {
    await this.#next;
    await this.#running;
    const { committer, checkpointer } = this.#options;
    if (committer.refusal?.code === "closed" && checkpointer.isDue) await this.#runOnce();
  }

  #start(): Promise<void> {
    this.#running = this.#runOnce().finally(() => {
      this.#running = undefined;
      this.#armTimer();
    });
    return this.#running;
  }

  #armTimer(): void {
    if (this.#timer !== undefined || this.#stopped) return;
    if (!this.#options.checkpointer.isDue) return;
    this.#timer = this.#options.clock.after(this.#options.limits.checkpointMs, () => {
      this.#timer = undefined;
      this.#runInBackground();
    });
  }

  #runInBackground(): void {
    if (this.#running !== undefined || this.#stopped) return;
    // Reported as an event; writers get the error from their own appends.
    this.run().catch(() => undefined);
  }

  async #runOnce(): Promise<void> {
    const { checkpointer, committer, journal, onEvent } = this.#options;
    if (committer.refusal?.code === "disk-failed") throw committer.refusal;
    const started = performance.now();
    this.#journalBytesAtLast = journal.bytes;
    try {
      const done = await checkpointer.run();
      this.#journalBytesAtLast = Math.min(this.#journalBytesAtLast, journal.bytes);
      onEvent({ kind: "checkpoint", durationMs: performance.now() - started, ...done });
    } catch (error) {
      if (!isDiskFull(error)) committer.poison(error as Error);
      onEvent({ kind: "checkpoint-failed", error: error as Error });
      throw error;
    }
  }
}
