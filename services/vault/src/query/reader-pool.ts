// Queries that read many rows run off the event loop, on the reader thread with the least work.
import { Worker } from "node:worker_threads";
import { StoreError } from "../model/store-error.ts";
import type { QueryArguments, QueryName, QueryResult } from "./reader-queries.ts";
import type { ReaderResponse } from "./reader-thread.ts";

interface Waiter {
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

interface Reader {
  worker: Worker;
  waiters: Map<number, Waiter>;
  ended: Promise<void>;
  /** Runs while no query waits. */
  idle?: NodeJS.Timeout;
}

/** Idle threads take 8 MB each. */
const IDLE_MS = 60_000;

/** A pool of reader threads. One is started when a query would wait for the others, and ends when it was idle for a while. */
export class ReaderPool {
  /** Called if the index cannot be read. Must call `switchTo` before it returns true. */
  onFailure: () => boolean = () => false;
  readonly #threads: number;
  readonly #waitingMax: number;
  readonly #idleMs: number;
  #path: string;
  #readers: Reader[] = [];
  #nextId = 1;
  #isClosed = false;

  /** Up to `waitingMax` queries may wait in total; more are refused with `SlowDown`. */
  constructor(path: string, threads: number, waitingMax: number, idleMs = IDLE_MS) {
    this.#threads = threads;
    this.#waitingMax = waitingMax;
    this.#idleMs = idleMs;
    this.#path = path;
  }

  /** Threads that run. */
  get count(): number {
    return this.#readers.length;
  }

  /** Continues with another copy of the index, which answers the pending queries as well. */
  switchTo(path: string): void {
    const before = this.#readers;
    this.#path = path;
    this.#readers = [];
    for (const { worker } of before) worker.postMessage("close");
  }

  /** Runs a query. */
  async query<Name extends QueryName>(
    name: Name,
    ...values: QueryArguments<Name>
  ): Promise<QueryResult<Name>> {
    const readers = this.#readers;
    try {
      return await this.#ask(name, ...values);
    } catch (error) {
      const isLost = error instanceof StoreError && error.code === "InternalError";
      if (!isLost || (readers === this.#readers && !this.onFailure())) throw error;
      return this.#ask(name, ...values);
    }
  }

  #ask<Name extends QueryName>(
    name: Name,
    ...values: QueryArguments<Name>
  ): Promise<QueryResult<Name>> {
    if (this.#isClosed) {
      return Promise.reject(new StoreError("ServiceUnavailable", "The store is closed"));
    }
    const waiting = this.#readers.reduce((sum, { waiters }) => sum + waiters.size, 0);
    if (waiting >= this.#waitingMax) {
      return Promise.reject(new StoreError("SlowDown", "Too many listings wait"));
    }
    const reader = this.#pickReader();
    clearTimeout(reader.idle);
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise<QueryResult<Name>>((resolve, reject) => {
      reader.waiters.set(id, { resolve: resolve as (value: unknown) => void, reject });
      reader.worker.postMessage({ id, name, values });
    });
  }

  #pickReader(): Reader {
    const [first, ...others] = this.#readers;
    if (first !== undefined) {
      const least = others.reduce((a, b) => (b.waiters.size < a.waiters.size ? b : a), first);
      if (least.waiters.size === 0 || this.#readers.length === this.#threads) return least;
    }
    const readers = this.#readers;
    const remove = (): void => {
      const index = readers.indexOf(started);
      if (index !== -1) readers.splice(index, 1);
    };
    const started = startReader(this.#path, () => {
      started.idle = setTimeout(() => {
        remove();
        started.worker.postMessage("close");
      }, this.#idleMs).unref();
    });
    readers.push(started);
    // One that has failed would never answer.
    void started.ended.then(remove);
    return started;
  }

  /** Ends the threads after they have answered. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(
      this.#readers.map(({ worker, ended }) => {
        worker.postMessage("close");
        return ended;
      }),
    );
  }
}

function startReader(path: string, onIdle: () => void): Reader {
  const worker = new Worker(new URL("./reader-thread.ts", import.meta.url), {
    workerData: { path },
  });
  const waiters = new Map<number, Waiter>();
  worker.on("message", (response: ReaderResponse) => {
    const waiter = waiters.get(response.id);
    waiters.delete(response.id);
    if ("error" in response) waiter?.reject(failed(response.error));
    else waiter?.resolve(response.value);
    if (waiters.size === 0) onIdle();
  });
  const failAll = (reason: string) => {
    for (const waiter of waiters.values()) waiter.reject(failed(reason));
    waiters.clear();
  };
  worker.on("error", (error: unknown) => {
    failAll(error instanceof Error ? error.message : String(error));
  });
  const ended = new Promise<void>((resolve) => {
    worker.once("exit", () => {
      failAll("the reader thread has ended");
      resolve();
    });
  });
  return { worker, waiters, ended };
}

function failed(reason: string): StoreError {
  return new StoreError("InternalError", `The index cannot be read: ${reason}`);
}
