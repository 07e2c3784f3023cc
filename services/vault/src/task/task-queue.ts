// Runs durable tasks: work that a commit has caused, until a later commit ends it. The queue is a table of the index.
//
//   commit ──► tasks (one row for each kind, rule, bucket, key, version)
//                 └──► due? ──► rules take turns ──► handler ──► one commit: its effect and the end of the task
//                                                       ├──► failed: due again after 1 s to 1 h
//                                                       └──► cannot succeed: dead, until people retry or discard it
import type { Logger } from "@platform/kernel/log";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { IndexConnection } from "../index/schema.ts";
import { DeadTaskError, type TaskAddress, type TaskCount, type TaskKind } from "../model/task.ts";
import { RefusedTextError } from "../model/vector.ts";
import type { ReaderPool } from "../query/reader-pool.ts";
import type { IndexWriter } from "../transaction/writer.ts";
import { type DueRule, findDueTasks, findNextRule, type Task } from "./due-tasks.ts";

const LOOK_EVERY_MS = 500;
/** Interval of counting all tasks, for metrics. */
const COUNT_EVERY_MS = 10_000;
/** Tasks of a kind at the same time; embeddings are requested in batches, guests have threads of their own. */
const IN_FLIGHT_MAX: Readonly<Record<TaskKind, number>> = {
  "drop-vectors": 1,
  embed: 64,
  trigger: 16,
  "delete-remote": 16,
  restore: 4,
  "end-restore": 4,
};
/** Kinds whose tasks of one key run one after the other, in the order of the changes. */
const ORDERED_KINDS: ReadonlySet<TaskKind> = new Set(["trigger"]);
/** A task waits no longer than this for an earlier one of its key that is tried again. */
const ORDER_MS_MAX = 600_000;
/** Rules that are looked at in one go; the next look continues behind them. */
const RULES_AT_ONCE = 256;
const BACKOFF_MS_MIN = 1_000;
const BACKOFF_MS_MAX = 3_600_000;

/** Work of a task. Its effect and the end of the task are one commit, or may happen twice. An error plans another attempt. */
export type TaskHandler = (task: Task, signal: AbortSignal) => Promise<void>;

/** Options of {@link TaskQueue}. */
export interface TaskQueueOptions {
  readonly index: IndexConnection;
  readonly writer: IndexWriter;
  readonly readers: ReaderPool;
  /** Epoch ms. */
  readonly now: () => number;
  readonly log: Logger | undefined;
}

/** Attempts of a kind since the start. */
export interface TaskAttempts {
  readonly ended: number;
  /** Failed ones that are tried again. */
  readonly failed: number;
  /** Failed ones that are not. */
  readonly dead: number;
}

interface Running {
  readonly task: Task;
  readonly ended: Promise<void>;
}

/** The running tasks of a kind, and the rule whose turn was last. */
interface KindState {
  readonly handler: TaskHandler;
  readonly running: Map<number, Running>;
  readonly attempts: { ended: number; failed: number; dead: number };
  last: DueRule | undefined;
}

/** Runs tasks by their due time, the rules of buckets in turns. Nothing is dropped: failed tasks are tried again, or dead. */
export class TaskQueue {
  readonly #options: TaskQueueOptions;
  readonly #kinds = new Map<TaskKind, KindState>();
  readonly #stopping = new AbortController();
  readonly #timer: RepeatingTimer;
  readonly #counter: RepeatingTimer;
  #counts: readonly TaskCount[] = [];
  #isWoken = false;

