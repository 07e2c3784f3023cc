// Runs guests on streams, alone or in a chain, with memory that does not grow with the stream.
//
//   input ──► ring ──► guest ──► ring ──► guest ──► ring ──► output
//             1 MiB    thread    1 MiB    thread    1 MiB
import { createHash } from "node:crypto";
import { GuestError } from "../errors.ts";
import type { GuestModule } from "../module/guest-module.ts";
import { PAGE_BYTES, sandboxModule } from "../module/sandbox.ts";
import { ByteRing } from "./byte-ring.ts";
import { type GuestRun, type StreamCall, StreamRun } from "./stream-run.ts";
import { StreamThreadHandle } from "./stream-thread-handle.ts";

/** Options of {@link GuestStreams}. */
export interface GuestStreamsOptions {
  /** Runs at the same time; each guest of a chain has a thread. Default 2. */
  runs?: number;
  /** Timeout of compiling a module in ms. Default 5 000. */
  compileMsMax?: number;
  /** Maximum size of a module. Default 8 MiB. */
  moduleBytesMax?: number;
  /** Maximum size of all memories of one guest. Default 256 MiB. */
  memoryBytesMax?: number;
  /** Maximum entries of all tables of one guest. Default 100 000. */
  tableEntriesMax?: number;
  /** Bytes that a `transform` guest receives and returns at most. Default 64 MiB. */
  wholeBytesMax?: number;
  /** Maximum number of queued runs; more are refused with `overloaded`. Default 1 000. */
  waitingMax?: number;
}

/** Guests in a chain. */
export const CHAIN_MAX = 8;
/** Idle threads that are kept for each possible run. */
const IDLE_PER_RUN = 2;
/** Unused rings that are kept for each possible run. V8 does not count shared memory, and would collect too many too late. */
const RINGS_PER_RUN = 2;

interface Waiter {
  readonly modules: ReadonlySet<string>;
  readonly start: () => void;
}

/**
 * Runs guests on streams.
 *
 *     const guests = new GuestStreams();
 *     const module = await guests.load(bytes);
 *     const run = guests.run({ guests: [{ module }], input, workingMs: 10_000, wallMs: 60_000 });
 *     for await (const chunk of run.output) … // throws the error of a guest that fails, even after its last byte
 *     await guests.close();
 */
export class GuestStreams {
  readonly #options: Required<GuestStreamsOptions>;
  readonly #idle: StreamThreadHandle[] = [];
  readonly #rings: ByteRing[] = [];
  readonly #running = new Map<StreamRun, ReadonlySet<string>>();
  #waiting: Waiter[] = [];
  #isClosed = false;

  constructor(options: GuestStreamsOptions = {}) {
    this.#options = {
      runs: 2,
      compileMsMax: 5_000,
      moduleBytesMax: 8 * 1024 * 1024,
      memoryBytesMax: 256 * 1024 * 1024,
      tableEntriesMax: 100_000,
      wholeBytesMax: 64 * 1024 * 1024,
      waitingMax: 1_000,
      ...options,
    };
  }

  /** Active runs, and those that wait for a place. */
  get counts(): { running: number; waiting: number } {
    return { running: this.#running.size, waiting: this.#waiting.length };
  }

  /** Validates, sandboxes and compiles a module. Rejects with a GuestError. */
  async load(bytes: Uint8Array): Promise<GuestModule> {
    const { moduleBytesMax, memoryBytesMax, tableEntriesMax, compileMsMax } = this.#options;
    if (this.#isClosed) throw createClosedError();
    if (bytes.length > moduleBytesMax)
      throw new GuestError(
        "module-too-large",
        `The module has ${bytes.length} bytes; the limit is ${moduleBytesMax}.`,
      );
    const memoryPagesMax = Math.floor(memoryBytesMax / PAGE_BYTES);
    const sandboxed = sandboxModule(bytes, { memoryPagesMax, tableEntriesMax });
    const module = { hash: createHash("sha256").update(bytes).digest("hex"), ...sandboxed };
    const thread = this.#takeThread();
    const limit = (): number => compileMsMax;
    const limits = { workingMs: limit, wallMs: limit };
    const answer = await thread.run(module, { type: "load" }, limits, undefined);
    this.#giveThread(thread);
    if (!answer.ok) throw new GuestError(answer.code ?? "trapped", answer.message);
    return module;
  }

  /** Runs a chain of guests. It begins when there is a place; a module never occupies all of them. */
  run(call: StreamCall): GuestRun {
    const modules = new Set(call.guests.map(({ module }) => module.hash));
    const run = new StreamRun(call, {
      wholeBytesMax: this.#options.wholeBytesMax,
      takeThread: () => this.#takeThread(),
      giveThread: (thread) => this.#giveThread(thread),
      takeRing: () => this.#rings.pop() ?? new ByteRing(),
      giveRing: (ring) => this.#giveRing(ring),
      onEnd: () => {
        this.#running.delete(run);
        this.#waiting = this.#waiting.filter((waiter) => waiter !== own);
        this.#startNext();
      },
    });
    const own: Waiter = {
      modules,
      start: () => {
        this.#running.set(run, modules);
        run.start();
      },
    };
    if (this.#isClosed) run.fail(createClosedError());
    else if (this.#waiting.length >= this.#options.waitingMax)
      run.fail(new GuestError("overloaded", `${this.#waiting.length} runs are already queued.`));
    else {
      this.#waiting.push(own);
      this.#startNext();
    }
    return run;
  }

  /** Terminates all threads. Active and queued runs fail with `closed`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const runs = [...this.#running.keys()];
    this.#waiting = [];
    for (const run of runs) run.fail(createClosedError());
    await Promise.all(runs.map(({ ended }) => ended));
    await Promise.all(this.#idle.splice(0).map((thread) => thread.end(createClosedError())));
  }

  // One place is kept for other modules, so that a slow module delays only its own callers.
  #startNext(): void {
    const most = Math.max(1, this.#options.runs - 1);
    while (this.#running.size < this.#options.runs && !this.#isClosed) {
      const isBusy = (hash: string): boolean =>
        [...this.#running.values()].filter((modules) => modules.has(hash)).length >= most;
      const index = this.#waiting.findIndex(({ modules }) => ![...modules].some(isBusy));
      const [next] = index < 0 ? [] : this.#waiting.splice(index, 1);
      if (next === undefined) return;
      next.start();
    }
  }

  #takeThread(): StreamThreadHandle {
    for (let thread = this.#idle.pop(); thread !== undefined; thread = this.#idle.pop()) {
      if (!thread.isGone) return thread;
    }
    return new StreamThreadHandle();
  }

  #giveThread(thread: StreamThreadHandle): void {
    if (thread.isGone) return;
    const isWanted = !this.#isClosed && this.#idle.length < this.#options.runs * IDLE_PER_RUN;
    if (isWanted) this.#idle.push(thread);
    else void thread.end(createClosedError());
  }

  #giveRing(ring: ByteRing): void {
    if (this.#isClosed || this.#rings.length >= this.#options.runs * RINGS_PER_RUN) return;
    ring.reset();
    this.#rings.push(ring);
  }
}

function createClosedError(): GuestError {
  return new GuestError("closed", "The guest pool is closed.");
}
