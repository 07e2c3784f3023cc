// The pool's handle of one guest thread: runs one task at a time and terminates the thread on a timeout.
import { Worker } from "node:worker_threads";
import { GuestError } from "../errors.ts";
import type { GuestModule } from "../module/guest-module.ts";
import type { FromThread, ThreadInit, ToThread } from "./messages.ts";

const ENTRY = new URL("./guest-thread.ts", import.meta.url);
/** Heap of a thread: code, messages and garbage-collected objects of guests. */
const HEAP_MB_MAX = 128;
const STACK_MB = 2;
/** A timer that fires this late means that this process was busy, not that the guest was slow. */
const LATE_MS = 20;

/** A task of a thread: compile a module or, with an input, call it. */
export interface Task {
  module: GuestModule;
  input: Uint8Array<ArrayBuffer> | undefined;
  resolve: (output: Uint8Array<ArrayBuffer> | undefined) => void;
  reject: (error: GuestError) => void;
}

/** Options of {@link ThreadHandle}. */
export interface ThreadOptions {
  outputBytesMax: number;
  callMsMax: number;
  compileMsMax: number;
  /** Maximum number of compiled modules to keep (LRU). */
  modulesMax: number;
  /** Called after each task, with its error if it failed; the thread is then idle, or gone and must be replaced. */
  onIdle: (thread: ThreadHandle, task: Task, error: GuestError | undefined) => void;
}

/** A thread and its current task. */
export class ThreadHandle {
  readonly #options: ThreadOptions;
  readonly #worker: Worker;
  /** Hashes of compiled modules, least recently used first. */
  readonly #loaded = new Set<string>();
  #task: Task | undefined;
  #timer: NodeJS.Timeout | undefined;
  #deadline = 0;
  #isGone = false;

  constructor(options: ThreadOptions) {
    this.#options = options;
    this.#worker = new Worker(ENTRY, {
      workerData: { outputBytesMax: options.outputBytesMax } satisfies ThreadInit,
      // Hides the environment of the host.
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX, stackSizeMb: STACK_MB },
    });
    this.#worker.unref();
    this.#worker.on("message", (answer: FromThread) => this.#receive(answer));
    this.#worker.on("error", (error: NodeJS.ErrnoException) => this.#lose(error.code));
    this.#worker.on("exit", () => this.#lose(undefined));
  }

  /** The current task. */
  get task(): Task | undefined {
    return this.#task;
  }

  /** True if the thread has ended. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** Starts a task; the thread must be idle. */
  begin(task: Task): void {
    this.#task = task;
    this.#worker.ref();
    const { hash, bytes, abi } = task.module;
    if (this.#loaded.delete(hash)) {
      this.#loaded.add(hash);
      this.#call(task);
    } else {
      this.#send({ type: "load", hash, bytes, abi }, this.#options.compileMsMax);
    }
  }

  /** Terminates the thread and fails its task. */
  async end(error: GuestError): Promise<void> {
    this.#finish(error, true);
    await this.#worker.terminate();
  }

  #call(task: Task): void {
    if (task.input === undefined) this.#finish(undefined, false, undefined);
    else
      this.#send(
        { type: "call", hash: task.module.hash, input: task.input },
        this.#options.callMsMax,
        [task.input.buffer],
      );
  }

  #send(message: ToThread, msMax: number, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer);
    this.#arm(msMax);
  }

  #arm(msMax: number): void {
    clearTimeout(this.#timer);
    this.#deadline = performance.now() + msMax;
    this.#timer = setTimeout(() => this.#onDeadline(msMax), msMax);
  }

  #onDeadline(msMax: number): void {
    if (performance.now() - this.#deadline > LATE_MS) {
      this.#arm(msMax);
      return;
    }
    const what = this.#loaded.has(this.#task?.module.hash ?? "") ? "ran" : "was compiled";
    void this.end(new GuestError("time-limit", `The guest ${what} for more than ${msMax} ms.`));
  }

  #receive(answer: FromThread): void {
    const task = this.#task;
    if (task === undefined) return;
    if (!answer.ok) {
      this.#finish(new GuestError(answer.code, answer.message), false);
      return;
    }
    if (this.#loaded.has(task.module.hash)) {
      this.#finish(undefined, false, answer.output);
      return;
    }
    this.#remember(task.module.hash);
    this.#call(task);
  }

  #remember(hash: string): void {
    this.#loaded.add(hash);
    if (this.#loaded.size <= this.#options.modulesMax) return;
    const [oldest] = this.#loaded;
    this.#loaded.delete(oldest!);
    this.#worker.postMessage({ type: "forget", hash: oldest! } satisfies ToThread);
  }

  #lose(code: string | undefined): void {
    this.#finish(
      code === "ERR_WORKER_OUT_OF_MEMORY"
        ? new GuestError("memory-limit", "The guest used up the memory of its thread.")
        : new GuestError("trapped", "The guest ended its thread."),
      true,
    );
  }

  #finish(error: GuestError | undefined, isGone: boolean, output?: Uint8Array<ArrayBuffer>): void {
    this.#isGone ||= isGone;
    clearTimeout(this.#timer);
    const task = this.#task;
    if (task === undefined) return;
    this.#task = undefined;
    this.#worker.unref();
    if (error === undefined) task.resolve(output);
    else task.reject(error);
    this.#options.onIdle(this, task, error);
  }
}
