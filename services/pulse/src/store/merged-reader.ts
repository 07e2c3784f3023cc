// Reads several partitions as one list in the order of time.
import type { PartitionView } from "@platform/log";
import { decodeBatch, splitBatches, type StoredRecord } from "@platform/log/batch";
import type { Store } from "./store.ts";

/** Bytes of one read, between these: many partitions share what a call may read. */
const READ_BYTES_MAX = 256 * 1024;
const READ_BYTES_MIN = 64 * 1024;
/** Records that are held decoded. Those of other partitions are read again when their turn comes. */
const HELD_BYTES_MAX = 32 * 1024 * 1024;

/** Records of a partition to read, from an offset to below another. */
export interface MergedSource {
  readonly partition: PartitionView;
  readonly from: number;
  readonly until: number;
}

/** The next record of a source. */
export interface MergedRecord<Source> {
  readonly source: Source;
  readonly record: StoredRecord;
}

interface Head<Source> {
  readonly source: Source;
  readonly rank: number;
  /** Decoded records, the next one last; empty if they are read again later. */
  records: StoredRecord[];
  /** Bytes that the decoded records hold. */
  bytes: number;
  /** Offset of the next record. */
  offset: number;
  /** Time of the next record, epoch milliseconds; never below that of an earlier one of its partition. */
  time: number;
}

/** Options of a `MergedReader`. */
export interface MergedReaderOptions {
  /** Time of the last record of an earlier call. */
  floor: number;
  /** Stored bytes to read, after which `peek` finds nothing. */
  bytesMax: number;
  /** Only records with this key matter: others are found, or passed where filters of keys show that it is not there. */
  key?: Buffer | undefined;
}

/**
 * Merges records by time, then by the order of `sources`, then by offset. Within a partition offsets decide: a time below an
 * earlier one counts as that one. Damage is skipped. Rejects with the log's error for a batch that cannot be decompressed.
 */
export class MergedReader<Source extends MergedSource> {
  readonly #store: Store;
  readonly #bytesMax: number;
  readonly #readBytes: number;
  readonly #key: Buffer | undefined;
  readonly #waiting: Head<Source>[];
  /** By time and rank, a binary heap: no head is before its parent. */
  readonly #heap: Head<Source>[] = [];
  #bytesRead = 0;
  #heldBytes = 0;
  #taken = 0;
  #floor: number;

  constructor(
    store: Store,
    sources: readonly Source[],
    { floor, bytesMax, key }: MergedReaderOptions,
  ) {
    this.#store = store;
    this.#key = key;
    this.#floor = floor;
    this.#bytesMax = bytesMax;
    const share = Math.floor(bytesMax / Math.max(1, sources.length));
    this.#readBytes = Math.min(READ_BYTES_MAX, Math.max(READ_BYTES_MIN, share));
    this.#waiting = sources.map((source, rank) => {
      return { source, rank, records: [], bytes: 0, offset: source.from, time: floor };
    });
  }

  /** The next record; undefined at the end, or if as much has been read as the call may. */
  async peek(): Promise<MergedRecord<Source> | undefined> {
    for (let head = this.#waiting.pop(); head !== undefined; head = this.#waiting.pop()) {
      if (await this.#fill(head)) this.#push(head);
    }
    for (let head = this.#heap[0]; head !== undefined; head = this.#heap[0]) {
      const record = head.records.at(-1);
      if (record !== undefined) return { source: head.source, record };
      if (this.#bytesRead >= this.#bytesMax && this.#taken > 0) return undefined;
      this.#pop();
      if (await this.#fill(head)) this.#push(head);
    }
    return undefined;
  }

  /** Passes the record that `peek` has found. */
  take(): void {
    const head = this.#pop();
    const record = head.records.pop()!;
    this.#taken++;
    this.#floor = head.time;
    head.offset = record.offset + 1;
    const next = head.records.at(-1);
    if (next === undefined) this.#release(head);
    else head.time = Math.max(head.time, next.timestamp);
    if (head.offset < head.source.until) this.#push(head);
    else this.#release(head);
  }

  /** Time of the last record that was taken. */
  get floor(): number {
    return this.#floor;
  }

  /** The sources that have more records, with the offset from which to continue. */
  rest(): { source: Source; offset: number }[] {
    return [...this.#waiting, ...this.#heap]
      .toSorted((one, other) => one.rank - other.rank)
      .map(({ source, offset }) => ({ source, offset }));
  }

  /** Reads the next records of a partition; false if there are none. */
  async #fill(head: Head<Source>): Promise<boolean> {
    const { partition, until } = head.source;
    while (head.offset < until) {
      const bytesMax = await this.#passOthers(head);
      if (head.offset >= until) return false;
      const found = await this.#store.readIntact(partition, head.offset, bytesMax);
      this.#bytesRead += found.bytes;
      for (const batch of found.buffers.flatMap((buffer) => [...splitBatches(buffer)])) {
        for (const record of (await decodeBatch(batch)).records) {
          if (record.offset < head.offset || record.offset >= until) continue;
          head.records.push(record);
          head.bytes += (record.key?.length ?? 0) + (record.value?.length ?? 0);
        }
      }
      head.records.reverse();
      const first = head.records.at(-1);
      if (first !== undefined) {
        head.offset = first.offset;
        head.time = Math.max(head.time, first.timestamp);
        this.#hold(head);
        return true;
      }
      if (found.nextOffset <= head.offset) return false;
      head.offset = found.nextOffset;
    }
    return false;
  }

  /** Moves to where the key may be; returns the bytes to read there. */
  async #passOthers(head: Head<Source>): Promise<number> {
    const { partition } = head.source;
    if (this.#key === undefined || !partition.topic.config.keyIndex) return this.#readBytes;
    const place = await this.#store.log.findKey(partition, this.#key, head.offset);
    head.offset = place.offset;
    head.time = Math.max(head.time, place.passedTime);
    return Math.min(this.#readBytes, place.bytes ?? this.#readBytes);
  }

  #hold(head: Head<Source>): void {
    this.#heldBytes += head.bytes;
    for (const other of this.#heap) {
      if (this.#heldBytes <= HELD_BYTES_MAX) return;
      if (other !== head) this.#release(other);
    }
  }

  #release(head: Head<Source>): void {
    this.#heldBytes -= head.bytes;
    head.bytes = 0;
    head.records = [];
  }

  #push(head: Head<Source>): void {
    const heap = this.#heap;
    let at = heap.push(head) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (isBefore(heap[parent]!, head)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = head;
  }

  #pop(): Head<Source> {
    const heap = this.#heap;
    const top = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return top;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= heap.length) break;
      const right = left + 1;
      const isRight = right < heap.length && isBefore(heap[right]!, heap[left]!);
      const child = isRight ? right : left;
      if (isBefore(last, heap[child]!)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return top;
  }
}

function isBefore(one: Head<unknown>, other: Head<unknown>): boolean {
  return one.time === other.time ? one.rank < other.rank : one.time < other.time;
}
