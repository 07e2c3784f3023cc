// Threads that copy pieces of files: hashes and writes of several pieces at once, and none of it on the thread that serves.
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { BackupError } from "../error.ts";
import type { CopyOrder, CopyPlace, CopyReply, CopyRequest } from "./copy-messages.ts";
import type { Piece } from "./format.ts";

/** More than few cores, because each waits for the disk by turns. Each has some 25 MB, of which a piece is a third. */
const THREADS_MAX = Math.min(4, availableParallelism() + 2);
const HEAP_MIB_MAX = 64;

/** A piece, and whether it was written for this order. */
export interface CopiedPiece {
  piece: Piece;
  isAdded: boolean;
}

interface Waiting {
  readonly order: CopyOrder;
  readonly resolve: (copied: CopiedPiece) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  job: Waiting | undefined;
}

/** Starts threads as orders come, and runs one order in each. */
export class CopyThreads {
  /** Orders that should be given at once: a thread that ends one finds the next, however busy those who give them are. */
  readonly places = 2 * THREADS_MAX;
  readonly #place: CopyPlace;
  readonly #threads = new Set<Thread>();
  readonly #queue: Waiting[] = [];
  #number = 0;

  constructor(place: CopyPlace) {
    this.#place = place;
  }

  /** Stores a piece. Rejects with BackupError if it cannot be read, written or verified. */
  copy(order: CopyOrder): Promise<CopiedPiece> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ order, resolve, reject });
      this.#assign();
    });
  }

  /** Ends all threads. No order is under way. */
  async close(): Promise<void> {
    await Promise.all([...this.#threads].map(({ worker }) => worker.terminate()));
  }

  #assign(): void {
    while (this.#queue.length > 0) {
      const thread = this.#findFree();
      if (thread === undefined) return;
      const job = this.#queue.shift()!;
      thread.job = job;
      this.#number += 1;
      const request: CopyRequest = { ...job.order, number: this.#number };
      thread.worker.postMessage(request);
    }
  }

  #findFree(): Thread | undefined {
    for (const thread of this.#threads) if (thread.job === undefined) return thread;
    return this.#threads.size < THREADS_MAX ? this.#start() : undefined;
  }

  #start(): Thread {
    const worker = new Worker(new URL("./copy-thread.ts", import.meta.url), {
      workerData: this.#place,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX },
    });
    const thread: Thread = { worker, job: undefined };
    this.#threads.add(thread);
    worker.on("message", (reply: CopyReply) => {
      const { job } = thread;
      thread.job = undefined;
      if (job !== undefined) settle(job, reply);
      this.#assign();
    });
    const lose = (error: Error): void => {
      this.#threads.delete(thread);
      thread.job?.reject(error);
      thread.job = undefined;
      this.#assign();
    };
    worker.once("error", lose);
    worker.once("exit", () => lose(new Error("a thread that copies a backup has ended")));
    return thread;
  }
}

function settle({ resolve, reject }: Waiting, reply: CopyReply): void {
  if ("piece" in reply) resolve({ piece: reply.piece, isAdded: reply.isAdded });
  else reject(reply.isExpected ? new BackupError(reply.fault) : new Error(reply.fault));
}
