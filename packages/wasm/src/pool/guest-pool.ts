// Guests on threads of their own: what they may take, who waits, and what becomes of those that misbehave.
//
//   call ──► waiting (bounded, first come first served, one module never has every thread)
//                └──► thread ──► answer
//                        └──► too slow, out of memory: the thread is ended and replaced, the others go on
import { createHash } from "node:crypto";
import { GuestError } from "../errors.ts";
import type { GuestAbi } from "../module/abi.ts";
import { PAGE_BYTES, fenceModule } from "../module/fence.ts";
import { ThreadHandle } from "./thread-handle.ts";
import type { Task } from "./thread-handle.ts";

/** What guests may take. Each has a default that suits small transforms of messages. */
export type GuestPoolOptions = {
  /** Threads, started when they are first needed. Default 2. */
  threads?: number;
  /** How long a call may take, in ms. Default 100. */
  callMsMax?: number;
  /** How long compiling a module may take, in ms. Default 5 000. */
  compileMsMax?: number;
  /** Default 8 MiB. */
  moduleBytesMax?: number;
  /** All memories of one guest. Default 64 MiB. */
  memoryBytesMax?: number;
  /** All tables of one guest. Default 100 000. */
  tableEntriesMax?: number;
  /** The longest result. Default 1 MiB. */
  outputBytesMax?: number;
  /** Calls that wait for a thread; one more is refused as `overloaded`. Default 1 000. */
  waitingMax?: number;
  /** Compiled modules kept per thread. Default 64. */
  modulesMax?: number;
  /** After three calls in a row that were too slow a module fails at once for this long, in ms. Default 10 000. */
  suspensionMs?: number;
};

/** A module that was checked, bounded and compiled once. A plain value: keep it, and give it to `call`. */
export type GuestModule = {
  /** SHA-256 of the module as it was given, in hex. */
  readonly hash: string;
  readonly abi: GuestAbi;
  /** The bounded module. */
  readonly bytes: Uint8Array<ArrayBuffer>;
};

const SLOW_CALLS_MAX = 3;
/** Modules whose slowness is remembered. */
const OFFENDERS_MAX = 1_000;

type Offence = { count: number; until: number };

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
  readonly #offences = new Map<string, Offence>();
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

  /** Checks, bounds and compiles a module. Rejects with a GuestError that says what is wrong with it. */
  async load(bytes: Uint8Array): Promise<GuestModule> {
    const { moduleBytesMax, memoryBytesMax, tableEntriesMax } = this.#options;
    if (bytes.length > moduleBytesMax)
      throw new GuestError(
        "module-too-large",
        `The module has ${bytes.length} bytes; it may have ${moduleBytesMax}.`,
      );
    const memoryPagesMax = Math.floor(memoryBytesMax / PAGE_BYTES);
    const fenced = fenceModule(bytes, { memoryPagesMax, tableEntriesMax });
    const module: GuestModule = {
      hash: createHash("sha256").update(bytes).digest("hex"),
      ...fenced,
    };
    await this.#enqueue(module, undefined);
    return module;
  }

  /** What the guest makes of `input`, which is copied. Rejects with a GuestError. */
  async call(module: GuestModule, input: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    const offence = this.#offences.get(module.hash);
    if (offence !== undefined && offence.until > performance.now())
      throw new GuestError(
        "time-limit",
        `The guest was too slow ${offence.count} times in a row and is suspended for a while.`,
      );
    const copy = new Uint8Array(input.length);
    copy.set(input);
    const output = await this.#enqueue(module, copy);
    return output!;
  }

  /** Ends all threads. What is under way or waits is rejected as `closed`. */
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
        new GuestError("overloaded", `${this.#waiting.length} calls wait for a thread already.`),
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

  // One thread is left to the others, so that a slow module delays nobody but its own callers.
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
    const offence = this.#offences.get(hash);
    if (error?.code !== "time-limit") {
      if (offence !== undefined) this.#offences.delete(hash);
      return;
    }
    const count = (offence?.count ?? 0) + 1;
    const until = count < SLOW_CALLS_MAX ? 0 : performance.now() + this.#options.suspensionMs;
    this.#offences.delete(hash);
    this.#offences.set(hash, { count, until });
    if (this.#offences.size > OFFENDERS_MAX) {
      const [oldest] = this.#offences.keys();
      this.#offences.delete(oldest!);
    }
  }
}

function createClosedError(): GuestError {
  return new GuestError("closed", "The guests were closed.");
}
