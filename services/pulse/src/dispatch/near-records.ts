// Keeps delayed messages that are due soon in memory, so that delivering them needs no file access.
import type { PartitionView } from "@platform/log";
import { pickRecords, readBatchHeader, splitBatches, type StoredRecord } from "@platform/log/batch";
import { sizeOf, type Store } from "../store/store.ts";

const READ_BYTES = 256 * 1024;
/** Approximate memory of a record besides its bytes. */
const OVERHEAD_BYTES = 400;

/** A bounded cache of records by partition and offset. Records that do not fit are read when needed. */
export class NearRecords {
  readonly #store: Store;
  readonly #bytesMax: number;
  readonly #kept = new Map<PartitionView, Map<number, StoredRecord>>();
  #bytes = 0;

  constructor(store: Store, bytesMax: number) {
    this.#store = store;
    this.#bytesMax = bytesMax;
  }

  /** Bytes still available. */
  get roomBytes(): number {
    return Math.max(0, this.#bytesMax - this.#bytes);
  }

  countOf(partition: PartitionView): number {
    return this.#kept.get(partition)?.size ?? 0;
  }

  /** Number of the given records that are not cached. */
  countMissing(partition: PartitionView, offsets: readonly number[]): number {
    const kept = this.#kept.get(partition);
    if (kept === undefined) return offsets.length;
    let count = 0;
    for (const offset of offsets) if (!kept.has(offset)) count++;
    return count;
  }

  get(partition: PartitionView, offset: number): StoredRecord | undefined {
    return this.#kept.get(partition)?.get(offset);
  }

  keep(partition: PartitionView, record: StoredRecord): void {
    const kept = this.#kept.get(partition) ?? new Map<number, StoredRecord>();
    this.#kept.set(partition, kept);
    if (kept.has(record.offset)) return;
    kept.set(record.offset, record);
    this.#bytes += sizeOf(record) + OVERHEAD_BYTES;
  }

  drop(partition: PartitionView, offset: number): void {
    const kept = this.#kept.get(partition);
    const record = kept?.get(offset);
    if (record === undefined) return;
    kept!.delete(offset);
    this.#bytes -= sizeOf(record) + OVERHEAD_BYTES;
  }

  /** Drops all records of a partition except the given ones. */
  dropOthers(partition: PartitionView, offsets: ReadonlySet<number>): void {
    for (const [other, kept] of this.#kept) {
      for (const offset of kept.keys()) {
        if (other !== partition || !offsets.has(offset)) this.drop(other, offset);
      }
    }
  }

  /** Drops all records of a partition. */
  forget(partition: PartitionView): void {
    for (const offset of this.#kept.get(partition)?.keys() ?? []) this.drop(partition, offset);
    this.#kept.delete(partition);
  }

  /**
   * Loads the missing records at `offsets` (ascending) in one pass over the log, until about `bytesMax` bytes of them were
   * read. Rejects with the log's errors.
   */
  async load(partition: PartitionView, offsets: Float64Array, bytesMax: number): Promise<void> {
    const kept = this.#kept.get(partition);
    const missing = kept === undefined ? offsets : offsets.filter((offset) => !kept.has(offset));
    const untilBytes = this.#bytes + bytesMax;
    for (let at = 0; at < missing.length && this.#bytes < untilBytes;) {
      const { buffers, nextOffset } = await this.#store.read(partition, missing[at]!, READ_BYTES);
      if (nextOffset <= missing[at]!) return;
      for (const buffer of buffers) {
        for (const batch of splitBatches(buffer)) {
          const { baseOffset, lastOffsetDelta } = readBatchHeader(batch)!;
          const first = at;
          while (at < missing.length && missing[at]! <= baseOffset + lastOffsetDelta) at++;
          if (at === first) continue;
          if (this.#bytes >= untilBytes) return;
          for (const record of pickRecords(batch, missing.subarray(first, at))) {
            this.keep(partition, record);
          }
        }
      }
    }
  }
}
