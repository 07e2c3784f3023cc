// Reads of records in object storage, which may take longer than the requests that need them.
import { readBatchHeader } from "@platform/log/batch";
import type { PartitionView, ReadResult } from "@platform/log";

/** Time for the client of an empty answer to ask again. */
const GRACE_MS = 2_000;
/** Reads that no request waits for; each holds an answer at most. */
const UNATTENDED_MAX = 16;
/** Bytes of a read, but for a first batch that is larger. */
const READ_BYTES_MAX = 4 * 1024 * 1024;

/** Reads records; rejects once `signal` has fired. */
export type ReadRecords = (
  view: PartitionView,
  offset: number,
  bytesMax: number,
  signal: AbortSignal,
) => Promise<ReadResult>;

/** Bounds of an answer. `isStrict`: also for its first batch. `untilMs`: time of `performance.now()`. */
export interface ColdReadBounds {
  bytesMax: number;
  isStrict: boolean;
  untilMs: number;
}

interface ColdRead {
  view: PartitionView;
  offset: number;
  bytesMax: number;
  result: Promise<ReadResult>;
  /** Requests that wait for it. */
  waiting: number;
  /** Requests have waited for it at once. */
  isShared: boolean;
  /** A request has its result. */
  isTaken: boolean;
  ending: AbortController;
  timer: NodeJS.Timeout | undefined;
}

/**
 * One read per position, however many requests wait for it. It goes on while the client of an empty answer asks again, and
 * ends if the client does not: otherwise each of its requests would leave one behind.
 */
export class ColdReads {
  readonly #read: ReadRecords;
  readonly #reads = new Map<PartitionView, Map<number, ColdRead>>();
  readonly #shared = new WeakSet<ReadResult>();
  /** The oldest first. */
  readonly #unattended = new Set<ColdRead>();

  constructor(read: ReadRecords) {
    this.#read = read;
  }

  /** True if a result may be that of several requests. */
  isShared(result: ReadResult): boolean {
    return this.#shared.has(result);
  }

  /** The records at a position; `undefined` if they are not there in time, or exceed strict bounds. */
  async read(
    view: PartitionView,
    offset: number,
    { bytesMax, isStrict, untilMs }: ColdReadBounds,
  ): Promise<ReadResult | undefined> {
    const readMax = Math.min(bytesMax, READ_BYTES_MAX);
    for (;;) {
      const read = this.#reads.get(view)?.get(offset) ?? this.#start(view, offset, readMax);
      const result = await this.#await(read, untilMs);
      if (result === undefined || (isStrict && result.bytes > bytesMax)) {
        if (read.waiting === 0) this.#leave(read);
        return undefined;
      }
      this.#forget(read);
      if (read.isShared) this.#shared.add(result);
      // It came between the result and the request that has it for itself.
      else if (read.isTaken) continue;
      read.isTaken = true;
      if (result.bytes <= readMax || isOneBatch(result)) return result;
      // It was read for an answer with more room.
    }
  }

  #start(view: PartitionView, offset: number, bytesMax: number): ColdRead {
    const ending = new AbortController();
    const result = this.#read(view, offset, bytesMax, ending.signal);
    // A failure after the answer is that of the next read.
    result.catch(() => undefined);
    const read: ColdRead = {
      view,
      offset,
      bytesMax,
      result,
      waiting: 0,
      isShared: false,
      isTaken: false,
      ending,
      timer: undefined,
    };
    let ofView = this.#reads.get(view);
    if (ofView === undefined) this.#reads.set(view, (ofView = new Map()));
    ofView.set(offset, read);
    return read;
  }

  async #await(read: ColdRead, untilMs: number): Promise<ReadResult | undefined> {
    this.#unattended.delete(read);
    clearTimeout(read.timer);
    read.waiting++;
    read.isShared ||= read.waiting > 1;
    try {
      return await waitUntil(read.result, untilMs);
    } catch (error) {
      this.#forget(read);
      throw error;
    } finally {
      read.waiting--;
    }
  }

  #leave(read: ColdRead): void {
    if (this.#reads.get(read.view)?.get(read.offset) !== read) return;
    this.#unattended.add(read);
    read.timer = setTimeout(() => this.#end(read), GRACE_MS).unref();
    if (this.#unattended.size <= UNATTENDED_MAX) return;
    const [oldest] = this.#unattended;
    this.#end(oldest!);
  }

  #end(read: ColdRead): void {
    this.#forget(read);
    read.ending.abort();
  }

  #forget(read: ColdRead): void {
    clearTimeout(read.timer);
    this.#unattended.delete(read);
    const ofView = this.#reads.get(read.view);
    if (ofView?.get(read.offset) !== read) return;
    ofView.delete(read.offset);
    if (ofView.size === 0) this.#reads.delete(read.view);
  }
}

function isOneBatch({ buffers, bytes }: ReadResult): boolean {
  return buffers[0] !== undefined && readBatchHeader(buffers[0], 0)?.bytes === bytes;
}

/** The result, or undefined if it takes longer. */
async function waitUntil<Result>(
  work: Promise<Result>,
  untilMs: number,
): Promise<Result | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const timer = setTimeout(resolve, Math.max(0, untilMs - performance.now()), undefined);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
