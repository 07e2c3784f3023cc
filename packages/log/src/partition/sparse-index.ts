// The sparse index of a segment: offsets and times to positions, about one entry per 32 KiB.
import { crc32c } from "../batch/crc32c.ts";

/** Minimum distance in bytes between two entries. */
export const INDEX_INTERVAL_BYTES = 32 * 1024;

/*
 * File `<segment>.index`:
 *   │ "PLFIDX" 0 1 8 │ covered bytes 8 │ max time of them 8 │ entries 4 │ crc of all after it 4 │
 *   then each entry │ offset 8 │ position 8 │ max time before it 8 │
 * The file is a cache: if it is missing, damaged or behind, the rest is read from the segment.
 */
const FILE_MAGIC = "PLFIDX\0\x01";
const FILE_HEADER_BYTES = 32;
const ENTRY_BYTES = 24;

/** A starting point for a scan. */
export interface IndexPlace {
  offset: number;
  position: number;
}

/**
 * Entries in ascending order in one growing array of triples: first offset of a batch, its position, and the highest
 * time of all batches before it. `coveredBytes` is the end of the batches added so far; `maxTimestamp` their highest
 * time.
 */
export class SparseIndex {
  #entries = new Float64Array(3 * 4);
  #count = 0;
  #lastPosition = -INDEX_INTERVAL_BYTES;
  coveredBytes: number;
  maxTimestamp = -1;

  /** `position`: the start of the segment's first batch. */
  constructor(position = 0) {
    this.coveredBytes = position;
  }

  /** Memory use in bytes. */
  get memoryBytes(): number {
    return this.#entries.byteLength + 96;
  }

  /** Adds the next batch. */
  add(baseOffset: number, bytes: number, maxTimestamp: number): void {
    if (this.coveredBytes - this.#lastPosition >= INDEX_INTERVAL_BYTES) {
      this.#push(baseOffset, this.coveredBytes, this.maxTimestamp);
      this.#lastPosition = this.coveredBytes;
    }
    this.coveredBytes += bytes;
    if (maxTimestamp > this.maxTimestamp) this.maxTimestamp = maxTimestamp;
  }

  /** The last entry at or below `offset`. */
  findOffset(offset: number): IndexPlace {
    return this.#place(this.#lowerCount((entry) => this.#entries[entry * 3]! <= offset));
  }

  /** The last entry before which every record is older than `timestamp`. */
  findTime(timestamp: number): IndexPlace {
    return this.#place(this.#lowerCount((entry) => this.#entries[entry * 3 + 2]! < timestamp));
  }

  encode(): Buffer {
    const bytes = Buffer.alloc(FILE_HEADER_BYTES + this.#count * ENTRY_BYTES);
    bytes.write(FILE_MAGIC, 0, "latin1");
    bytes.writeDoubleBE(this.coveredBytes, 8);
    bytes.writeDoubleBE(this.maxTimestamp, 16);
    bytes.writeUInt32BE(this.#count, 24);
    for (let slot = 0; slot < this.#count * 3; slot++) {
      bytes.writeDoubleBE(this.#entries[slot]!, FILE_HEADER_BYTES + slot * 8);
    }
    bytes.writeUInt32BE(checksum(bytes), 28);
    return bytes;
  }

  /** Decodes an index file; `undefined` if it is damaged or covers more than `segmentBytes`. */
  static decode(bytes: Buffer, segmentBytes: number): SparseIndex | undefined {
    if (bytes.length < FILE_HEADER_BYTES) return undefined;
    if (bytes.toString("latin1", 0, 8) !== FILE_MAGIC) return undefined;
    const count = bytes.readUInt32BE(24);
    if (bytes.length !== FILE_HEADER_BYTES + count * ENTRY_BYTES) return undefined;
    if (checksum(bytes) !== bytes.readUInt32BE(28)) return undefined;
    const index = new SparseIndex();
    index.coveredBytes = bytes.readDoubleBE(8);
    if (index.coveredBytes > segmentBytes) return undefined;
    index.maxTimestamp = bytes.readDoubleBE(16);
    for (let entry = 0; entry < count; entry++) {
      const at = FILE_HEADER_BYTES + entry * ENTRY_BYTES;
      const position = bytes.readDoubleBE(at + 8);
      index.#push(bytes.readDoubleBE(at), position, bytes.readDoubleBE(at + 16));
      index.#lastPosition = position;
    }
    return index;
  }

  #push(offset: number, position: number, maxTimestampBefore: number): void {
    if (this.#count * 3 === this.#entries.length) {
      const grown = new Float64Array(this.#entries.length * 2);
      grown.set(this.#entries);
      this.#entries = grown;
    }
    this.#entries[this.#count * 3] = offset;
    this.#entries[this.#count * 3 + 1] = position;
    this.#entries[this.#count * 3 + 2] = maxTimestampBefore;
    this.#count++;
  }

  #place(countBelow: number): IndexPlace {
    if (countBelow === 0) return { offset: -1, position: 0 };
    const at = (countBelow - 1) * 3;
    return { offset: this.#entries[at]!, position: this.#entries[at + 1]! };
  }

  // The number of leading entries that satisfy a condition, which holds for a prefix of all entries.
  #lowerCount(holds: (entry: number) => boolean): number {
    let low = 0;
    let high = this.#count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (holds(middle)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function checksum(bytes: Buffer): number {
  return crc32c(bytes.subarray(FILE_HEADER_BYTES), crc32c(bytes.subarray(0, 28)));
}
