// The log as the broker uses it: single records gathered into atomic entries, whole batches, reads and waits.
import {
  DamagedError,
  LogError,
  type AppendBatch,
  type AppendResult,
  type Log,
  type PartitionView,
  type ReadResult,
} from "@platform/log";
import { encodeBatch, type NewRecord } from "@platform/log/batch";

/** Bytes of records that one gathered entry takes at most, a little below what a batch may have. */
const ENTRY_BYTES_MAX = 4 * 1024 * 1024;
/** What a record takes in a batch beside its key, value and headers, generously. */
const RECORD_OVERHEAD_BYTES = 64;

/** One record on its way to a partition. */
export interface PendingRecord {
  partition: PartitionView;
  record: NewRecord;
  /** Written on a full disk as well, from the reserve: the broker's own small facts, such as acknowledgements. */
  mayUseReserve?: true;
}

/** A place to read from. */
export interface Position {
  partition: PartitionView;
  offset: number;
}

interface Waiting {
  pendingRecords: readonly PendingRecord[];
  bytes: number;
  resolve: (offsets: number[]) => void;
  reject: (error: Error) => void;
}

interface Waiter {
  wake: () => void;
}

/**
 * Appends and reads. Everything appended in one call is one journal entry: after a crash all of it is there or nothing.
 * Calls that come while the disk is busy share an entry, so a small message costs a fraction of a batch and of a sync.
 * Errors are the log's (`LogError`).
 */
export class Store {
  readonly log: Log;
  #queue: Waiting[] = [];
  #queuedBytes = 0;
  readonly #queuedBytesMax: number;
  #isFlushing = false;
  readonly #waiters = new Map<PartitionView, Set<Waiter>>();
  readonly #unwatch: () => void;

