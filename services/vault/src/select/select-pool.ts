// Answers questions on threads of their own, which are ended when they exceed a limit.
//
//   ask ─► waiting (32 at most) ─► thread ─► records … ─► done
//                                    │  ▲
//                                    ▼  │ pieces of the object, read ahead
//                                  source
import { Worker } from "node:worker_threads";
import { FairTurns, TurnRefusal } from "@platform/kernel/turns";
import { S3Error } from "../model/s3-error.ts";
import {
  RESUME_BYTES,
  type SelectStats,
  type ThreadRequest,
  type ThreadResponse,
} from "./messages.ts";
import { RangeFeed } from "./range-feed.ts";
import type { SelectRequest } from "./request.ts";

const HEAP_MIB = 256;
const YOUNG_MIB = 32;
const STACK_MIB = 4;
const WAITING_MAX = 32;
const WAIT_MS = 60_000;
/** Idle threads take 10 MB each. */
const IDLE_MS = 60_000;
const RETRY_AFTER_SECONDS = "5";

/** The object of a question. */
export interface QuestionSource {
  readonly sizeBytes: number;
  /** Reads a range, of which `end` is exclusive. Chunks are used up before the next one is asked for. */
  open(start: number, end: number): AsyncGenerator<Buffer, void, undefined>;
}

/** A question. */
export interface Question {
  readonly tenant: string;
  readonly request: SelectRequest;
  readonly source: QuestionSource;
  /** Ms since 1970. */
  readonly nowMs: number;
}

/** An answer: records, and their statistics. Rejects with the S3Error of the question. */
export interface Answer {
  /** The next records; `undefined` after the last ones. */
  next(): Promise<Buffer | undefined>;
  readonly stats: SelectStats;
  /** Ends the question. Harmless at any time. */
  close(): void;
}

/** The end of a question: `killed` by a limit of working time or memory, `aborted` by its client. */
type SelectOutcome = "answered" | "refused" | "killed" | "aborted" | "failed";

/** Options of the pool. */
export interface SelectPoolOptions {
  readonly threads: number;
  /** Working time of a question; waits for the object and for the client do not count. */
  readonly timeoutMs: number;
  /** Called at the end of each question that has begun. */
  readonly onFinished: (outcome: SelectOutcome, stats: SelectStats) => void;
  readonly waitingMax?: number;
  readonly waitMs?: number;
  readonly idleMs?: number;
}

/** A thread without a question. */
interface IdleThread {
  readonly worker: Worker;
  readonly timer: NodeJS.Timeout;
}

export class SelectPool {
  readonly #options: SelectPoolOptions;
  readonly #turns: FairTurns;
  readonly #idle: IdleThread[] = [];
  readonly #running = new Set<RunningQuestion>();
  #isClosed = false;

  constructor(options: SelectPoolOptions) {
    this.#options = options;
    const { threads: places, waitingMax = WAITING_MAX, waitMs = WAIT_MS } = options;
    this.#turns = new FairTurns({ places, waitingMax, waitMs });
  }

  /** Questions that wait for a thread. */
  get waiting(): number {
    return this.#turns.waiting;
  }

  /** Threads that exist. */
  get threads(): number {
    return this.#running.size + this.#idle.length;
  }

