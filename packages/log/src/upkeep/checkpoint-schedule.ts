// When checkpoints run: when much has come since the last one, after a while, when somebody asks, at the end.
import type { Clock } from "../disk/port.ts";
import type { Journal } from "../journal/journal.ts";
import type { LogEvent } from "../types.ts";
import type { Checkpointer } from "./checkpoint.ts";
import type { Committer } from "../commit/committer.ts";
import { isDiskFull } from "../disk/disk-error.ts";

/** In-place bytes after which a checkpoint saves the indexes, so that a restart scans little. */
const inPlaceCheckpointBytes = 1024 * 1024 * 1024;

/** What the schedule works with. */
export type ScheduleParts = {
  checkpointer: Checkpointer;
  committer: Committer;
  journal: Journal;
  clock: Clock;
  limits: { checkpointBytes: number; checkpointMs: number };
  onEvent: (event: LogEvent) => void;
};

/** Runs checkpoints, one at a time. */
export class CheckpointSchedule {
  readonly #parts: ScheduleParts;
  #running: Promise<void> | undefined;
  #journalBytesAtLast = 0;
  #timer: (() => void) | undefined;
  #stopped = false;

  constructor(parts: ScheduleParts) {
    this.#parts = parts;
  }

  get isStopped(): boolean {
    return this.#stopped;
  }

  /** To be called when something became durable: begins a checkpoint, or sees to it that one comes. */
  consider(): void {
    const { committer, journal, limits } = this.#parts;
    const isLarge =
      journal.bytes - this.#journalBytesAtLast > limits.checkpointBytes ||
      committer.tailBytes > limits.checkpointBytes ||
      committer.inPlaceBytes > inPlaceCheckpointBytes;
    if (isLarge) this.#runInBackground();
    else this.#armTimer();
  }

  /** A checkpoint; who asks while one is under way shares it. */
  run(): Promise<void> {
    this.#running ??= this.#runOnce().finally(() => {
      this.#running = undefined;
      this.#armTimer();
    });
    return this.#running;
  }

  /** From now on none begins by itself. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.();
  }

  /** When the committer has stopped: waits for what is under way, and runs the last one if it is due. */
  async finish(): Promise<void> {
    await this.#running;
    const { committer, checkpointer } = this.#parts;
    if (committer.refusal?.code === "closed" && checkpointer.isDue) await this.#runOnce();
  }

  #armTimer(): void {
    if (this.#timer !== undefined || this.#stopped) return;
    if (!this.#parts.checkpointer.isDue) return;
    this.#timer = this.#parts.clock.after(this.#parts.limits.checkpointMs, () => {
      this.#timer = undefined;
      this.#runInBackground();
    });
  }

  #runInBackground(): void {
    if (this.#running !== undefined || this.#stopped) return;
    // Reported as an event; what matters to writers they learn from their own appends.
    this.run().catch(() => undefined);
  }

  async #runOnce(): Promise<void> {
    const { checkpointer, committer, journal, onEvent } = this.#parts;
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