  /** `queuedBytesMax`: bytes of records that may wait to be gathered before appends are refused as `overloaded`. */
  constructor(log: Log, queuedBytesMax = 64 * 1024 * 1024) {
    this.log = log;
    this.#queuedBytesMax = queuedBytesMax;
    this.#unwatch = log.watch((partitions) => {
      for (const partition of partitions) this.#wake(partition);
    });
  }

  /**
   * Appends records durably as one atomic entry; several for one partition keep their order. Resolves with the offset
   * of each. Entries of earlier calls come first.
   */
  async append(pendingRecords: readonly PendingRecord[]): Promise<number[]> {
    if (pendingRecords.length === 0) return [];
    if (!pendingRecords.every(({ mayUseReserve }) => mayUseReserve)) this.log.requireRoom();
    const bytes = pendingRecords.reduce((sum, { record }) => sum + sizeOf(record), 0);
    if (this.#queuedBytes > this.#queuedBytesMax) {
      throw new LogError("overloaded", "too much waits for the disk");
    }
    this.#queuedBytes += bytes;
    return new Promise((resolve, reject) => {
      this.#queue.push({ pendingRecords, bytes, resolve, reject });
      if (!this.#isFlushing) {
        this.#isFlushing = true;
        // In a later turn, so that everyone whose request has arrived by now comes along.
        setImmediate(() => void this.#flush());
      }
    });
  }

  /**
   * Appends whole batches v2 as they are, compressed or not, with `drafts` in the same atomic entry; the drafts are left
   * out where a batch is a duplicate. The log takes the buffers over. `verified` in a batch says that `validateBatch`
   * has passed.
   */
  async appendBatches(
    batches: readonly AppendBatch[],
    pendingRecords: readonly PendingRecord[] = [],
  ): Promise<AppendResult[]> {
    if (pendingRecords.length === 0) return this.log.append(batches);
    const companions = encodeRecords(pendingRecords).batches.map((batch) => ({
      ...batch,
      unlessDuplicate: true,
    }));
    const results = await this.log.append([...batches, ...companions]);
    return results.slice(0, batches.length);
  }

  /** Reads whole batches from the one that holds `offset` on; nothing past the durable end is seen. */
  read(partition: PartitionView, offset: number, bytesMax: number): Promise<ReadResult> {
    return this.log.read(partition, offset, bytesMax);
  }

  /** As `read`; damage, which the log has reported, is passed over: nothing is found up to where it ends. */
  async readIntact(
    partition: PartitionView,
    offset: number,
    bytesMax: number,
  ): Promise<ReadResult> {
    try {
      return await this.log.read(partition, offset, bytesMax);
    } catch (error) {
      if (!(error instanceof DamagedError)) throw error;
      return { buffers: [], bytes: 0, nextOffset: error.damage.resumeOffset };
    }
  }

  /**
   * Resolves true as soon as one of the positions has something durable to read (at once if one has), false after
   * `timeoutMs` or when `signal` fires. Holds no data meanwhile.
   */
  waitForData(
    positions: readonly Position[],
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<boolean> {
    const isThere = () => positions.some(hasData);
    if (isThere()) return Promise.resolve(true);
    if (timeoutMs <= 0 || signal?.aborted === true) return Promise.resolve(false);
    return new Promise((resolve) => {
      const end = (found: boolean) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", stop);
        for (const { partition } of positions) this.#forget(partition, waiter);
        resolve(found);
      };
      const stop = () => end(false);
      const waiter: Waiter = {
        wake: () => {
          if (isThere()) end(true);
        },
      };
      const timer = setTimeout(stop, timeoutMs);
      signal?.addEventListener("abort", stop, { once: true });
      for (const { partition } of positions) {
        const waiters = this.#waiters.get(partition);
        if (waiters === undefined) this.#waiters.set(partition, new Set([waiter]));
        else waiters.add(waiter);
      }
    });
  }

  /** Wakes whoever waits for a partition, for one that was deleted. */
  wake(partition: PartitionView): void {
    this.#wake(partition);
  }

  /** Finishes what waits; afterwards nobody is woken any more. */
  async finish(): Promise<void> {
    while (this.#isFlushing) await new Promise((resolve) => setImmediate(resolve));
    this.#unwatch();
  }

  /** Finishes what waits, then closes the log. */
  async close(): Promise<void> {
    await this.finish();
    await this.log.close();
  }

  // One entry under way at a time: what comes meanwhile makes the next one, so entries grow with the load.
  async #flush(): Promise<void> {
    while (this.#queue.length > 0) {
      const taken = this.#take();
      const { batches, places } = encodeRecords(
        taken.flatMap(({ pendingRecords }) => pendingRecords),
      );
      try {
        // What must not use the reserve was refused before it came here.
        const results = await this.log.append(batches, { mayUseReserve: true });
        let at = 0;
        for (const { pendingRecords, resolve } of taken) {
          resolve(
            pendingRecords.map(() => {
              const place = places[at++]!;
              return results[place.batch]!.baseOffset + place.index;
            }),
          );
        }
      } catch (error) {
        await this.#failOrRetry(taken, error as Error);
      }
      for (const { bytes } of taken) this.#queuedBytes -= bytes;
    }
    this.#isFlushing = false;
  }

  // A topic that was deleted meanwhile fails those who meant it, not everyone who came in the same turn.
  async #failOrRetry(taken: readonly Waiting[], error: Error): Promise<void> {
    const isOfOne = error instanceof LogError && error.code === "unknown-topic";
    for (const waiting of taken) {
      const isLive = waiting.pendingRecords.every(({ partition }) => partition.live);
      if (!isOfOne || !isLive || taken.length === 1) {
        waiting.reject(error);
        continue;
      }
      const { batches, places } = encodeRecords(waiting.pendingRecords);
      try {
        const results = await this.log.append(batches, { mayUseReserve: true });
        waiting.resolve(places.map(({ batch, index }) => results[batch]!.baseOffset + index));
      } catch (again) {
        waiting.reject(again as Error);
      }
    }
  }

  #take(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const waiting of this.#queue) {
      if (count > 0 && bytes + waiting.bytes > ENTRY_BYTES_MAX) break;
      bytes += waiting.bytes;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  #wake(partition: PartitionView): void {
    const waiters = this.#waiters.get(partition);
    if (waiters === undefined) return;
    for (const waiter of Array.from(waiters)) waiter.wake();
  }

  #forget(partition: PartitionView, waiter: Waiter): void {
    const waiters = this.#waiters.get(partition);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#waiters.delete(partition);
  }
}

// A deleted partition counts as data: who reads it then learns that it is gone.
function hasData({ partition, offset }: Position): boolean {
  return !partition.live || partition.durableEnd > offset;
}

/** Bytes that a record takes in a batch, at most. */
export function sizeOf(record: NewRecord): number {
  let bytes = RECORD_OVERHEAD_BYTES + (record.key?.length ?? 0) + (record.value?.length ?? 0);
  for (const { key, value } of record.headers) bytes += 10 + key.length * 3 + (value?.length ?? 0);
  return bytes;
}

function encodeRecords(pendingRecords: readonly PendingRecord[]): {
  batches: AppendBatch[];
  places: { batch: number; index: number }[];
} {
  const records = new Map<PartitionView, { batch: number; records: NewRecord[] }>();
  const places = pendingRecords.map(({ partition, record }) => {
    let own = records.get(partition);
    if (own === undefined) {
      own = { batch: records.size, records: [] };
      records.set(partition, own);
    }
    own.records.push(record);
    return { batch: own.batch, index: own.records.length - 1 };
  });
  const batches = [...records].map(([partition, own]) => ({
    partition,
    batch: encodeBatch(own.records),
    verified: true,
  }));
  return { batches, places };
}
