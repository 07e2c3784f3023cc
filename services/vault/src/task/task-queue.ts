// Runs durable tasks: work that a commit has caused, until a later commit ends it. The queue is a table of the index.
//
//   commit ──► tasks (one row for each kind, rule, bucket, key, version)
//                 └──► due? ──► rules take turns ──► handler ──► one commit: its effect and the end of the task
//                                                       ├──► failed: due again after 1 s to 1 h
//                                                       └──► cannot succeed: dead, until people retry or discard it
import type { Logger } from "@platform/kernel/log";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { IndexConnection } from "../index/schema.ts";
import {
  type BoundedRetry,
  DeadTaskError,
  type TaskAddress,
  type TaskCount,
  type TaskKind,
} from "../model/task.ts";
import { RefusedTextError } from "../model/vector.ts";
import type { ReaderPool } from "../query/reader-pool.ts";
import type { IndexWriter } from "../transaction/writer.ts";
import {
  type DueRule,
  findDueTasks,
  findFirstTasks,
  findNextRule,
  findWaitingTask,
  type Task,
} from "./due-tasks.ts";

const LOOK_EVERY_MS = 500;
/** Interval of counting all tasks, for metrics. */
const COUNT_EVERY_MS = 10_000;
/** Tasks of a kind at the same time; embeddings are requested in batches, guests have threads of their own. */
const IN_FLIGHT_MAX: Readonly<Record<TaskKind, number>> = {
  "drop-vectors": 1,
  embed: 64,
  "embed-existing": 4,
  trigger: 16,
  "delete-remote": 16,
  restore: 4,
  "end-restore": 4,
  replicate: 256,
};
/** Kinds whose tasks of one key run one after the other, in the order of the changes. */
const ORDERED_KINDS: ReadonlySet<TaskKind> = new Set(["trigger", "replicate"]);
/** A task waits no longer than this for an earlier one of its key that is tried again. */
const ORDER_MS_MAX = 600_000;
/** Kinds whose tasks wait for earlier ones of their key however long these are tried. */
const STRICT_KINDS: ReadonlySet<TaskKind> = new Set(["replicate"]);
/** Rows of a rule that are read if the first ones are not enough. */
const DUE_ROWS_MAX = 1_000;
/** Tasks of one key that are read in one go: all that wait are sorted for it. */
const FIRSTS_READ = 64;
/** Keys whose first tasks are remembered. */
const FIRSTS_MAX = 1_000;
/** Rules that are looked at in one go; the next look continues behind them. */
const RULES_AT_ONCE = 256;
/** Of tasks that only become due later, and of those whose end is being committed. */
const DELAYED_LANE = "\0";
/** A lane is filled again when this share of its places is free. */
const FREE_SHARE = 1 / 4;
const BACKOFF_MS_MIN = 1_000;
const BACKOFF_MS_MAX = 3_600_000;

/**
 * Work of a task. Its effect and the end of the task are one commit, or may happen twice. An error plans another attempt.
 * `freePlace` gives the place in the lane to another task while the end is being committed.
 */
export type TaskHandler = (task: Task, signal: AbortSignal, freePlace: () => void) => Promise<void>;

/** Lanes of a kind: rules that share one take its places in turns, and a lane that stands still holds up no other. */
export interface TaskLanes {
  /** The lane of a rule; `undefined` if its tasks wait. */
  readonly find: (rule: DueRule) => string | undefined;
  /** Tasks of a lane that may run at the same time now; 0 while it is paused. */
  readonly countPlaces: (lane: string) => number;
}

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
  lane: string;
  readonly ended: Promise<void>;
}

/** The running tasks of a kind, and the rule whose turn was last. */
interface KindState {
  readonly handler: TaskHandler;
  readonly lanes: TaskLanes | undefined;
  readonly running: Map<number, Running>;
  readonly attempts: { ended: number; failed: number; dead: number };
  /** The first tasks of keys with many, in their order: later ones follow them. */
  readonly firsts: Map<string, Task[]>;
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
  /** Kinds that the next look is about. */
  readonly #woken = new Set<TaskKind>();
  /** Those of a look that is not due to the timer, which looks at all. */
  #looked: readonly TaskKind[] | undefined;

