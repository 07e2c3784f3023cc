// One copy of the index: the thread that writes it, and the thread that checkpoints its WAL.
import { Worker } from "node:worker_threads";
import type { CheckpointData } from "../index/checkpoint-thread.ts";
import type { WriterLimits } from "./writer-context.ts";
import type { GroupRequest, GroupResponse, WriterData, WriterReady } from "./writer-messages.ts";

/** The result of a group on one copy; `lost` if the thread has ended. */
export type ReplicaResult = GroupResponse | { lost: string };

/** Options of a copy. */
export interface ReplicaOptions {
  /** The drive that it is on. */
  slot: number;
  path: string;
  limits: WriterLimits;
  /** Of the running start, for a copy that joins it. */
  generation?: number;
}

/** An open, writable copy. */
export class Replica {
  readonly slot: number;
  readonly path: string;
  readonly ready: WriterReady;
  readonly #writer: Worker;
  readonly #checkpoints: Worker;
  readonly #ended: Promise<unknown>;
  #settle: ((result: ReplicaResult) => void) | undefined;
  #lost: string | undefined;

  private constructor(options: ReplicaOptions, writer: Worker, ready: WriterReady) {
    this.slot = options.slot;
    this.path = options.path;
    this.ready = ready;
    this.#writer = writer;
    this.#checkpoints = new Worker(new URL("../index/checkpoint-thread.ts", import.meta.url), {
      workerData: {
        path: options.path,
        logBytesMax: options.limits.logBytesMax,
      } satisfies CheckpointData,
    });
    // If a checkpoint fails, the writer truncates a WAL that has grown too long.
    this.#checkpoints.on("error", () => undefined);
    writer.on("message", (response: GroupResponse) => this.#finish(response));
    writer.on("error", (error: unknown) =>
      this.#lose(error instanceof Error ? error.message : String(error)),
    );
    const writerEnded = new Promise<void>((resolve) => {
      writer.once("exit", () => {
        this.#lose("the writer thread has ended");
        resolve();
      });
    });
    const checkpointsEnded = new Promise((resolve) => this.#checkpoints.once("exit", resolve));
    this.#ended = Promise.all([writerEnded, checkpointsEnded]);
  }

  /** Starts the threads. Rejects if the index cannot be opened. */
  static async open(options: ReplicaOptions): Promise<Replica> {
    const { path, limits, generation } = options;
    const workerData: WriterData = {
      path,
      limits,
      ...(generation === undefined ? {} : { generation }),
    };
    const writer = new Worker(new URL("./writer-thread.ts", import.meta.url), { workerData });
    const ready = await new Promise<WriterReady>((resolve, reject) => {
      writer.once("message", resolve);
      writer.once("error", reject);
    });
    writer.removeAllListeners("error");
    return new Replica(options, writer, ready);
  }

  /** Commits a group. One at a time. */
  run(request: GroupRequest): Promise<ReplicaResult> {
    if (this.#lost !== undefined) return Promise.resolve({ lost: this.#lost });
    return new Promise((resolve) => {
      this.#settle = resolve;
      this.#writer.postMessage(request);
    });
  }

  /** Ends the threads. */
  async close(): Promise<void> {
    this.#writer.postMessage("close");
    this.#checkpoints.postMessage("close");
    await this.#ended;
  }

  /** Kills the threads: the drive is gone. */
  async abandon(reason: string): Promise<void> {
    this.#lose(reason);
    await Promise.all([this.#writer.terminate(), this.#checkpoints.terminate()]);
  }

  #finish(result: ReplicaResult): void {
    const settle = this.#settle;
    this.#settle = undefined;
    settle?.(result);
  }

  #lose(reason: string): void {
    this.#lost ??= reason;
    this.#finish({ lost: this.#lost });
  }
}
