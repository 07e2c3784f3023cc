// Memory for what requests bring beside objects: documents, which are read as a whole before anything is done, and the files
// of forms, which are held until their length is known.
import { S3Error } from "../model/s3-error.ts";

/** All of it; what one source may hold is half. */
const BYTES_MAX = 64 * 1024 * 1024;
/** How long the file of a form waits for room. */
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

/** Counts it by who sends it. */
export class RequestMemory {
  readonly #bytesMax: number;
  readonly #waitMs: number;
  readonly #bySource = new Map<string, number>();
  // In the order of asking. One that does not fit does not hold up others that do: they may be of another source.
  readonly #waiters = new Set<Waiter>();
  #taken = 0;

  constructor({ bytesMax = BYTES_MAX, waitMs = WAIT_MS }: RequestMemoryOptions = {}) {
    this.#bytesMax = bytesMax;
    this.#waitMs = waitMs;
  }

  /** Throws ServiceUnavailable where there is none left: for documents, which are small and repeated easily. */
  take(source: string, bytes: number): void {
    if (!this.#hasRoom(source, bytes)) throw noRoom();
    this.#add(source, bytes);
  }

  /**
   * Takes it once there is room; `undefined` where there is at once. Rejects with ServiceUnavailable where there was none
   * for 20 s, and when `signal` aborts.
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

  /** Gives it back. */
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
