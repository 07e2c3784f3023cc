// The sparse index of one segment: offsets and times to positions, about one entry per 32 KiB.
import { crc32c } from "../batch/crc32c.ts";

/** Bytes of log between two entries at least. */
export const indexIntervalBytes = 32 * 1024;

/*
 * File `<segment>.index`:
 *   │ "PLFIDX" 0 1 8 │ covered bytes 8 │ max time of them 8 │ entries 4 │ crc of all after it 4 │
 *   then each entry │ offset 8 │ position 8 │ max time before it 8 │
 * The file is a cache: if it is missing, damaged or behind, the segment is scanned for the rest.
 */
const fileMagic = "PLFIDX\0\x01";
const fileHeaderBytes = 32;
const entryBytes = 24;

/** A place to start a scan from. */
export type IndexPlace = { offset: number; position: number };

/**
 * Entries in ascending order in one growing array of triples: first offset of a batch, its
 * position, and the highest time of all batches before it. `coveredBytes` is how far batches have
 * been added; `maxTimestamp` is the highest time among them.
 */
export class SparseIndex {
  #entries = new Float64Array(3 * 4);
  #count = 0;
  #lastPosition = -indexIntervalBytes;
  coveredBytes: number;
  maxTimestamp = -1;

  /** `position`: where the first batch of the segment begins. */
  constructor(position = 0) {
    this.coveredBytes = position;
  }

  /** Bytes of memory that it takes. */
  get memoryBytes(): number {
    return this.#entries.byteLength + 96;
  }

  /** Adds the batch that lies at the end of what is covered. */
  add(baseOffset: number, bytes: number, maxTimestamp: number): void {
    if (this.coveredBytes - this.#lastPosition >= indexIntervalBytes) {
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
    const bytes = Buffer.alloc(fileHeaderBytes + this.#count * entryBytes);
    bytes.write(fileMagic, 0, "latin1");
    bytes.writeDoubleBE(this.coveredBytes, 8);
    bytes.writeDoubleBE(this.maxTimestamp, 16);
    bytes.writeUInt32BE(this.#count, 24);
    for (let slot = 0; slot < this.#count * 3; slot++) {
      bytes.writeDoubleBE(this.#entries[slot]!, fileHeaderBytes + slot * 8);
    }
    bytes.writeUInt32BE(checksum(bytes), 28);
    return bytes;
  }

  /** Decodes an index file; undefined if it is damaged or covers more than `segmentBytes`. */
  static decode(bytes: Buffer, segmentBytes: number): SparseIndex | undefined {
    if (bytes.length < fileHeaderBytes) return undefined;
    if (bytes.toString("latin1", 0, 8) !== fileMagic) return undefined;
    const count = bytes.readUInt32BE(24);
    if (bytes.length !== fileHeaderBytes + count * entryBytes) return undefined;
    if (checksum(bytes) !== bytes.readUInt32BE(28)) return undefined;
    const index = new SparseIndex();
    index.coveredBytes = bytes.readDoubleBE(8);
    if (index.coveredBytes > segmentBytes) return undefined;
    index.maxTimestamp = bytes.readDoubleBE(16);
    for (let entry = 0; entry < count; entry++) {
      const at = fileHeaderBytes + entry * entryBytes;
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

  // How many entries from the front fulfil a condition that holds for a prefix of them.
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
  return crc32c(bytes.subarray(fileHeaderBytes), crc32c(bytes.subarray(0, 28)));
}
