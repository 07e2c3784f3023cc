// The main thread's side of the writers: while one group is committed on all copies of the index, the next one is
// collected.
import { StoreError } from "../model/store-error.ts";
import type { Operation, OperationResult } from "./operations.ts";
import { Replica, type ReplicaResult } from "./replica.ts";
import { copyIndex } from "../index/snapshot.ts";
import type { GroupWatcher } from "./group-watcher.ts";
import type { TaskKind } from "../model/task.ts";
import type { IndexTotals, Outcome, TaskCounts, WriterLimits } from "./writer-context.ts";
import type { GroupRequest, GroupResponse, WriterReady } from "./writer-messages.ts";

/** Commits an operation: at once, or together with others. */
export type Submit = <T extends Operation>(operation: T) => Promise<OperationResult<T>>;

interface Waiter {
  operation: Operation;
  /** It belongs to the same group as the one before. */
  isBound: boolean;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/** Operations per transaction. */
const GROUP_MAX = 1_000;

/** Operations that are buffered for a copy of the index in the making; beyond that the copy is abandoned. */
const CAPTURED_MAX = 200_000;

/** Options of the writer. */
export interface IndexWriterOptions {
  /** The copies of the index, which must be at the same group. A single one on a single drive. */
  replicas: readonly { slot: number; path: string }[];
  /** Copies that must have committed before an operation resolves. */
  replicasMin?: number;
  limits: WriterLimits;
  /** Operations that may wait; more are refused with `SlowDown`. */
  waitingMax: number;
  watcher?: GroupWatcher;
}

interface Capture {
  groups: GroupRequest[];
  operations: number;
}

/**
 * Passes operations to the writer threads, in the same order for each copy of the index. A resolved promise means that the
 * operation is on disk. A failing copy is dropped as long as others have committed.
 */
export class IndexWriter {
  readonly ready: WriterReady;
  /** Drives that some copy of the index marked as incomplete at the start. */
  readonly drivesBehind: readonly number[];
  totals: IndexTotals;
  commits = 0;
  committedOperations = 0;
  commitMs = 0;
  /** The reason if the writer has stopped permanently. */
  stopped: string | undefined;
  /** Called when a copy was dropped. */
  onLost: (slot: number, reason: string) => void = () => undefined;
  /** Called after a group that has added tasks, with their kinds. */
  onTasks: (kinds: readonly TaskKind[]) => void = () => undefined;
  readonly #limits: WriterLimits;
  readonly #waitingMax: number;
  readonly #replicasMin: number;
  readonly #isAlone: boolean;
  readonly #watcher: GroupWatcher | undefined;
  #replicas: Replica[];
  #commit: number;
  #sequence: number;
  #waiting: Waiter[] = [];
  #running: Waiter[] = [];
  #scheduled = false;
  // The buffer of a copy of the index in the making.
  #capture: Capture | undefined;
  #isHeld = false;
  #idle: (() => void)[] = [];
  #closed = false;

  private constructor(replicas: Replica[], options: IndexWriterOptions) {
    this.#replicas = replicas;
    this.#isAlone = replicas.length === 1 && options.replicasMin === undefined;
    this.#replicasMin = options.replicasMin ?? 1;
    this.#limits = options.limits;
    this.#waitingMax = options.waitingMax;
    this.#watcher = options.watcher;
    this.ready = replicas[0]!.ready;
    this.drivesBehind = [...new Set(replicas.flatMap(({ ready }) => ready.drivesBehind))];
    this.totals = this.ready.totals;
    this.#commit = this.ready.commit;
    this.#sequence = Math.max(...replicas.map(({ ready }) => ready.sequence));
  }

  /** Starts the threads. A copy of the index that cannot be opened is dropped; rejects if it is the only one. */
  static async open(options: IndexWriterOptions): Promise<IndexWriter> {
    const { limits } = options;
    const opened: Replica[] = [];
    let failure: unknown = new TypeError("an index needs at least one copy");
    for (const replica of options.replicas) {
      const generation = opened[0]?.ready.generation;
      try {
        opened.push(await Replica.open({ ...replica, limits, ...(generation && { generation }) }));
      } catch (error) {
        failure = error;
      }
    }
    if (opened.length === 0) throw failure;
    return new IndexWriter(opened, options);
  }

  /** The slots of the copies that are written. */
  get slots(): number[] {
    return this.#replicas.map(({ slot }) => slot);
  }