  constructor(options: TaskQueueOptions) {
    this.#options = options;
    this.#timer = every(
      LOOK_EVERY_MS,
      () => this.#startDue(),
      () => undefined,
    );
    this.#counter = every(
      COUNT_EVERY_MS,
      async () => {
        await this.count();
      },
      () => undefined,
    );
    options.writer.onTasks = () => this.#wake();
  }

  /** Sets the handler of a kind. Tasks of kinds without a handler wait. */
  handle(kind: TaskKind, handler: TaskHandler): void {
    const attempts = { ended: 0, failed: 0, dead: 0 };
    this.#kinds.set(kind, { handler, running: new Map(), attempts, last: undefined });
    this.#wake();
  }

  /** Counts the tasks of each rule. */
  async count(): Promise<readonly TaskCount[]> {
    this.#counts = await this.#options.readers.query("countTasks");
    return this.#counts;
  }

  /** The last count, at most some seconds old. */
  get lastCounts(): readonly TaskCount[] {
    return this.#counts;
  }

  /** Running tasks of a kind. */
  countRunning(kind: TaskKind): number {
    return this.#kinds.get(kind)?.running.size ?? 0;
  }

  /** Attempts of a kind. */
  readAttempts(kind: TaskKind): TaskAttempts {
    return this.#kinds.get(kind)?.attempts ?? { ended: 0, failed: 0, dead: 0 };
  }

  /** Ends running tasks, which are started again with the next start. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#timer.stop();
    await this.#counter.stop();
    const running = [...this.#kinds.values()].flatMap((kind) => [...kind.running.values()]);
    await Promise.all(running.map(({ ended }) => ended));
  }

  // Many commits in a row are one look.
  #wake(): void {
    if (this.#isWoken || this.#stopping.signal.aborted) return;
    this.#isWoken = true;
    setImmediate(() => {
      this.#isWoken = false;
      if (!this.#stopping.signal.aborted) void this.#timer.run();
    });
  }

  #startDue(): void {
    for (const [kind, state] of this.#kinds) {
      const free = IN_FLIGHT_MAX[kind] - state.running.size;
      if (free > 0) this.#startKind(kind, state, free);
    }
  }

  // A task of each rule, then a second one of each, until all places are taken.
  #startKind(kind: TaskKind, state: KindState, free: number): void {
    const queues = this.#listDue(kind, state, free);
    for (let left = free; left > 0;) {
      const before = left;
      for (const { rule, tasks } of queues) {
        const task = left > 0 ? tasks.shift() : undefined;
        if (task === undefined) continue;
        state.last = rule;
        this.#start(task, state);
        left -= 1;
      }
      if (left === before) return;
    }
  }

  #listDue(kind: TaskKind, state: KindState, free: number): { rule: DueRule; tasks: Task[] }[] {
    const { index, now } = this.#options;
    const queues: { rule: DueRule; tasks: Task[] }[] = [];
    const nowMs = now();
    let rule = findNextRule(index, kind, state.last);
    const first = rule;
    for (let looked = 0; rule !== undefined && looked < RULES_AT_ONCE; looked += 1) {
      const tasks = findDueTasks(index, kind, rule, nowMs, free + state.running.size)
        .filter(({ id }) => !state.running.has(id))
        .filter((task) => !ORDERED_KINDS.has(kind) || this.#isInOrder(task, state, nowMs));
      if (tasks.length > 0) queues.push({ rule, tasks });
      if (queues.length >= free) break;
      rule = findNextRule(index, kind, rule);
      if (rule?.bucket === first?.bucket && rule?.rule === first?.rule) break;
    }
    return queues;
  }

  // An earlier task of the key runs, or is tried again: this one becomes due after it, so that it does not hide others.
  #isInOrder(task: Task, state: KindState, nowMs: number): boolean {
    const { index, writer } = this.#options;
    const { kind, rule, bucket, key, seq, attempts, added } = task;
    if (nowMs - (added ?? 0) > ORDER_MS_MAX) return true;
    const earlier = index
      .sql(
        "select id, due from tasks where kind = ? and rule = ? and bucket = ? and key = ? and seq < ? and state = 'waiting' " +
          "order by seq desc limit 1",
      )
      .get(kind, rule, bucket, key, seq) as { id: number; due: number } | undefined;
    if (earlier === undefined) return true;
    if (state.running.has(earlier.id) || earlier.due <= nowMs) return false;
    const dueMs = Math.min(earlier.due, (added ?? 0) + ORDER_MS_MAX);
    const plan = { task, attempts, dueMs, isDead: false, reason: undefined };
    this.#occupy(task, state, writer.submit({ type: "retryTask", ...plan }));
    return false;
  }

  #start(task: Task, state: KindState): void {
    this.#occupy(task, state, this.#run(task, state));
  }

  #occupy(task: Task, state: KindState, work: Promise<unknown>): void {
    const ended = work
      .catch(() => undefined)
      .then(() => {
        state.running.delete(task.id);
        // The next ones do not wait for the timer.
        if (state.running.size <= IN_FLIGHT_MAX[task.kind] / 2) this.#wake();
      });
    state.running.set(task.id, { task, ended });
  }

  async #run(task: Task, { handler, attempts: count }: KindState): Promise<void> {
    const { writer, now, log } = this.#options;
    const { signal } = this.#stopping;
    try {
      await handler(task, signal);
      count.ended += 1;
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      const attempts = task.attempts + 1;
      log?.warn("a task has failed", { kind: task.kind, rule: task.rule, attempts, reason });
      const isDead = error instanceof RefusedTextError || error instanceof DeadTaskError;
      count[isDead ? "dead" : "failed"] += 1;
      const dueMs = isDead ? now() : now() + computeBackoffMs(attempts);
      const run = error instanceof DeadTaskError ? error.run : undefined;
      const plan = { task: toAddress(task), attempts, dueMs, isDead, reason };
      // While nothing can be written, the task stays as it is.
      await writer
        .submit({ type: "retryTask", ...plan, ...(run === undefined ? {} : { run }) })
        .catch(() => undefined);
    }
  }
}

function toAddress({ id, seq }: Task): TaskAddress {
  return { id, seq };
}

// With jitter, so that tasks that failed together do not come back together.
function computeBackoffMs(attempts: number): number {
  const wait = Math.min(BACKOFF_MS_MAX, BACKOFF_MS_MIN * 2 ** Math.min(attempts - 1, 20));
  return wait * (0.5 + Math.random() / 2);
}
