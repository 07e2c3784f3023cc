// A hash thread: hashes up to four bodies in parallel, each in its own order.
import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { HashKernel, HashMemory, type BlockRun } from "./hash-kernel.ts";
import { BLOCK_BYTES, LANES } from "./kernel-module.ts";
import { QUEUED_MAX, type HashDone, type HashJob, type HashThreadData } from "./messages.ts";
import { SlotHasher } from "./slot-hasher.ts";

// Bytes of a body that wait or are partly hashed.
interface Stretch extends BlockRun {
  hasher: SlotHasher;
  job: Extract<HashJob, { type: "hash" }>;
  /** Remaining whole blocks. */
  blocks: number;
}

class HashLanes {
  readonly #kernel: HashKernel;
  readonly #bytes: Uint8Array;
  readonly #waitingMax: number;
  readonly #answer: (done: HashDone[]) => void;
  readonly #hashers = new Map<number, SlotHasher>();
  // In the order of arrival.
  #waiting: Stretch[] = [];

  constructor(memory: HashMemory, answer: (done: HashDone[]) => void) {
    this.#kernel = new HashKernel(memory);
    this.#bytes = new Uint8Array(memory.memory.buffer);
    this.#waitingMax = memory.frames / 2;
    this.#answer = answer;
  }

  take(job: HashJob): void {
    const { slot } = job;
    switch (job.type) {
      case "start":
        this.#hashers.set(slot, new SlotHasher(this.#kernel, slot, job.algorithms));
        break;
      case "hash": {
        const hasher = this.#hashers.get(slot);
        if (hasher === undefined) throw new Error(`no body was started in slot ${slot}`);
        const blocks = Math.floor(job.bytes / BLOCK_BYTES);
        this.#waiting.push({ slot, at: job.at, blocks, hasher, job });
        break;
      }
      default:
        this.#forget(slot);
    }
  }

  /**
   * Hashes the common number of blocks of all lanes. False if there is no work, or if waiting for more bodies is better.
   */
  step(): boolean {
    if (!this.#isReady()) return false;
    const lanes = this.#chooseLanes();
    const blocks = Math.min(...lanes.map((lane) => lane.blocks));
    if (blocks > 0) this.#run(lanes, blocks);
    const done = lanes.filter((lane) => lane.blocks === 0);
    this.#waiting = this.#waiting.filter((stretch) => !done.includes(stretch));
    if (done.length > 0) this.#answer(done.map((lane) => this.#finish(lane)));
    return true;
  }

  // Waiting frames are hashed immediately: their memory is needed elsewhere.
  #forget(slot: number): void {
    this.#hashers.delete(slot);
    const dropped = this.#waiting.filter((stretch) => stretch.slot === slot);
    this.#waiting = this.#waiting.filter((stretch) => stretch.slot !== slot);
    if (dropped.length > 0) this.#answer(dropped.map(() => ({ slot, digests: undefined })));
  }

  // A single body takes as long as four in parallel: it waits for others as long as that delays no client.
  #isReady(): boolean {
    const queued = new Map<number, number>();
    for (const { slot, job } of this.#waiting) {
      const count = (queued.get(slot) ?? 0) + 1;
      if (job.isUrgent || count === QUEUED_MAX) return true;
      queued.set(slot, count);
    }
    if (this.#waiting.length >= this.#waitingMax) return true;
    return queued.size > 0 && queued.size >= Math.min(LANES, this.#hashers.size);
  }

  // The oldest bytes of each of the first waiting bodies.
  #chooseLanes(): Stretch[] {
    const lanes = new Map<number, Stretch>();
    for (const stretch of this.#waiting) {
      if (lanes.size === LANES) break;
      if (!lanes.has(stretch.slot)) lanes.set(stretch.slot, stretch);
    }
    return [...lanes.values()];
  }

  #run(lanes: readonly Stretch[], blocks: number): void {
    const [first] = lanes;
    if (lanes.length === 1) {
      this.#kernel.run(first!.slot, first!.at, blocks, first!.hasher.hasCrc64);
    } else {
      const hasCrc = lanes.some(({ hasher }) => hasher.hasCrc64);
      this.#kernel.runWide(lanes, blocks, hasCrc);
    }
    for (const lane of lanes) {
      lane.at += blocks * BLOCK_BYTES;
      lane.blocks -= blocks;
    }
  }

  #finish({ slot, at, job, hasher }: Stretch): HashDone {
    const end = job.at + job.bytes;
    hasher.update(this.#bytes.subarray(job.at, end));
    if (!job.isLast) return { slot, digests: undefined };
    this.#hashers.delete(slot);
    return { slot, digests: hasher.finish(at, end - at) };
  }
}

const port = parentPort!;
const { memory, slots, frames } = workerData as HashThreadData;
const lanes = new HashLanes(new HashMemory(slots, frames, memory), (done) =>
  port.postMessage(done),
);

port.on("message", (first: HashJob) => {
  lanes.take(first);
  do {
    // New arrivals fill the lanes.
    for (let more = receive(); more !== undefined; more = receive()) lanes.take(more);
  } while (lanes.step());
});

function receive(): HashJob | undefined {
  return receiveMessageOnPort(port)?.message as HashJob | undefined;
}
