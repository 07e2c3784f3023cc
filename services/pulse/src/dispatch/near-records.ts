// Delayed messages that are due soon, kept in memory so that delivering them waits for no file.
import type { PartitionView } from "@platform/log";
import { pickRecords, readBatchHeader, splitBatches, type StoredRecord } from "@platform/log/batch";
import { sizeOf, type Store } from "../store/store.ts";

const READ_BYTES = 256 * 1024;
/** What a kept record takes beside its bytes, roughly. */
const OVERHEAD_BYTES = 400;

/** A bounded store of records, by partition and offset. What does not fit is read when it is needed. */
export class NearRecords {
  readonly #store: Store;
  readonly #bytesMax: number;
  readonly #kept = new Map<PartitionView, Map<number, StoredRecord>>();
  #bytes = 0;

  constructor(store: Store, bytesMax: number) {
    this.#store = store;
    this.#bytesMax = bytesMax;
  }

  /** Bytes that may still be kept. */
  get roomBytes(): number {
    return Math.max(0, this.#bytesMax - this.#bytes);
  }

  countOf(partition: PartitionView): number {
    return this.#kept.get(partition)?.size ?? 0;
  }

  /** How many of these are not kept. */
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

  /** Drops everything but these records of a partition. */
  dropOthers(partition: PartitionView, offsets: ReadonlySet<number>): void {
    for (const [other, kept] of this.#kept) {
      for (const offset of kept.keys()) {
        if (other !== partition || !offsets.has(offset)) this.drop(other, offset);
      }
    }
  }

  /** Drops all of a partition. */
  forget(partition: PartitionView): void {
    for (const offset of this.#kept.get(partition)?.keys() ?? []) this.drop(partition, offset);
    this.#kept.delete(partition);
  }

  /**
   * Keeps the records at `offsets` (ascending) that are not kept yet, in one pass over the log, until about `bytesMax`
   * bytes of them were read. Rejects with the log's errors.
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
