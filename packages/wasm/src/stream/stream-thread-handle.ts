// The pool's handle of the thread of one streamed guest: runs one task at a time and terminates the thread at a limit.
import { Worker } from "node:worker_threads";
import { GuestError } from "../errors.ts";
import type { GuestModule } from "../module/guest-module.ts";
import { type GuestClock, readClock } from "./guest-clock.ts";
import {
  type FromStreamThread,
  type StreamModule,
  THREAD_MODULES_MAX,
  type ToStreamThread,
} from "./messages.ts";

const ENTRY = new URL("./stream-thread.ts", import.meta.url);
/** Heap of a thread: code and garbage-collected objects of guests. */
const HEAP_MB_MAX = 128;
const STACK_MB = 2;
/** Interval of checking the time of a running guest. */
const CHECK_EVERY_MS = 20;
/** A check that comes this late means that this process was busy: it does not end a guest. */
const LATE_MS = 200;

/** Limits of the time of a task, in ms. */
export interface TimeLimits {
  /** Wall time less the waits for bytes and room. */
  readonly workingMs: (readBytes: number) => number;
  readonly wallMs: (readBytes: number) => number;
}

/** The task without its module, which the handle adds. */
export type ThreadTask =
  | { readonly type: "load" }
  | Omit<Extract<ToStreamThread, { type: "run" }>, "module">;

/** A thread and its current task. */
export class StreamThreadHandle {
  readonly #worker: Worker;
  readonly #loaded = new Set<string>();
  #settle: ((answer: FromStreamThread) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isGone = false;

  constructor() {
    this.#worker = new Worker(ENTRY, {
      // Hides the environment of the host.
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX, stackSizeMb: STACK_MB },
    });
    this.#worker.unref();
    this.#worker.on("message", (answer: FromStreamThread) => this.#finish(answer));
    this.#worker.on("error", (error: NodeJS.ErrnoException) => this.#lose(error.code));
    this.#worker.on("exit", () => this.#lose(undefined));
  }

  /** True if the thread has ended. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** Runs a task; the thread must be idle. `clock` is undefined for compiling, whose whole time counts. Never rejects. */
  run(
    module: GuestModule,
    task: ThreadTask,
    limits: TimeLimits,
    clock: GuestClock | undefined,
  ): Promise<FromStreamThread> {
    return new Promise((resolve) => {
      this.#settle = resolve;
      this.#worker.ref();
      const message: ToStreamThread = { ...task, module: this.#describe(module) };
      this.#worker.postMessage(message);
      this.#watch(limits, clock);
    });
  }

  /** Terminates the thread and fails its task. */
  async end(error: GuestError): Promise<void> {
    this.#isGone = true;
    this.#finish({ ok: false, code: error.code, message: error.message, stderr: "" });
    await this.#worker.terminate();
  }

  // In step with the thread, which forgets the same modules.
  #describe({ hash, abi, bytes }: GuestModule): StreamModule {
    const isLoaded = this.#loaded.delete(hash);
    this.#loaded.add(hash);
    if (this.#loaded.size > THREAD_MODULES_MAX) {
      const [oldest] = this.#loaded;
      this.#loaded.delete(oldest!);
    }
    return { hash, abi, bytes: isLoaded ? undefined : bytes };
  }

  #watch({ workingMs, wallMs }: TimeLimits, clock: GuestClock | undefined): void {
    const begunMs = readClock();
    let lastMs = begunMs;
    let busyMs = 0;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => {
      const nowMs = readClock();
      // Time in which this process could not check is not the guest's.
      if (nowMs - lastMs > CHECK_EVERY_MS + LATE_MS) busyMs += nowMs - lastMs - CHECK_EVERY_MS;
      lastMs = nowMs;
      const passedMs = nowMs - begunMs - busyMs;
      const readBytes = clock?.readBytes ?? 0;
      const workedMs = passedMs - (clock?.readWaitedMs(nowMs) ?? 0);
      const fault =
        workedMs > workingMs(readBytes)
          ? `worked for more than ${Math.round(workingMs(readBytes))} ms`
          : passedMs > wallMs(readBytes)
            ? `ran for more than ${Math.round(wallMs(readBytes))} ms`
            : undefined;
      if (fault !== undefined) void this.end(new GuestError("time-limit", `The guest ${fault}.`));
    }, CHECK_EVERY_MS);
  }

  #lose(code: string | undefined): void {
    this.#isGone = true;
    this.#finish(
      code === "ERR_WORKER_OUT_OF_MEMORY"
        ? {
            ok: false,
            code: "memory-limit",
            message: "The guest used up the memory of its thread.",
            stderr: "",
          }
        : { ok: false, code: "trapped", message: "The guest ended its thread.", stderr: "" },
    );
  }

  #finish(answer: FromStreamThread): void {
    clearInterval(this.#timer);
    const settle = this.#settle;
    if (settle === undefined) return;
    this.#settle = undefined;
    this.#worker.unref();
    settle(answer);
  }
}
