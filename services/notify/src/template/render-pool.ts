// Threads for templates whose rendering takes long, so that they do not hold up the event loop.
//
//   job ─► waiting, a queue per client, served in turn ─► thread ─► reply
//                                                          └─ no reply in time, or out of memory: replaced
import { Worker } from "node:worker_threads";
import { createRetryLaterError } from "@platform/kernel/errors";
import { TemplateError } from "./engine.ts";
import { PartError, type RenderJob, type RenderResult } from "./render-job.ts";
import type { RenderReply } from "./render-thread.ts";

/** Bounds of the pool. */
export interface RenderPoolOptions {
  threadsMax: number;
  /** Maximum number of waiting jobs. */
  waitingMax: number;
  /** Maximum number of waiting jobs of a client. */
  waitingPerClientMax: number;
  /** Maximum wait for a reply; then the thread is replaced. Exceeds the time that a job may take. */
  replyMs: number;
}

interface Waiting {
  job: RenderJob;
  resolve: (result: RenderResult) => void;
  reject: (error: Error) => void;
}

interface Thread {
  worker: Worker;
  current: Waiting | undefined;
  timer: NodeJS.Timeout | undefined;
}

const ENTRY = new URL("./render-thread.ts", import.meta.url);
const HEAP_MIB_MAX = 256;
const IDLE_MS = 30_000;
const RETRY_SECONDS = 5;

/** Renders on threads, which are started when they are needed and end when they are idle. */
export class RenderPool {
  readonly #options: RenderPoolOptions;
  readonly #threads = new Set<Thread>();
  readonly #waiting = new Map<string, Waiting[]>();
  #count = 0;
  #isClosed = false;

  constructor(options: RenderPoolOptions) {
    this.#options = options;
  }

  /** Renders a job. Rejects with PartError, or with `overloaded` if too many jobs wait. */
  render(client: string, job: RenderJob): Promise<RenderResult> {
    const { waitingMax, waitingPerClientMax } = this.#options;
    const queue = this.#waiting.get(client) ?? [];
    if (this.#isClosed || this.#count >= waitingMax || queue.length >= waitingPerClientMax) {
      const detail = "Too many templates that take long wait to be rendered.";
      return Promise.reject(createRetryLaterError("overloaded", detail, RETRY_SECONDS));
    }
    return new Promise((resolve, reject) => {
      queue.push({ job, resolve, reject });
      this.#waiting.set(client, queue);
      this.#count += 1;
      this.#pump();
    });
  }

  /** Ends all threads; jobs fail with `overloaded`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const error = createRetryLaterError("overloaded", "The service is stopping.", RETRY_SECONDS);
    for (const queue of this.#waiting.values()) for (const { reject } of queue) reject(error);
    this.#waiting.clear();
    const threads = [...this.#threads];
    for (const thread of threads) thread.current?.reject(error);
    await Promise.all(threads.map((thread) => this.#end(thread)));
  }

  #pump(): void {
    while (this.#count > 0) {
      const idle = [...this.#threads].find(({ current }) => current === undefined);
      if (idle === undefined && this.#threads.size >= this.#options.threadsMax) return;
      this.#assign(idle ?? this.#start(), this.#takeNext());
    }
  }

  // Of the client that has waited longest; it goes to the end.
  #takeNext(): Waiting {
    const [client, queue] = this.#waiting.entries().next().value!;
    const next = queue.shift()!;
    this.#waiting.delete(client);
    if (queue.length > 0) this.#waiting.set(client, queue);
    this.#count -= 1;
    return next;
  }

  #assign(thread: Thread, waiting: Waiting): void {
    clearTimeout(thread.timer);
    thread.current = waiting;
    thread.worker.ref();
    thread.timer = setTimeout(() => {
      this.#fail(thread, "the template exceeds its limit of time");
    }, this.#options.replyMs);
    thread.worker.postMessage(waiting.job);
  }

  #start(): Thread {
    const worker = new Worker(ENTRY, { resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX } });
    const thread: Thread = { worker, current: undefined, timer: undefined };
    worker.on("message", (reply: RenderReply) => this.#settle(thread, reply));
    worker.on("error", (error) => this.#fail(thread, describe(error)));
    this.#threads.add(thread);
    return thread;
  }

  #settle(thread: Thread, reply: RenderReply): void {
    const { current } = thread;
    this.#rest(thread);
    switch (reply.kind) {
      case "rendered":
        current?.resolve({
          parts: reply.parts,
          warnings: reply.warnings,
          paths: reply.paths,
        });
        break;
      case "failed":
        current?.reject(new PartError(reply.part, toError(reply)));
        break;
      case "broken":
        current?.reject(new Error(`rendering failed: ${reply.message}`));
        break;
      default:
        reply satisfies never;
    }
    this.#pump();
  }

  #rest(thread: Thread): void {
    clearTimeout(thread.timer);
    thread.current = undefined;
    thread.worker.unref();
    thread.timer = setTimeout(() => void this.#end(thread), IDLE_MS).unref();
  }

  // A thread that is stuck or out of memory is replaced.
  #fail(thread: Thread, message: string): void {
    thread.current?.reject(new PartError("html", new TemplateError("limit", message)));
    void this.#end(thread);
    if (!this.#isClosed) this.#pump();
  }

  async #end(thread: Thread): Promise<void> {
    clearTimeout(thread.timer);
    this.#threads.delete(thread);
    await thread.worker.terminate();
  }
}

function toError({ reason, message, place }: Extract<RenderReply, { kind: "failed" }>) {
  return new TemplateError(reason, message, { place });
}

function describe(error: unknown): string {
  const isMemory =
    error instanceof Error && "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY";
  return isMemory
    ? "the template exceeds its limit of memory"
    : `rendering failed: ${String(error)}`;
}