  constructor(options: TaskQueueOptions) {
    this.#options = options;
    this.#timer = every(
      LOOK_EVERY_MS,
      () => this.#startDue(this.#takeLooked()),
      () => undefined,
    );
    this.#counter = every(
      COUNT_EVERY_MS,
      async () => {
        await this.count();
      },
      () => undefined,
    );
    options.writer.onTasks = (kinds) => this.#wake(kinds);
  }

  /** Sets the handler of a kind, whose rules may have lanes. Tasks of kinds without a handler wait. */
  handle(kind: TaskKind, handler: TaskHandler, lanes?: TaskLanes): void {
    const attempts = { ended: 0, failed: 0, dead: 0 };
    const [running, firsts] = [new Map<number, Running>(), new Map<string, Task[]>()];
    this.#kinds.set(kind, { handler, lanes, running, attempts, firsts, last: undefined });
    this.#wake([kind]);
  }

  /** Looks for due tasks: a lane has more places than before. */
  wake(): void {
    this.#wake([...this.#kinds.keys()]);
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

  // Many commits in a row are one look, and only at the kinds that they are about: a look takes as long as some commits.
  #wake(kinds: readonly TaskKind[]): void {
    for (const kind of kinds) if (this.#kinds.has(kind)) this.#woken.add(kind);
    if (this.#woken.size === 0 || this.#isWoken || this.#stopping.signal.aborted) return;
    this.#isWoken = true;
    setImmediate(() => {
      this.#isWoken = false;
      if (this.#stopping.signal.aborted) return;
      this.#looked = [...this.#woken];
      this.#woken.clear();
      void this.#timer.run();
    });
  }

  #takeLooked(): readonly TaskKind[] {
    const looked = this.#looked ?? [...this.#kinds.keys()];
    this.#looked = undefined;
    return looked;
  }

  #startDue(kinds: readonly TaskKind[]): void {
    for (const kind of kinds) {
      const state = this.#kinds.get(kind);
      if (state === undefined) continue;
      const free = IN_FLIGHT_MAX[kind] - state.running.size;
      if (free > 0) this.#startKind(kind, state, free);
    }
  }

  // A task of each rule, then a second one of each, until all places are taken.
  #startKind(kind: TaskKind, state: KindState, free: number): void {
    const queues = this.#listDue(kind, state, free);
    for (let left = free; left > 0;) {
      const before = left;
      for (const { rule, lane, tasks } of queues) {
        const hasPlace = left > 0 && hasPlaceIn(state, lane);
        const task = hasPlace ? tasks.shift() : undefined;
        if (task === undefined) continue;
        state.last = rule;
        this.#start(task, state, lane);
        left -= 1;
      }
      if (left === before) return;
    }
  }

  #listDue(kind: TaskKind, state: KindState, free: number): DueQueue[] {
    const { index, now } = this.#options;
    const queues: DueQueue[] = [];
    const nowMs = now();
    let rule = findNextRule(index, kind, state.last);
    const first = rule;
    for (let looked = 0; rule !== undefined && looked < RULES_AT_ONCE; looked += 1) {
      const lane = state.lanes === undefined ? "" : state.lanes.find(rule);
      if (lane !== undefined && hasPlaceIn(state, lane)) {
        const tasks = this.#listDueOf(kind, state, rule, lane, free, nowMs);
        if (tasks.length > 0) queues.push({ rule, lane, tasks });
      }
      if (queues.length >= free) break;
      rule = findNextRule(index, kind, rule);
      if (rule?.bucket === first?.bucket && rule?.rule === first?.rule) break;
    }
    return queues;
  }

  #listDueOf(
    kind: TaskKind,
    state: KindState,
    rule: DueRule,
    lane: string,
    free: number,
    nowMs: number,
  ): Task[] {
    const { index } = this.#options;
    const places = Math.min(free, countPlaces(state, lane));
    let tasks: Task[] = [];
    // Those that run are among the first ones. Many changes of one key must not hide other keys behind them.
    const few = places + state.running.size;
    for (const rows of [few, few + DUE_ROWS_MAX]) {
      const due = findDueTasks(index, kind, rule, nowMs, rows);
      tasks = this.#chooseDue(due, kind, state, places, nowMs);
      if (tasks.length >= places || due.length < rows) break;
    }
    return tasks;
  }

  #chooseDue(
    due: readonly Task[],
    kind: TaskKind,
    state: KindState,
    places: number,
    nowMs: number,
  ): Task[] {
    if (!ORDERED_KINDS.has(kind))
      return due.filter(({ id }) => !state.running.has(id)).slice(0, places);
    const tasks: Task[] = [];
    const firsts = new Map<string, Task | undefined>();
    for (const task of due) {
      if (tasks.length >= places) break;
      if (state.running.has(task.id)) continue;
      const name = Buffer.from(task.key).toString("latin1");
      if (!firsts.has(name)) firsts.set(name, this.#findFirst(task, name, state));
      const next = this.#chooseInOrder(task, firsts.get(name), state, nowMs);
      if (next !== undefined && !tasks.some(({ id }) => id === next.id)) tasks.push(next);
    }
    return tasks;
  }

  // Of a key with many tasks, each look would read all of them.
  #findFirst(task: Task, key: string, { firsts }: KindState): Task | undefined {
    const { index } = this.#options;
    // Names of rules may contain anything.
    const name = `${task.bucket}/${task.rule.length}/${task.rule}/${key}`;
    const known = firsts.get(name) ?? [];
    for (; known.length > 0; known.shift()) {
      const first = findWaitingTask(index, known[0]!);
      if (first !== undefined) return first;
    }
    firsts.delete(name);
    const read = findFirstTasks(index, task, FIRSTS_READ);
    if (firsts.size >= FIRSTS_MAX) firsts.clear();
    if (read.length === FIRSTS_READ) firsts.set(name, read);
    return read[0];
  }

  // The first task of the key, if it is due: those behind it may have become due before it. If it is tried again later, this one
  // becomes due with it, so that it does not hide others.
  #chooseInOrder(
    task: Task,
    first: Task | undefined,
    state: KindState,
    nowMs: number,
  ): Task | undefined {
    const { kind, attempts, added } = task;
    const isStrict = STRICT_KINDS.has(kind);
    if (first === undefined || first.id === task.id) return task;
    if (!isStrict && nowMs - (added ?? 0) > ORDER_MS_MAX) return task;
    if (state.running.has(first.id)) return undefined;
    if (first.due <= nowMs) return first;
    const dueMs = isStrict ? first.due : Math.min(first.due, (added ?? 0) + ORDER_MS_MAX);
    const plan = { task, attempts, dueMs, isDead: false, reason: undefined };
    const work = this.#options.writer.submit({ type: "retryTask", ...plan });
    this.#occupy(task, state, DELAYED_LANE, work);
    return undefined;
  }

  #start(task: Task, state: KindState, lane: string): void {
    const freePlace = (): void => {
      const running = state.running.get(task.id);
      if (running === undefined || running.lane !== lane) return;
      running.lane = DELAYED_LANE;
      if (hasRoom(task.kind, state, lane)) this.#wake([task.kind]);
    };
    this.#occupy(task, state, lane, this.#run(task, state, freePlace));
  }

  #occupy(task: Task, state: KindState, lane: string, work: Promise<unknown>): void {
    const ended = work
      .catch(() => undefined)
      .then(() => {
        state.running.delete(task.id);
        // The next ones do not wait for the timer.
        if (hasRoom(task.kind, state, lane)) this.#wake([task.kind]);
      });
    state.running.set(task.id, { task, lane, ended });
  }

  async #run(
    task: Task,
    { handler, attempts: count }: KindState,
    freePlace: () => void,
  ): Promise<void> {
    const { writer, now, log } = this.#options;
    const { signal } = this.#stopping;
    try {
      await handler(task, signal, freePlace);
      count.ended += 1;
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      const attempts = task.attempts + 1;
      log?.warn("a task has failed", { kind: task.kind, rule: task.rule, attempts, reason });
      const isDead = error instanceof RefusedTextError || error instanceof DeadTaskError;
      count[isDead ? "dead" : "failed"] += 1;
      const dueMs = isDead ? now() : now() + computeBackoffMs(attempts, findRetryMax(error));
      const run = error instanceof DeadTaskError ? error.run : undefined;
      const plan = { task: toAddress(task), attempts, dueMs, isDead, reason };
      // While nothing can be written, the task stays as it is.
      await writer
        .submit({ type: "retryTask", ...plan, ...(run === undefined ? {} : { run }) })
        .catch(() => undefined);
    }
  }
}

