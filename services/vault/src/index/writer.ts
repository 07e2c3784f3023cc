// The main thread's end of the writer: while one group is committed, the next one gathers.
import { Worker } from "node:worker_threads";
import { StoreError } from "../store-error.ts";
import type { Operation, OperationResult } from "./operation.ts";
import type { IndexTotals, WriterLimits } from "./writer-context.ts";
import type { GroupResponse, Outcome, WriterData, WriterReady } from "./writer-messages.ts";

interface Waiter {
  operation: Operation;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/** Operations that one transaction covers at most. */
const GROUP_MAX = 1_000;

/** How the writer is opened. */
export interface IndexWriterOptions {
  path: string;
  limits: WriterLimits;
  /** Operations that may wait; one more is refused with `SlowDown`. */
  waitingMax: number;
}

/** Hands operations to the writer thread, in order. What resolves is on the disk. */
export class IndexWriter {
  readonly ready: WriterReady;
  totals: IndexTotals;
  commits = 0;
  committedOperations = 0;
  commitMs = 0;
  /** Why the writer has stopped for good, if it has. */
  stopped: string | undefined;
  readonly #worker: Worker;
  readonly #waitingMax: number;
  #waiting: Waiter[] = [];
  #running: Waiter[] = [];
  #scheduled = false;
  readonly #ended: Promise<void>;
  #idle: (() => void)[] = [];
  #closed = false;

  private constructor(worker: Worker, ready: WriterReady, waitingMax: number) {
    this.#worker = worker;
    this.ready = ready;
    this.totals = ready.totals;
    this.#waitingMax = waitingMax;
    worker.on("message", (response: GroupResponse) => this.#settle(response));
    worker.on("error", (error: unknown) =>
      this.#fail(error instanceof Error ? error.message : String(error)),
    );
    this.#ended = new Promise((resolve) => {
      worker.once("exit", () => {
        if (!this.#closed) this.#fail("the writer thread has ended");
        resolve();
      });
    });
  }

  /** Starts the thread; rejects where the index cannot be opened. */
  static async open({ path, limits, waitingMax }: IndexWriterOptions): Promise<IndexWriter> {
    const workerData: WriterData = { path, limits };
    const worker = new Worker(new URL("./writer-thread.ts", import.meta.url), { workerData });
    const ready = await new Promise<WriterReady>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    worker.removeAllListeners("error");
    return new IndexWriter(worker, ready, waitingMax);
  }

  get waiting(): number {
    return this.#waiting.length + this.#running.length;
  }

  /** Applies an operation; resolves when it is committed, rejects with what refused it. */
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
      this.#waiting.push({ operation, resolve: resolve as (value: unknown) => void, reject });
      this.#schedule();
    });
  }

  /** Resolves when everything submitted has been settled, and ends the thread. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.waiting > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
    this.#worker.postMessage("close");
    await this.#ended;
  }

  // What is submitted within one turn of the event loop goes together.
  #schedule(): void {
    if (this.#scheduled || this.#running.length > 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#running.length > 0 || this.#waiting.length === 0) return;
    this.#running = this.#waiting.splice(0, GROUP_MAX);
    this.#worker.postMessage({ operations: this.#running.map(({ operation }) => operation) });
  }

  #settle(response: GroupResponse): void {
    const settled = this.#running;
    this.#running = [];
    this.totals = response.totals;
    this.commits += 1;
    this.committedOperations += settled.length;
    this.commitMs += response.commitMs;
    if (response.stopped !== undefined) this.#stop(response.stopped);
    this.#send();
    for (const [index, waiter] of settled.entries()) {
      settleWaiter(waiter, response.outcomes[index]);
    }
    this.#tellIdle();
  }

  #fail(reason: string): void {
    const error = new StoreError("InternalError", `The index cannot be written: ${reason}`);
    for (const waiter of this.#running.splice(0)) waiter.reject(error);
    this.#stop(reason);
    this.#tellIdle();
  }

  #stop(reason: string): void {
    this.stopped ??= reason;
    const error = new StoreError("ServiceUnavailable", reason);
    for (const waiter of this.#waiting.splice(0)) waiter.reject(error);
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
