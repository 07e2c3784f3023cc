// Creates hashers for bodies: small bodies are hashed on this thread, large ones on dedicated threads.
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { BodyDigests, ChecksumAlgorithm } from "../model/object.ts";
import { StoreError } from "../model/store-error.ts";
import type { BodyHasher } from "./body-hasher.ts";
import { FramePool } from "./frame-pool.ts";
import { HashKernel, HashMemory } from "./hash-kernel.ts";
import { LANES } from "./kernel-module.ts";
import { InlineHasher, type Scratch } from "./inline-hasher.ts";
import type { HashDone, HashThreadData } from "./messages.ts";
import { ThreadHasher } from "./thread-hasher.ts";

/** Bodies up to this size are hashed on the thread that receives them. */
const INLINE_BYTES_MAX = 512 * 1024;
/** Each thread hashes four bodies at once; more threads would leave lanes empty. */
const THREADS_MAX = 4;
/** Frames per thread: enough for four bodies, which fill some while others are in flight, and some to spare. */
const FRAMES_PER_THREAD = 64;

/** Options of the hashers. */
export interface BodyHashersOptions {
  /** Default: half of the processors, at least 1 and at most 4. */
  threads?: number;
  /** Bodies in progress; more are refused with `SlowDown`. Default 16 384. */
  bodiesMax?: number;
  /** Frames of 256 KiB that large bodies share. Default 64 for each thread. */
  frames?: number;
}

interface Thread {
  worker: Worker;
  hashers: Map<number, ThreadHasher>;
}

/** The hashers of a store. Threads start with the first large body. */
export class BodyHashers {
  readonly #memory: HashMemory;
  readonly #kernel: HashKernel;
  readonly #scratch: Scratch;
  readonly #frames: FramePool;
  readonly #threadsMax: number;
  readonly #threads: Thread[] = [];
  readonly #freeSlots: number[] = [];
  #slotsUsed = 0;

  constructor(options: BodyHashersOptions = {}) {
    this.#threadsMax = options.threads ?? chooseThreads();
    const frames = options.frames ?? FRAMES_PER_THREAD * this.#threadsMax;
    this.#memory = new HashMemory(options.bodiesMax ?? 16_384, 1 + frames);
    this.#kernel = new HashKernel(this.#memory);
    this.#kernel.prepare();
    this.#scratch = { at: this.#memory.locateFrame(0), view: this.#memory.viewFrame(0) };
    this.#frames = new FramePool(this.#memory, 1);
  }

  /** Creates a hasher for a body of a known size. Throws `SlowDown` if too many are in progress. */
  begin(bytes: number, algorithms: readonly ChecksumAlgorithm[]): BodyHasher {
    const slot = this.#takeSlot();
    if (bytes <= INLINE_BYTES_MAX) {
      const release = () => void this.#freeSlots.push(slot);
      return new InlineHasher(this.#kernel, this.#scratch, slot, algorithms, release);
    }
    const thread = this.#chooseThread();
    const hasher = new ThreadHasher(
      this.#frames,
      slot,
      algorithms,
      (job) => thread.worker.postMessage(job),
      () => {
        thread.hashers.delete(slot);
        this.#freeSlots.push(slot);
      },
    );
    thread.hashers.set(slot, hasher);
    return hasher;
  }

  /** Ends the threads. Bodies in progress fail. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map(({ worker }) => worker.terminate()));
  }

  #takeSlot(): number {
    const free = this.#freeSlots.pop();
    if (free !== undefined) return free;
    if (this.#slotsUsed === this.#memory.slots) {
      throw new StoreError("SlowDown", "Too many uploads are in progress");
    }
    this.#slotsUsed += 1;
    return this.#slotsUsed - 1;
  }

  // Hashing bodies in parallel lanes is cheaper than hashing them separately: a thread gets four before the next one
  // starts.
  #chooseThread(): Thread {
    const [first, ...others] = this.#threads;
    if (first === undefined) return this.#startThread();
    const least = others.reduce((a, b) => (b.hashers.size < a.hashers.size ? b : a), first);
    const isFull = least.hashers.size >= LANES && this.#threads.length < this.#threadsMax;
    return isFull ? this.#startThread() : least;
  }

  #startThread(): Thread {
    const { memory, slots, frames } = this.#memory;
    const data: HashThreadData = { memory, slots, frames };
    const worker = new Worker(new URL("./hash-thread.ts", import.meta.url), { workerData: data });
    const thread: Thread = { worker, hashers: new Map() };
    this.#threads.push(thread);
    worker.on("message", (done: HashDone[]) => {
      for (const one of done) thread.hashers.get(one.slot)?.onDone(restoreBuffers(one));
    });
    let reason = "it was closed";
    worker.on("error", (error) => {
      reason = error instanceof Error ? error.message : String(error);
    });
    worker.on("exit", () => {
      this.#threads.splice(this.#threads.indexOf(thread), 1);
      const failure = new StoreError("InternalError", `A hash thread has ended: ${reason}`);
      for (const hasher of thread.hashers.values()) hasher.onFailure(failure);
    });
    return thread;
  }
}

function chooseThreads(): number {
  return Math.max(1, Math.min(THREADS_MAX, Math.floor(availableParallelism() / 2)));
}

// Buffers arrive from messages as plain byte arrays.
function restoreBuffers({ slot, digests }: HashDone): HashDone {
  if (digests === undefined) return { slot, digests };
  const { bytes, md5, checksums } = digests;
  const restored: BodyDigests["checksums"] = Object.fromEntries(
    Object.entries(checksums).map(([algorithm, value]) => [algorithm, Buffer.from(value)]),
  );
  return { slot, digests: { bytes, md5: Buffer.from(md5), checksums: restored } };
}
