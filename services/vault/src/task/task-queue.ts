// Runs durable tasks: work that a commit has caused, until a later commit ends it. The queue is a table of the index.
import type { Logger } from "@platform/kernel/log";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { IndexConnection } from "../index/schema.ts";
import { RefusedTextError } from "../model/vector.ts";
import type { TaskAddress } from "../transaction/task-operations.ts";
import type { TaskKind } from "../transaction/task-rows.ts";
import type { IndexWriter } from "../transaction/writer.ts";

const LOOK_EVERY_MS = 500;
/** Tasks of a kind at the same time; embeddings are requested in batches. */
const IN_FLIGHT_MAX: Readonly<Record<TaskKind, number>> = { "drop-vectors": 1, embed: 64 };
const BACKOFF_MS_MIN = 1_000;
const BACKOFF_MS_MAX = 3_600_000;

/** A task whose time has come. */
export interface Task extends TaskAddress {
  readonly kind: TaskKind;
  readonly bucket: number;
  readonly key: Uint8Array;
  readonly version: string;
  readonly attempts: number;
}

/** Work of a task. Its effect and the end of the task are one commit, or may happen twice. An error plans another attempt. */
export type TaskHandler = (task: Task, signal: AbortSignal) => Promise<void>;

/** Options of {@link TaskQueue}. */
export interface TaskQueueOptions {
  readonly index: IndexConnection;
  readonly writer: IndexWriter;
  /** Epoch ms. */
  readonly now: () => number;
  readonly handlers: Readonly<Record<TaskKind, TaskHandler>>;
  readonly log: Logger | undefined;
}

/** Runs tasks by their due time. Those that fail are tried again after 1 s to 1 h, without end, unless they cannot succeed. */
export class TaskQueue {
  readonly #options: TaskQueueOptions;
  readonly #running = new Map<number, { kind: TaskKind; ended: Promise<void> }>();
  readonly #stopping = new AbortController();
  readonly #timer: RepeatingTimer;

  constructor(options: TaskQueueOptions) {
    this.#options = options;
    this.#timer = every(
      LOOK_EVERY_MS,
      () => this.#startDue(),
      () => undefined,
    );
  }

  /** Ends running tasks, which are started again with the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#timer.stop();
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  #startDue(): void {
    const { handlers, index, now } = this.#options;
    for (const kind of Object.keys(handlers) as TaskKind[]) {
      const free = IN_FLIGHT_MAX[kind] - this.#count(kind);
      if (free <= 0) continue;
      const rows = index
        .sql(
          "select id, seq, kind, bucket, key, version, attempts from tasks " +
            "where state = 'waiting' and kind = ? and due <= ? order by due limit ?",
        )
        .all(kind, now(), IN_FLIGHT_MAX[kind]) as unknown as Task[];
      const next = rows.filter(({ id }) => !this.#running.has(id));
      for (const task of next.slice(0, free)) this.#start(task);
    }
  }

  #count(kind: TaskKind): number {
    return [...this.#running.values()].filter((one) => one.kind === kind).length;
  }

  #start(task: Task): void {
    const { id, kind } = task;
    const ended = this.#run(task).then((hasSucceeded) => {
      this.#running.delete(id);
      // The next ones do not wait for the timer.
      const isNext = hasSucceeded && this.#running.size === 0 && !this.#stopping.signal.aborted;
      if (isNext) void this.#timer.run();
    });
    this.#running.set(id, { kind, ended });
  }

  async #run(task: Task): Promise<boolean> {
    const { handlers, writer, now, log } = this.#options;
    const { signal } = this.#stopping;
    try {
      await handlers[task.kind](task, signal);
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      const reason = error instanceof Error ? error.message : String(error);
      log?.warn("a task has failed", { kind: task.kind, attempts: task.attempts + 1, reason });
      const attempts = task.attempts + 1;
      const dueMs = now() + computeBackoffMs(attempts);
      const isDead = error instanceof RefusedTextError;
      const plan = { task, attempts, dueMs, isDead, reason };
      // While nothing can be written, the task stays as it is.
      await writer.submit({ type: "retryTask", ...plan }).catch(() => undefined);
      return false;
    }
  }
}

// With jitter, so that tasks that failed together do not come back together.
function computeBackoffMs(attempts: number): number {
  const wait = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** Math.min(attempts - 1, 20));
  return wait * (0.5 + Math.random() / 2);
}
