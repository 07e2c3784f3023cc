// The broker's access to the log: records batched into atomic entries, whole batches, reads and waits.
import {
  DamagedError,
  LogError,
  type AppendBatch,
  type AppendResult,
  type Log,
  type PartitionView,
  type ReadOptions,
  type ReadResult,
} from "@platform/log";
import { encodeBatch, type NewRecord } from "@platform/log/batch";

/** Largest batch: the messages of a large body, or a dead letter of a client's largest batch, with the broker's headers. */
export const BATCH_BYTES_MAX = 16 * 1024 * 1024;
/** Maximum size of the records of one entry, a little below the size limit of a batch. */
const ENTRY_BYTES_MAX = 4 * 1024 * 1024;
/** Upper bound of a record's size in a batch besides key, value and headers. */
const RECORD_OVERHEAD_BYTES = 64;

/** A record to append to a partition. */
export interface PendingRecord {
  partition: PartitionView;
  record: NewRecord;
  /** May use the reserve of a full disk: for the broker's own small records, such as acknowledgements. */
  mayUseReserve?: true;
}

/** A position to read from. */
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
 * Appends and reads. Each append is one journal entry: after a crash it is there completely or not at all. Appends that
 * arrive while the disk is busy share an entry, so a small message costs a fraction of a batch and of a sync.
 * Errors are `LogError`s.
 */
export class Store {
  readonly log: Log;
  #queue: Waiting[] = [];
  #queuedBytes = 0;
  readonly #queuedBytesMax: number;
  #isFlushing = false;
  readonly #waiters = new Map<PartitionView, Set<Waiter>>();
  readonly #unwatch: () => void;

  /** `queuedBytesMax`: bytes of records that may be queued before appends fail as `overloaded`. */
  constructor(log: Log, queuedBytesMax = 64 * 1024 * 1024) {
    this.log = log;
    this.#queuedBytesMax = queuedBytesMax;
    this.#unwatch = log.watch((partitions) => {
      for (const partition of partitions) this.#wake(partition);
    });
  }

  /**
   * Appends records durably as one atomic entry; records of one partition keep their order. Resolves with the offset of
   * each. Entries of earlier calls come first.
   */
  async append(pendingRecords: readonly PendingRecord[]): Promise<number[]> {
    if (pendingRecords.length === 0) return [];
    if (!pendingRecords.every(({ mayUseReserve }) => mayUseReserve)) this.log.requireRoom();
    const bytes = pendingRecords.reduce((sum, { record }) => sum + sizeOf(record), 0);
    if (this.#queuedBytes > this.#queuedBytesMax) {
      throw new LogError("overloaded", "too many bytes wait for the disk");
    }
    this.#queuedBytes += bytes;
    return new Promise((resolve, reject) => {
      this.#queue.push({ pendingRecords, bytes, resolve, reject });
      if (!this.#isFlushing) {
        this.#isFlushing = true;
        // In a later turn, so that appends of all requests that have arrived by now share the entry.
        setImmediate(() => void this.#flush());
      }
    });
  }

  /**
   * Appends whole batches v2 unchanged, compressed or not, with `pendingRecords` in the same atomic entry; those are
   * skipped if a batch is a duplicate. The log takes ownership of the buffers. `verified` in a batch says that
   * `validateBatch` has passed.
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

  /** Reads whole batches from the one that contains `offset` on; nothing past the durable end. `options` as in the log. */
  read(
    partition: PartitionView,
    offset: number,
    bytesMax: number,
    options?: ReadOptions,
  ): Promise<ReadResult> {
    return this.log.read(partition, offset, bytesMax, options);
  }

  /** Like `read`, but skips damage, which the log has reported: the result is empty up to its end. */
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
   * Resolves true once one of the positions has durable data, false after `timeoutMs` or when `signal` fires. Holds no
   * data meanwhile.
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

  /** Wakes all waits for a partition that was deleted. */
  wake(partition: PartitionView): void {
    this.#wake(partition);
  }

  /** Finishes queued appends and stops wake-ups. */
  async finish(): Promise<void> {
    while (this.#isFlushing) await new Promise((resolve) => setImmediate(resolve));
    this.#unwatch();
  }

  /** Finishes queued appends, then closes the log. */
  async close(): Promise<void> {
    await this.finish();
    await this.log.close();
  }

  // One entry in flight at a time: appends that arrive meanwhile form the next one, so entries grow with the load.
  async #flush(): Promise<void> {
    while (this.#queue.length > 0) {
      const taken = this.#take();
      const { batches, places } = encodeRecords(
        taken.flatMap(({ pendingRecords }) => pendingRecords),
      );
      try {
        // Records that must not use the reserve were refused earlier.
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

  // If a topic was deleted meanwhile, only the appends to it fail, not all others of the same entry.
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

// A deleted partition counts as data: the next read reports the deletion.
function hasData({ partition, offset }: Position): boolean {
  return !partition.live || partition.durableEnd > offset;
}

/** True for a read of records in object storage that does not answer or is not configured. */
export function isColdError(error: unknown): boolean {
  return error instanceof LogError && error.code === "cold-unavailable";
}

/** Upper bound of a record's size in a batch. */
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
