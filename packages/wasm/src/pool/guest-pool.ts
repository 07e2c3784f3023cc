// Runs guests on threads with limits on time, memory and queue length.
//
//   call ──► queue (bounded, FIFO, one module never occupies all threads)
//                └──► thread ──► result
//                        └──► too slow, out of memory: the thread is terminated and replaced, the others continue
import { createHash } from "node:crypto";
import { GuestError } from "../errors.ts";
import type { GuestModule } from "../module/guest-module.ts";
import { PAGE_BYTES, sandboxModule } from "../module/sandbox.ts";
import { type Task, ThreadHandle } from "./thread-handle.ts";

/** Options of {@link GuestPool}. The defaults suit small message transforms. */
export interface GuestPoolOptions {
  /** Maximum number of threads, started on demand. Default 2. */
  threads?: number;
  /** Timeout of a call in ms. Default 100. */
  callMsMax?: number;
  /** Timeout of compiling a module in ms. Default 5 000. */
  compileMsMax?: number;
  /** Maximum size of a module. Default 8 MiB. */
  moduleBytesMax?: number;
  /** Maximum size of all memories of one guest. Default 64 MiB. */
  memoryBytesMax?: number;
  /** Maximum entries of all tables of one guest. Default 100 000. */
  tableEntriesMax?: number;
  /** Maximum size of a result. Default 1 MiB. */
  outputBytesMax?: number;
  /** Maximum number of queued calls; more are refused with `overloaded`. Default 1 000. */
  waitingMax?: number;
  /** Maximum number of compiled modules per thread. Default 64. */
  modulesMax?: number;
  /** Calls of a module fail immediately for this time in ms after three consecutive timeouts. Default 10 000. */
  suspensionMs?: number;
}

const SLOW_CALLS_MAX = 3;
/** Maximum number of modules with recorded strikes. */
const STRIKES_MAX = 1_000;

interface Strike {
  count: number;
  until: number;
}

/**
 * Runs guests.
 *
 *     const guests = new GuestPool({ callMsMax: 50 });
 *     const module = await guests.load(bytes);
 *     const result = await guests.call(module, Buffer.from("hello"));
 *     await guests.close();
 */
export class GuestPool {
  readonly #options: Required<GuestPoolOptions>;
  readonly #threads = new Set<ThreadHandle>();
  readonly #strikes = new Map<string, Strike>();
  #waiting: Task[] = [];
  #isClosed = false;

  constructor(options: GuestPoolOptions = {}) {
    this.#options = {
      threads: 2,
      callMsMax: 100,
      compileMsMax: 5_000,
      moduleBytesMax: 8 * 1024 * 1024,
      memoryBytesMax: 64 * 1024 * 1024,
      tableEntriesMax: 100_000,
      outputBytesMax: 1024 * 1024,
      waitingMax: 1_000,
      modulesMax: 64,
      suspensionMs: 10_000,
      ...options,
    };
  }

  /** Validates, sandboxes and compiles a module. Rejects with a GuestError. */
  async load(bytes: Uint8Array): Promise<GuestModule> {
    const { moduleBytesMax, memoryBytesMax, tableEntriesMax } = this.#options;
    if (bytes.length > moduleBytesMax)
      throw new GuestError(
        "module-too-large",
        `The module has ${bytes.length} bytes; the limit is ${moduleBytesMax}.`,
      );
    const memoryPagesMax = Math.floor(memoryBytesMax / PAGE_BYTES);
    const sandboxed = sandboxModule(bytes, { memoryPagesMax, tableEntriesMax });
    const module: GuestModule = {
      hash: createHash("sha256").update(bytes).digest("hex"),
      ...sandboxed,
    };
    await this.#enqueue(module, undefined);
    return module;
  }

  /** Calls the guest with a copy of `input` and returns its result. Rejects with a GuestError. */
  async call(module: GuestModule, input: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    const strike = this.#strikes.get(module.hash);
    if (strike !== undefined && strike.until > performance.now())
      throw new GuestError(
        "time-limit",
        `The guest was too slow ${strike.count} times in a row and is temporarily suspended.`,
      );
    const copy = new Uint8Array(input.length);
    copy.set(input);
    const output = await this.#enqueue(module, copy);
    return output!;
  }

  /** Terminates all threads. Active and queued calls are rejected with `closed`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const task of waiting) task.reject(createClosedError());
    const threads = [...this.#threads];
    this.#threads.clear();
    await Promise.all(threads.map((thread) => thread.end(createClosedError())));
  }

  #enqueue(
    module: GuestModule,
    input: Uint8Array<ArrayBuffer> | undefined,
  ): Promise<Uint8Array<ArrayBuffer> | undefined> {
    if (this.#isClosed) return Promise.reject(createClosedError());
    if (this.#waiting.length >= this.#options.waitingMax)
      return Promise.reject(
        new GuestError("overloaded", `${this.#waiting.length} calls are already queued.`),
      );
    return new Promise((resolve, reject) => {
      this.#waiting.push({ module, input, resolve, reject });
      this.#assign();
    });
  }

  #assign(): void {
    while (this.#waiting.length > 0) {
      const index = this.#findNext();
      if (index < 0) return;
      const thread = this.#findThread();
      if (thread === undefined) return;
      const [task] = this.#waiting.splice(index, 1);
      thread.begin(task!);
    }
  }

  // One thread is reserved for other modules, so that a slow module delays only its own callers.
  #findNext(): number {
    const most = Math.max(1, this.#options.threads - 1);
    const busy = new Map<string, number>();
    for (const { task } of this.#threads)
      if (task !== undefined) busy.set(task.module.hash, (busy.get(task.module.hash) ?? 0) + 1);
    return this.#waiting.findIndex((task) => (busy.get(task.module.hash) ?? 0) < most);
  }

  #findThread(): ThreadHandle | undefined {
    for (const thread of this.#threads) {
      if (thread.isGone) this.#threads.delete(thread);
      else if (thread.task === undefined) return thread;
    }
    if (this.#threads.size >= this.#options.threads) return undefined;
    const thread = new ThreadHandle({
      ...this.#options,
      onIdle: (idle, task, error) => this.#onIdle(idle, task, error),
    });
    this.#threads.add(thread);
    return thread;
  }

  #onIdle(thread: ThreadHandle, task: Task, error: GuestError | undefined): void {
    if (thread.isGone) this.#threads.delete(thread);
    if (task.input !== undefined) this.#judge(task.module.hash, error);
    if (!this.#isClosed) this.#assign();
  }

  #judge(hash: string, error: GuestError | undefined): void {
    const strike = this.#strikes.get(hash);
    if (error?.code !== "time-limit") {
      if (strike !== undefined) this.#strikes.delete(hash);
      return;
    }
    const count = (strike?.count ?? 0) + 1;
    const until = count < SLOW_CALLS_MAX ? 0 : performance.now() + this.#options.suspensionMs;
    this.#strikes.delete(hash);
    this.#strikes.set(hash, { count, until });
    if (this.#strikes.size > STRIKES_MAX) {
      const [oldest] = this.#strikes.keys();
      this.#strikes.delete(oldest!);
    }
  }
}

function createClosedError(): GuestError {
  return new GuestError("closed", "The guest pool is closed.");
}