/** Due tasks of a rule. */
interface DueQueue {
  readonly rule: DueRule;
  readonly lane: string;
  readonly tasks: Task[];
}

function countInLane({ running }: KindState, lane: string): number {
  let count = 0;
  for (const one of running.values()) if (one.lane === lane) count += 1;
  return count;
}

// So many that the next ones are read together.
function hasRoom(kind: TaskKind, state: KindState, lane: string): boolean {
  if (lane === DELAYED_LANE) return true;
  if (state.lanes === undefined) return state.running.size <= IN_FLIGHT_MAX[kind] / 2;
  return countInLane(state, lane) <= state.lanes.countPlaces(lane) * (1 - FREE_SHARE);
}

function countPlaces(state: KindState, lane: string): number {
  if (state.lanes === undefined) return Number.MAX_SAFE_INTEGER;
  return state.lanes.countPlaces(lane) - countInLane(state, lane);
}

function hasPlaceIn(state: KindState, lane: string): boolean {
  return state.lanes === undefined || countPlaces(state, lane) > 0;
}

function toAddress({ id, seq }: Task): TaskAddress {
  return { id, seq };
}

function findRetryMax(error: unknown): number {
  const { retryMsMax } = (error ?? {}) as Partial<BoundedRetry>;
  return Math.min(BACKOFF_MS_MAX, retryMsMax ?? BACKOFF_MS_MAX);
}

// With jitter, so that tasks that failed together do not come back together.
function computeBackoffMs(attempts: number, max: number): number {
  const wait = Math.min(max, BACKOFF_MS_MIN * 2 ** Math.min(attempts - 1, 20));
  return wait * (0.5 + Math.random() / 2);
}