  /**
   * Starts a question as soon as there is a thread. A tenant has one at most while another waits. Rejects with Busy if too many
   * wait, or after a minute, and with the reason of `signal` when it aborts.
   */
  async ask(question: Question, signal: AbortSignal): Promise<Answer> {
    const release = await this.#takeTurn(question.tenant, signal);
    if (this.#isClosed) throw busy();
    const { timeoutMs, onFinished } = this.#options;
    const idle = this.#idle.pop();
    clearTimeout(idle?.timer);
    const running = new RunningQuestion({
      question,
      worker: idle?.worker ?? startThread(),
      timeoutMs,
      onFinished,
      onEnded: (worker) => {
        this.#running.delete(running);
        if (worker !== undefined && !this.#isClosed) this.#keep(worker);
        release();
      },
    });
    this.#running.add(running);
    return running;
  }

  /** Ends all questions and threads. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#turns.end();
    const questions = [...this.#running].map((running) => running.end());
    const idle = this.#idle.splice(0).map(({ worker, timer }) => {
      clearTimeout(timer);
      return worker.terminate();
    });
    await Promise.all([...questions, ...idle]);
  }

  async #takeTurn(tenant: string, signal: AbortSignal): Promise<() => void> {
    try {
      return await this.#turns.take(tenant, signal);
    } catch (error) {
      throw error instanceof TurnRefusal ? busy() : error;
    }
  }

  #keep(worker: Worker): void {
    const remove = (): void => {
      const index = this.#idle.findIndex((one) => one.worker === worker);
      if (index >= 0) clearTimeout(this.#idle.splice(index, 1)[0]!.timer);
    };
    const timer = setTimeout(() => {
      remove();
      void worker.terminate();
    }, this.#options.idleMs ?? IDLE_MS).unref();
    worker.removeAllListeners();
    worker.once("error", remove);
    worker.once("exit", remove);
    worker.unref();
    this.#idle.push({ worker, timer });
  }
}

function startThread(): Worker {
  return new Worker(new URL("./select-thread.ts", import.meta.url), {
    resourceLimits: {
      maxOldGenerationSizeMb: HEAP_MIB,
      maxYoungGenerationSizeMb: YOUNG_MIB,
      stackSizeMb: STACK_MIB,
    },
  });
}

function busy(): S3Error {
  return new S3Error("Busy", { headers: [["Retry-After", RETRY_AFTER_SECONDS]] });
}

interface RunningOptions {
  readonly question: Question;
  readonly worker: Worker;
  readonly timeoutMs: number;
  readonly onFinished: SelectPoolOptions["onFinished"];
  /** Called with the thread if it can answer another question. */
  readonly onEnded: (worker: Worker | undefined) => void;
}

/** A question on its thread. */
class RunningQuestion implements Answer {
  readonly #options: RunningOptions;
  readonly #worker: Worker;
  readonly #records: Buffer[] = [];
  #feed: RangeFeed | undefined;
  /** The number of the range that is read. */
  #range = 0;
  #wake: (() => void) | undefined;
  #failure: unknown;
  #isDone = false;
  #hasEnded = false;
  /** The thread waits until results have been sent. */
  #isWaiting = false;
  #unsentBytes = 0;
  /** Working time that is left. */
  #leftMs: number;
  #busySinceMs = 0;
  #deadline: NodeJS.Timeout | undefined;
  stats: SelectStats = { scannedBytes: 0, processedBytes: 0, returnedBytes: 0 };

  constructor(options: RunningOptions) {
    this.#options = options;
    const { question, worker, timeoutMs } = options;
    const { request, source, nowMs } = question;
    this.#worker = worker;
    this.#leftMs = timeoutMs;
    worker.removeAllListeners();
    worker.ref();
    worker.on("message", (response: ThreadResponse) => this.#receive(response));
    worker.once("error", (error) => this.#onThreadError(error));
    worker.once("exit", () => this.#fail(new S3Error("InternalError")));
    this.#post({ type: "ask", request, sizeBytes: source.sizeBytes, nowMs });
  }

  async next(): Promise<Buffer | undefined> {
    for (;;) {
      const records = this.#records.shift();
      if (records !== undefined) {
        this.#onSent(records.length);
        return records;
      }
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#isDone) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  close(): void {
    this.#fail(new S3Error("InternalError", "The question was ended."), "aborted");
  }

  /** Ends the question and its thread. */
  async end(): Promise<void> {
    this.close();
    await this.#worker.terminate();
  }

  #post(message: ThreadRequest, transfer: ArrayBuffer[] = []): void {
    if (!this.#isWaiting) this.#startClock();
    this.#worker.postMessage(message, transfer);
  }

  #onSent(bytes: number): void {
    if (this.#hasEnded) return;
    this.#unsentBytes -= bytes;
    if (this.#unsentBytes <= RESUME_BYTES) this.#isWaiting = false;
    this.#post({ type: "sent", bytes });
  }

  #receive(response: ThreadResponse): void {
    if (this.#hasEnded) return;
    switch (response.type) {
      case "open":
        this.#stopClock();
        this.#openRange(response);
        return;
      case "taken":
        this.stats = response.stats;
        if (response.range !== this.#range) return;
        this.#feed?.onTaken(response.bytes);
        if (this.#feed?.isAwaited === true) this.#stopClock();
        return;
      case "close":
        this.#closeRange();
        return;
      case "records": {
        const { bytes, stats, isWaiting } = response;
        if (isWaiting) this.#stopClock();
        this.#isWaiting = isWaiting;
        this.#unsentBytes += bytes.length;
        this.stats = stats;
        this.#records.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
        this.#wake?.();
        return;
      }
      case "done":
        this.stats = response.stats;
        this.#isDone = true;
        this.#finish("answered", this.#worker);
        return;
      case "failed":
        this.stats = response.stats;
        this.#failure = toError(response);
        this.#finish(response.code === "InternalError" ? "failed" : "refused", this.#worker);
        return;
      default:
        response satisfies never;
    }
  }

  #openRange({ range, start, end }: Extract<ThreadResponse, { type: "open" }>): void {
    const { source } = this.#options.question;
    this.#closeRange();
    this.#range = range;
    this.#feed = new RangeFeed({
      chunks: source.open(start, end),
      sizeBytes: Math.min(end, source.sizeBytes) - start,
      send: (bytes) => {
        this.#post({ type: "bytes", range, bytes }, bytes === undefined ? [] : [bytes.buffer]);
      },
      onFailed: (error) => this.#fail(error),
    });
  }

  #closeRange(): void {
    this.#feed?.close();
    this.#feed = undefined;
  }

  #onThreadError(error: unknown): void {
    const isMemory = (error as { code?: unknown }).code === "ERR_WORKER_OUT_OF_MEMORY";
    if (!isMemory) {
      this.#fail(new S3Error("InternalError", { cause: error }));
      return;
    }
    this.#fail(new S3Error("QueryLimitExceeded", "The question needs too much memory."), "killed");
  }

  #startClock(): void {
    if (this.#deadline !== undefined) return;
    this.#busySinceMs = performance.now();
    this.#deadline = setTimeout(() => {
      const seconds = this.#options.timeoutMs / 1000;
      this.#fail(
        new S3Error("QueryLimitExceeded", `The question has worked for more than ${seconds} s.`),
        "killed",
      );
    }, this.#leftMs);
  }

  #stopClock(): void {
    if (this.#deadline === undefined) return;
    clearTimeout(this.#deadline);
    this.#deadline = undefined;
    this.#leftMs = Math.max(1, this.#leftMs - (performance.now() - this.#busySinceMs));
  }

  // The thread may be in a loop that only its end can stop.
  #fail(error: unknown, outcome: SelectOutcome = "failed"): void {
    if (this.#hasEnded) return;
    this.#failure = error;
    this.#finish(outcome, undefined);
    void this.#worker.terminate();
  }

  #finish(outcome: SelectOutcome, worker: Worker | undefined): void {
    this.#hasEnded = true;
    this.#stopClock();
    this.#closeRange();
    this.#wake?.();
    this.#options.onFinished(outcome, this.stats);
    this.#options.onEnded(worker);
  }
}

function toError({ code, message, place }: Extract<ThreadResponse, { type: "failed" }>): S3Error {
  if (code === "InternalError") return new S3Error(code, { cause: new Error(message) });
  if (place === undefined) return new S3Error(code, { message });
  const { line, column } = place;
  const elements = [
    ["Line", String(line)],
    ["Column", String(column)],
  ] as const;
  return new S3Error(code, { message, elements });
}
