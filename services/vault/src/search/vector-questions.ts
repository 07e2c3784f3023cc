// Searches of vectors, one at a time, on a thread of their own that is ended when a search takes too long.
import { Worker } from "node:worker_threads";
import { FairTurns, TurnRefusal } from "@platform/kernel/turns";
import { S3Error } from "../model/s3-error.ts";
import type { VectorAnswer, VectorQuestion, VectorResponse } from "./vector-messages.ts";
import type { VectorThreadData } from "./vector-thread.ts";

const WAITING_MAX = 32;
const WAIT_MS = 60_000;
/** The vectors in memory are read again after it. */
const IDLE_MS = 600_000;
const RETRY_AFTER_SECONDS = "5";

/** The end of a search; `killed` by its limit of time, `aborted` because its client has left. */
type VectorOutcome = "answered" | "refused" | "killed" | "aborted" | "failed";

/** Options of {@link VectorQuestions}. */
export interface VectorQuestionsOptions {
  readonly memoryBytes: number;
  readonly timeoutMs: number;
  readonly onFinished: (outcome: VectorOutcome) => void;
}

export class VectorQuestions {
  readonly #options: VectorQuestionsOptions;
  readonly #turns = new FairTurns({ places: 1, waitingMax: WAITING_MAX, waitMs: WAIT_MS });
  readonly #stop = new Int32Array(new SharedArrayBuffer(4));
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: VectorQuestionsOptions) {
    this.#options = options;
  }

  /** Searches that wait. */
  get waiting(): number {
    return this.#turns.waiting;
  }

  /** Answers a search. Rejects with its S3Error, or with the reason of `signal`, which stops it. */
  async ask(tenant: string, question: VectorQuestion, signal: AbortSignal): Promise<VectorAnswer> {
    const release = await this.#takeTurn(tenant, signal);
    clearTimeout(this.#idle);
    try {
      const response = await this.#run(question, signal);
      if (response.type === "stopped") {
        this.#options.onFinished("aborted");
        throw signal.reason;
      }
      if (response.type === "answer") {
        this.#options.onFinished("answered");
        return response;
      }
      const { code, message } = response;
      this.#options.onFinished(code === "InternalError" ? "failed" : "refused");
      throw code === "InternalError"
        ? new S3Error(code, { cause: new Error(message) })
        : new S3Error(code, message);
    } finally {
      this.#idle = setTimeout(() => void this.#end(), IDLE_MS).unref();
      release();
    }
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    this.#turns.end();
    clearTimeout(this.#idle);
    await this.#end();
  }

  async #takeTurn(tenant: string, signal: AbortSignal): Promise<() => void> {
    try {
      return await this.#turns.take(tenant, signal);
    } catch (error) {
      if (!(error instanceof TurnRefusal)) throw error;
      throw new S3Error("Busy", { headers: [["Retry-After", RETRY_AFTER_SECONDS]] });
    }
  }

  // A search that is stopped leaves the vectors that it has read in memory, for the next one.
  #run(question: VectorQuestion, signal: AbortSignal): Promise<VectorResponse> {
    const worker = (this.#worker ??= this.#start());
    const stop = (): void => void Atomics.store(this.#stop, 0, 1);
    Atomics.store(this.#stop, 0, signal.aborted ? 1 : 0);
    signal.addEventListener("abort", stop);
    const { timeoutMs, onFinished } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<VectorResponse>();
    const timer = setTimeout(() => {
      worker.removeAllListeners();
      void this.#end();
      onFinished("killed");
      const message = `The search has taken more than ${timeoutMs / 1000} s.`;
      reject(new S3Error("QueryLimitExceeded", message));
    }, timeoutMs);
    const forget = (): void => {
      if (this.#worker === worker) this.#worker = undefined;
    };
    const fail = (error: unknown): void => {
      forget();
      onFinished("failed");
      reject(new S3Error("InternalError", { cause: error }));
    };
    worker.removeAllListeners();
    worker.ref();
    worker.once("message", resolve);
    worker.once("error", fail);
    worker.once("exit", () => fail(new Error("the thread has ended")));
    worker.postMessage(question);
    return promise.finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      // The search has ended, and is counted once: what happens to the thread afterwards is no outcome of it.
      worker.removeAllListeners();
      worker.once("error", forget);
      worker.once("exit", forget);
      worker.unref();
    });
  }

  #start(): Worker {
    const { memoryBytes } = this.#options;
    return new Worker(new URL("./vector-thread.ts", import.meta.url), {
      workerData: { memoryBytes, stop: this.#stop } satisfies VectorThreadData,
    });
  }

  async #end(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }
}
