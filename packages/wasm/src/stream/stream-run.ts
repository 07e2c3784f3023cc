// One run of a chain of guests on a stream.
import { GuestError } from "../errors.ts";
import type { GuestModule } from "../module/guest-module.ts";
import type { ByteRing } from "./byte-ring.ts";
import { GuestClock } from "./guest-clock.ts";
import type { FromStreamThread } from "./messages.ts";
import type { StreamThreadHandle, ThreadTask, TimeLimits } from "./stream-thread-handle.ts";

const MIB = 1024 * 1024;
/** Time of 1 s for each of these many bytes of input is added to the limits. */
const BYTES_PER_SECOND = 10 * MIB;
const OUTPUT_BYTES_MIN = 64 * MIB;
const OUTPUT_PER_INPUT = 8;
/** Chunks of the output. */
const CHUNK_BYTES = 256 * 1024;

/** A guest of a chain. */
export interface StreamedGuest {
  readonly module: GuestModule;
  /** Its environment variables. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** A chain of guests and its input. */
export interface StreamCall {
  /** The output of each is the input of the next. */
  readonly guests: readonly StreamedGuest[];
  readonly input: AsyncIterable<Uint8Array>;
  /** Size of the input, if it is known: the limits grow with it, otherwise with the bytes that were read. */
  readonly inputBytes?: number;
  /** Working time of each guest: wall time less its waits. 1 s is added for each 10 MiB of input. */
  readonly workingMs: number;
  /** As `workingMs`, for the wall time. */
  readonly wallMs: number;
}

/** A finished run. */
export interface RunResult {
  readonly outputBytes: number;
  /** The first 4 KiB of the standard error of all guests, in their order. */
  readonly stderr: string;
}

/** A run that may still wait for its place. */
export interface GuestRun {
  /** The output of the last guest; to be read once. Throws the error of the run after its last byte. */
  readonly output: AsyncIterable<Uint8Array<ArrayBuffer>>;
  /** Resolves when all guests have ended with success. Rejects with a GuestError, or the error of the input. */
  readonly result: Promise<RunResult>;
  /** The beginning of standard error so far; complete when `result` is settled. */
  readonly stderr: string;
  /** Ends the run with the code `cancelled`, unless it has ended. */
  cancel(): void;
  /** Cancels the run when `signal` is aborted. The signal may outlive many runs: it does not keep those that have ended. */
  cancelWith(signal: AbortSignal): void;
}

/** The pool of a run. */
export interface StreamRunPool {
  readonly wholeBytesMax: number;
  readonly takeThread: () => StreamThreadHandle;
  readonly giveThread: (thread: StreamThreadHandle) => void;
  readonly takeRing: () => ByteRing;
  readonly giveRing: (ring: ByteRing) => void;
  readonly onEnd: () => void;
}

export class StreamRun implements GuestRun {
  readonly result: Promise<RunResult>;
  /** Resolves when no thread works for it any more. */
  readonly ended: Promise<void>;
  readonly output: AsyncIterable<Uint8Array<ArrayBuffer>>;
  stderr = "";
  readonly #call: StreamCall;
  readonly #pool: StreamRunPool;
  /** Made when the run begins: those that wait have no memory. */
  #rings: readonly ByteRing[] = [];
  readonly #clocks: GuestClock[] = [];
  readonly #busy = new Set<StreamThreadHandle>();
  readonly #guests: Promise<void>[] = [];
  #feeding: Promise<void> | undefined;
  readonly #failing = Promise.withResolvers<never>();
  readonly #begun = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();
  #error: Error | undefined;
  #isSettled = false;