  /** Drops a copy: its drive is gone. */
  drop(slot: number, reason: string): void {
    const replica = this.#replicas.find((one) => one.slot === slot);
    if (replica === undefined) return;
    this.#replicas = this.#replicas.filter((one) => one !== replica);
    void replica.abandon(reason);
    this.onLost(slot, reason);
  }

  /**
   * Makes a copy of the index at `path`, marks its drive as incomplete, and writes it from then on. Commits meanwhile are
   * buffered for it; writes wait only until it has caught up.
   */
  async add(slot: number, path: string): Promise<void> {
    const [source] = this.#replicas;
    if (source === undefined || this.#capture !== undefined) {
      throw new StoreError("ServiceUnavailable", "The index cannot be copied now");
    }
    const capture: Capture = { groups: [], operations: 0 };
    this.#capture = capture;
    let replica: Replica | undefined;
    try {
      await copyIndex(source.path, path, slot, this.#limits.logBytesMax);
      const { generation } = this.ready;
      replica = await Replica.open({ slot, path, limits: this.#limits, generation });
      this.#isHeld = true;
      while (this.#running.length > 0) await new Promise(setImmediate);
      for (const group of capture.groups) {
        if (group.commit <= replica.ready.commit) continue;
        const result = await replica.run(group);
        if ("lost" in result || !result.isCommitted) {
          throw new StoreError("ServiceUnavailable", "The copy of the index cannot be written");
        }
      }
      if (this.#capture !== capture) {
        throw new StoreError("ServiceUnavailable", "Too much was written meanwhile");
      }
      this.#replicas.push(replica);
    } catch (error) {
      void replica?.abandon("it was not completed");
      throw error;
    } finally {
      if (this.#capture === capture) this.#capture = undefined;
      this.#isHeld = false;
      this.#send();
    }
  }

  /** Operations that may wait. */
  get waitingMax(): number {
    return this.#waitingMax;
  }

  get waiting(): number {
    return this.#waiting.length + this.#running.length;
  }

  /** Applies an operation. Resolves after its commit, or rejects with its refusal. */
  submit<T extends Operation>(operation: T): Promise<OperationResult<T>> {
    if (this.#closed || this.stopped !== undefined) {
      return Promise.reject(
        new StoreError("ServiceUnavailable", this.stopped ?? "The store is closed"),
      );
    }
    if (this.#waiting.length >= this.#waitingMax) {
      return Promise.reject(new StoreError("SlowDown", "Too many writes wait for the disk"));
    }
    return new Promise<OperationResult<T>>((resolve, reject) => {
      const settle = resolve as (value: unknown) => void;
      this.#waiting.push({ operation, isBound: false, resolve: settle, reject });
      this.#schedule();
    });
  }

  /**
   * Applies operations in one group, one after the other, with nothing in between: all are on disk, or none. The outcomes are
   * those of the operations themselves.
   */
  submitTogether<T extends Operation>(
    operations: readonly Operation[],
    last: T,
  ): { outcomes: Promise<PromiseSettledResult<unknown>[]>; last: Promise<OperationResult<T>> } {
    const bound = operations.map((operation, index) => this.#enqueue(operation, index > 0));
    const end = this.#enqueue(last, operations.length > 0) as Promise<OperationResult<T>>;
    return { outcomes: Promise.allSettled(bound), last: end };
  }

  // Beyond the limit of the queue: its callers take care not to submit too many.
  #enqueue(operation: Operation, isBound: boolean): Promise<unknown> {
    if (this.#closed || this.stopped !== undefined) {
      return Promise.reject(
        new StoreError("ServiceUnavailable", this.stopped ?? "The store is closed"),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ operation, isBound, resolve, reject });
      this.#schedule();
    });
  }

  /** Ends the threads after all submitted operations have been settled. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.waiting > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
    await Promise.all(this.#replicas.map((replica) => replica.close()));
  }

  // Operations of one turn go together. Operations that arrive during a commit go into the next group, so that requests are
  // read while a group is committed.
  #schedule(): void {
    if (this.#scheduled || this.#running.length > 0) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#isHeld || this.#running.length > 0 || this.#waiting.length === 0) return;
    const replicas = this.#replicas;
    if (replicas.length < this.#replicasMin) {
      this.#refuse("Too few drives are there to write");
      return;
    }
    this.#running = this.#waiting.splice(0, this.#measureGroup());
    this.#commit += 1;
    const request: GroupRequest = {
      operations: this.#running.map(({ operation }) => operation),
      commit: this.#commit,
      sequence: this.#sequence,
    };
    this.#keep(request);
    this.#watcher?.begin(request.operations);
    void Promise.all(replicas.map((replica) => replica.run(request))).then((results) =>
      this.#settle(replicas, results),
    );
  }

  #measureGroup(): number {
    let length = Math.min(GROUP_MAX, this.#waiting.length);
    while (this.#waiting[length]?.isBound === true) length += 1;
    return length;
  }

  #keep(request: GroupRequest): void {
    const capture = this.#capture;
    if (capture === undefined) return;
    capture.groups.push(request);
    capture.operations += request.operations.length;
    // The copy fails when it detects that it is outdated.
    if (capture.operations > CAPTURED_MAX) this.#capture = undefined;
  }

  #settle(replicas: readonly Replica[], results: readonly ReplicaResult[]): void {
    const answers = results.filter((result): result is GroupResponse => "outcomes" in result);
    const committed = answers.filter(({ isCommitted }) => isCommitted);
    const response = committed[0] ?? answers.find(({ stopped }) => stopped === undefined);
    if (this.#isAlone || response === undefined) {
      this.#settleAlone(answers[0], results[0]);
      return;
    }
    for (const [index, result] of results.entries()) {
      const isInStep =
        "outcomes" in result &&
        result.stopped === undefined &&
        result.isCommitted === response.isCommitted;
      if (!isInStep) this.drop(replicas[index]!.slot, describeLoss(result));
    }
    if (response.isCommitted && committed.length < this.#replicasMin) {
      this.#failRunning("too few drives have it");
      this.#sequence = response.sequence;
      this.#send();
      return;
    }
    this.#finish(response);
  }

  // Without another copy, the failure stops the writer.
  #settleAlone(answer: GroupResponse | undefined, result: ReplicaResult | undefined): void {
    if (answer === undefined) {
      const reason = result === undefined ? "no drive is left" : describeLoss(result);
      this.#failRunning(reason);
      this.#stop(reason);
      return;
    }
    if (answer.stopped !== undefined) this.#stop(answer.stopped);
    this.#finish(answer);
  }

  #finish(response: GroupResponse): void {
    const settled = this.#takeRunning();
    const kinds = listGrown(this.totals.addedTasks, response.totals.addedTasks);
    this.totals = response.totals;
    this.#sequence = response.sequence;
    this.commits += 1;
    this.committedOperations += settled.length;
    this.commitMs += response.commitMs;
    this.#send();
    for (const [index, waiter] of settled.entries()) {
      settleWaiter(waiter, response.outcomes[index]);
    }
    if (kinds.length > 0) this.onTasks(kinds);
    this.#tellIdle();
  }

  #failRunning(reason: string): void {
    const error = new StoreError("InternalError", `The index cannot be written: ${reason}`);
    for (const waiter of this.#takeRunning()) waiter.reject(error);
    this.#tellIdle();
  }

  // Before anyone is answered.
  #takeRunning(): Waiter[] {
    const settled = this.#running;
    this.#running = [];
    this.#watcher?.end();
    return settled;
  }

  #refuse(reason: string): void {
    const error = new StoreError("ServiceUnavailable", reason);
    for (const waiter of this.#waiting.splice(0)) waiter.reject(error);
    this.#tellIdle();
  }

  #stop(reason: string): void {
    this.stopped ??= reason;
    this.#refuse(reason);
  }

  #tellIdle(): void {
    if (this.waiting > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

function settleWaiter(waiter: Waiter, outcome: Outcome | undefined): void {
  if (outcome === undefined) {
    waiter.reject(new StoreError("InternalError", "the writer gave no answer"));
  } else if ("value" in outcome) {
    waiter.resolve(outcome.value);
  } else {
    waiter.reject(new StoreError(outcome.code, outcome.message, outcome.details));
  }
}

function describeLoss(result: ReplicaResult): string {
  if ("lost" in result) return result.lost;
  return result.stopped ?? "it did not commit what the others have committed";
}

function listGrown(before: TaskCounts, after: TaskCounts): TaskKind[] {
  if (before === after) return [];
  return (Object.keys(after) as TaskKind[]).filter((kind) => after[kind] !== before[kind]);
}
