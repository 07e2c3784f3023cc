// Runs durable tasks: work that a commit has caused, until a later commit ends it. The queue is a table of the index.
import type { Logger } from "@platform/kernel/log";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { IndexConnection } from "../index/schema.ts";
import type { TaskAddress } from "../transaction/task-operations.ts";
import type { TaskKind } from "../transaction/task-rows.ts";
import type { IndexWriter } from "../transaction/writer.ts";

const LOOK_EVERY_MS = 500;
/** Tasks of a kind at the same time. */
const IN_FLIGHT_MAX = 4;
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

/** Runs tasks by their due time. Those that fail are tried again after 1 s to 1 h, without end. */
export class TaskQueue {
  readonly #options: TaskQueueOptions;
  readonly #running = new Map<number, Promise<void>>();
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
    await Promise.all(this.#running.values());
  }

  #startDue(): void {
    const { handlers, index, now } = this.#options;
    for (const kind of Object.keys(handlers) as TaskKind[]) {
      const rows = index
        .sql(
          "select id, seq, kind, bucket, key, version, attempts from tasks " +
            "where state = 'waiting' and kind = ? and due <= ? order by due limit ?",
        )
        .all(kind, now(), IN_FLIGHT_MAX);
      for (const task of rows as unknown as Task[]) {
        if (this.#running.size >= IN_FLIGHT_MAX) return;
        if (!this.#running.has(task.id)) this.#start(task);
      }
    }
  }

  #start(task: Task): void {
    const running = this.#run(task).finally(() => this.#running.delete(task.id));
    this.#running.set(task.id, running);
  }

  async #run(task: Task): Promise<void> {
    const { handlers, writer, now, log } = this.#options;
    const { signal } = this.#stopping;
    try {
      await handlers[task.kind](task, signal);
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      log?.warn("a task has failed and is tried again", { kind: task.kind, reason });
      const attempts = task.attempts + 1;
      const dueMs = now() + computeBackoffMs(attempts);
      const plan = { task, attempts, dueMs, isDead: false, reason };
      // While nothing can be written, the task stays as it is.
      await writer.submit({ type: "retryTask", ...plan }).catch(() => undefined);
    }
  }
}

// With jitter, so that tasks that failed together do not come back together.
function computeBackoffMs(attempts: number): number {
  const wait = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** Math.min(attempts - 1, 20));
  return wait * (0.5 + Math.random() / 2);
}