  constructor(call: StreamCall, pool: StreamRunPool) {
    this.#call = call;
    this.#pool = pool;
    this.ended = this.#ended.promise;
    this.result = Promise.race([this.#failing.promise, this.#work()]);
    // The reader of the output gets the error, too.
    this.result.catch(() => undefined);
    this.output = this.#readOutput();
  }

  /** Begins the run: its place is free. */
  start(): void {
    this.#begun.resolve();
  }

  cancel(): void {
    this.fail(new GuestError("cancelled", "The run was cancelled."));
  }

  cancelWith(signal: AbortSignal): void {
    if (signal.aborted) return this.cancel();
    const cancel = (): void => this.cancel();
    const forget = (): void => signal.removeEventListener("abort", cancel);
    signal.addEventListener("abort", cancel);
    void this.result.then(forget, forget);
  }

  /** Ends the run with an error. */
  fail(reason: Error): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#error = reason;
    this.#failing.reject(reason);
    for (const ring of this.#rings) ring.abort();
    // A guest that does not wait for its rings does not notice.
    const cancelled = new GuestError("cancelled", "The run has failed.");
    for (const thread of this.#busy) void thread.end(cancelled);
    void this.#finishLater();
  }

  async #work(): Promise<RunResult> {
    await this.#begun.promise;
    if (this.#isSettled) return this.#failing.promise;
    const errors: string[] = [];
    this.#rings = Array.from({ length: this.#call.guests.length + 1 }, this.#pool.takeRing);
    this.#call.guests.forEach((guest, index) => this.#startGuest(guest, index, errors));
    this.#feeding = this.#feed();
    await Promise.all(this.#guests);
    if (this.#isSettled) return this.#failing.promise;
    this.#isSettled = true;
    this.#finish();
    return { outputBytes: this.#clocks.at(-1)!.writtenBytes, stderr: this.stderr };
  }

  async #finishLater(): Promise<void> {
    await Promise.all(this.#guests);
    this.#finish();
  }

  #finish(): void {
    this.#pool.onEnd();
    this.#ended.resolve();
  }

  #startGuest({ module, environment = {} }: StreamedGuest, index: number, errors: string[]): void {
    const clock = new GuestClock();
    this.#clocks.push(clock);
    const thread = this.#pool.takeThread();
    this.#busy.add(thread);
    const inputBytes = index === 0 ? (this.#call.inputBytes ?? 0) : 0;
    const task: ThreadTask = {
      type: "run",
      environment: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
      input: this.#rings[index]!.memory,
      output: this.#rings[index + 1]!.memory,
      clock: clock.memory,
      inputBytes,
      limits: {
        wholeBytesMax: this.#pool.wholeBytesMax,
        outputBytesMax: OUTPUT_BYTES_MIN,
        outputPerInputMax: OUTPUT_PER_INPUT,
      },
    };
    const work = thread.run(module, task, this.#createLimits(inputBytes), clock);
    const ended = work.then((answer) => {
      this.#busy.delete(thread);
      errors[index] = answer.stderr;
      this.stderr = errors.join("").slice(0, 4_096);
      this.#judge(answer);
      this.#pool.giveThread(thread);
    });
    this.#guests.push(ended);
  }

  #createLimits(inputBytes: number): TimeLimits {
    const { workingMs, wallMs } = this.#call;
    const more = (readBytes: number): number =>
      (Math.max(readBytes, inputBytes) / BYTES_PER_SECOND) * 1_000;
    return {
      workingMs: (readBytes) => workingMs + more(readBytes),
      wallMs: (readBytes) => wallMs + more(readBytes),
    };
  }

  #judge(answer: FromStreamThread): void {
    if (answer.ok || answer.code === undefined) return;
    this.fail(new GuestError(answer.code, answer.message));
  }

  async #feed(): Promise<void> {
    const ring = this.#rings[0]!;
    try {
      for await (const chunk of this.#call.input) {
        for (let at = 0; at < chunk.length;) {
          const length = ring.tryWrite(at === 0 ? chunk : chunk.subarray(at));
          at += length;
          if (length === 0) await ring.wait("reader", () => ring.hasRoom);
        }
        if (ring.isUnread || ring.isAborted) break;
      }
      ring.end();
    } catch (error) {
      this.fail(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async *#readOutput(): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
    let isWhole = false;
    try {
      await Promise.race([this.#begun.promise, this.#failing.promise]);
      const ring = this.#rings.at(-1)!;
      for (;;) {
        await ring.wait("writer", () => ring.waiting > 0 || ring.hasEnded);
        if (this.#error !== undefined) throw this.#error;
        const chunk = new Uint8Array(Math.min(CHUNK_BYTES, ring.waiting));
        const length = ring.tryRead(chunk);
        if (length === 0) break;
        yield length === chunk.length ? chunk : chunk.subarray(0, length);
      }
      // The last bytes are not the end: the guests must have succeeded.
      await this.result;
      isWhole = true;
      void this.#giveRings();
    } finally {
      if (!isWhole) this.cancel();
    }
  }

  // After a success that was read to its end, threads have left them. After a failure a thread may still write.
  async #giveRings(): Promise<void> {
    await this.#feeding;
    for (const ring of this.#rings) this.#pool.giveRing(ring);
    this.#rings = [];
  }
}
