// The memory of requests apart from objects: documents, which are received as a whole, and the files of forms, which are
// held until their length is known.
import { S3Error } from "../model/s3-error.ts";

/** Total; one tenant may hold half of it. */
const BYTES_MAX = 64 * 1024 * 1024;
/** Time limit of a form's wait for memory. */
const WAIT_MS = 20_000;

export interface RequestMemoryOptions {
  bytesMax?: number;
  waitMs?: number;
}

interface Waiter {
  readonly source: string;
  readonly bytes: number;
  readonly settle: (error?: S3Error) => void;
}

/** Counts the memory by tenant. */
export class RequestMemory {
  readonly #bytesMax: number;
  readonly #waitMs: number;
  readonly #bySource = new Map<string, number>();
  // In order of arrival. A request that does not fit does not block others: they may belong to another tenant.
  readonly #waiters = new Set<Waiter>();
  #taken = 0;

  constructor({ bytesMax = BYTES_MAX, waitMs = WAIT_MS }: RequestMemoryOptions = {}) {
    this.#bytesMax = bytesMax;
    this.#waitMs = waitMs;
  }

  /** Takes memory. Throws ServiceUnavailable if there is none: for documents, which are small and easily repeated. */
  take(source: string, bytes: number): void {
    if (!this.#hasRoom(source, bytes)) throw noRoom();
    this.#add(source, bytes);
  }

  /**
   * Takes memory when it is available; `undefined` if it is immediately. Rejects with ServiceUnavailable after 20 s, and
   * when `signal` aborts.
   */
  takeWhenRoom(source: string, bytes: number, signal: AbortSignal): Promise<void> | undefined {
    if (this.#hasRoom(source, bytes)) {
      this.#add(source, bytes);
      return undefined;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const settle = (error?: S3Error): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", refuse);
      this.#waiters.delete(waiter);
      if (error === undefined) resolve();
      else reject(error);
    };
    const refuse = (): void => settle(noRoom());
    const waiter: Waiter = { source, bytes, settle };
    const timer = setTimeout(refuse, this.#waitMs);
    signal.addEventListener("abort", refuse);
    this.#waiters.add(waiter);
    return promise;
  }

  /** Releases memory. */
  give(source: string, bytes: number): void {
    const left = (this.#bySource.get(source) ?? 0) - bytes;
    if (left > 0) this.#bySource.set(source, left);
    else this.#bySource.delete(source);
    this.#taken -= bytes;
    for (const waiter of this.#waiters) {
      if (!this.#hasRoom(waiter.source, waiter.bytes)) continue;
      this.#add(waiter.source, waiter.bytes);
      waiter.settle();
    }
  }

  #hasRoom(source: string, bytes: number): boolean {
    const own = (this.#bySource.get(source) ?? 0) + bytes;
    return own <= this.#bytesMax / 2 && this.#taken + bytes <= this.#bytesMax;
  }

  #add(source: string, bytes: number): void {
    this.#bySource.set(source, (this.#bySource.get(source) ?? 0) + bytes);
    this.#taken += bytes;
  }
}

function noRoom(): S3Error {
  return new S3Error("ServiceUnavailable", {
    message: "Too many documents and forms are being received",
    headers: [["Retry-After", "1"]],
  });
}

/** The memory that one request holds. */
export class MemoryHold {
  readonly #memory: RequestMemory;
  /** The tenant whose memory it is. */
  #source = "";
  #bytes = 0;
  /** Ends a wait for memory. */
  #waiting: AbortController | undefined;

  constructor(memory: RequestMemory) {
    this.#memory = memory;
  }

  /** Takes memory. Throws ServiceUnavailable if there is none. */
  take(bytes: number, tenant: string): void {
    this.#memory.take(tenant, bytes);
    this.#add(bytes, tenant);
  }

  /** Takes memory when it is available; `undefined` if it is immediately. Rejects with ServiceUnavailable after 20 s. */
  takeWhenRoom(bytes: number, tenant: string): Promise<void> | undefined {
    const waiting = new AbortController();
    const room = this.#memory.takeWhenRoom(tenant, bytes, waiting.signal);
    this.#waiting = waiting;
    if (room === undefined) {
      this.#add(bytes, tenant);
      return undefined;
    }
    return room.then(() => {
      this.#add(bytes, tenant);
      // The request may have ended after the wait.
      if (waiting.signal.aborted) this.release();
    });
  }

  /** Releases the memory and cancels the waits. */
  release(): void {
    this.#waiting?.abort();
    this.#waiting = undefined;
    if (this.#bytes === 0) return;
    this.#memory.give(this.#source, this.#bytes);
    this.#bytes = 0;
  }

  #add(bytes: number, tenant: string): void {
    this.#source = tenant;
    this.#bytes += bytes;
  }
}
