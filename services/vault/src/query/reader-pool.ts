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
}

/** A pool of reader threads. A thread is started when a query would wait for the others: idle ones take 8 MB each. */
export class ReaderPool {
  /** Called if the index cannot be read. Must call `switchTo` before it returns true. */
  onFailure: () => boolean = () => false;
  readonly #threads: number;
  readonly #waitingMax: number;
  #path: string;
  #readers: Reader[] = [];
  #nextId = 1;
  #isClosed = false;

  /** Up to `waitingMax` queries may wait in total; more are refused with `SlowDown`. */
  constructor(path: string, threads: number, waitingMax: number) {
    this.#threads = threads;
    this.#waitingMax = waitingMax;
    this.#path = path;
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
    const started = startReader(this.#path);
    const readers = this.#readers;
    readers.push(started);
    // One that has failed would never answer.
    void started.ended.then(() => readers.splice(readers.indexOf(started), 1));
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

function startReader(path: string): Reader {
  const worker = new Worker(new URL("./reader-thread.ts", import.meta.url), {
    workerData: { path },
  });
  const waiters = new Map<number, Waiter>();
  worker.on("message", (response: ReaderResponse) => {
    const waiter = waiters.get(response.id);
    waiters.delete(response.id);
    if ("error" in response) waiter?.reject(failed(response.error));
    else waiter?.resolve(response.value);
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
