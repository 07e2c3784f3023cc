// The keys of a segment: a Bloom filter for each run of whole batches.
import { hash } from "node:crypto";
import { crc32c } from "../batch/crc32c.ts";

/** Bytes of batches from which a run ends. */
const RUN_BYTES = 64 * 1024;
const BITS_PER_KEY = 10;
/** Bits of a key. With ten bits for each key, one of 120 runs without a key seems to have it. */
const PROBES = 7;

/*
 * File `<segment>.keys`:
 *   │ "PLFKEY" 0 1 8 │ covered bytes 8 │ runs 4 │ crc of all else 4 │
 *   then each run │ offset after it 8 │ highest time of its records 8 │ its bytes 4 │ bytes of the filter 4 │ filter │
 * The file is a cache: if it is missing, damaged or behind, the segment is read.
 */
const FILE_MAGIC = "PLFKEY\0\x01";
const FILE_HEADER_BYTES = 24;
const RUN_HEADER_BYTES = 24;

/** A key as filters know it. */
export interface KeyHash {
  readonly start: number;
  readonly step: number;
}

/** The hash of a key. */
export function hashKey(key: Buffer): KeyHash {
  const digest = hash("sha256", key, "buffer");
  // An odd step visits other bits with each probe.
  return { start: digest.readUInt32BE(0), step: (digest.readUInt32BE(4) | 1) >>> 0 };
}

/** A run that may have a key, if there is one, and the highest time of the records before it; -1 without any. */
export interface FoundRun {
  readonly place: { readonly offset: number; readonly bytes: number } | undefined;
  readonly passedTime: number;
}

/** Collects the keys of a segment, batch by batch. */
export class KeyRunsBuilder {
  readonly #runs: Buffer[] = [];
  #count = 0;
  /** Different keys of the run, so that its filter has the right size. */
  #keys = new Map<string, KeyHash>();
  #runBytes = 0;
  #nextOffset = -1;
  #time = -1;

  /** Adds a batch of `bytes` bytes and its records. */
  add(
    nextOffset: number,
    bytes: number,
    records: readonly { readonly key: Buffer | null; readonly timestamp: number }[],
  ): void {
    for (const { key, timestamp } of records) {
      this.#time = Math.max(this.#time, timestamp);
      if (key === null) continue;
      const text = key.toString("latin1");
      if (!this.#keys.has(text)) this.#keys.set(text, hashKey(key));
    }
    this.#runBytes += bytes;
    this.#nextOffset = nextOffset;
    if (this.#runBytes >= RUN_BYTES) this.#endRun();
  }

  /** The file of a segment whose batches end at `coveredBytes`. */
  encode(coveredBytes: number): Buffer {
    if (this.#runBytes > 0) this.#endRun();
    const header = Buffer.alloc(FILE_HEADER_BYTES);
    header.write(FILE_MAGIC, 0, "latin1");
    header.writeDoubleBE(coveredBytes, 8);
    header.writeUInt32BE(this.#count, 16);
    const file = Buffer.concat([header, ...this.#runs]);
    file.writeUInt32BE(checksum(file), 20);
    return file;
  }

  #endRun(): void {
    const filter = Buffer.alloc(Math.ceil((this.#keys.size * BITS_PER_KEY) / 8));
    for (const key of this.#keys.values()) {
      for (let probe = 0; probe < PROBES; probe += 1) {
        const bit = locateBit(key, probe, filter.length);
        filter[bit >>> 3]! |= 1 << (bit & 7);
      }
    }
    const header = Buffer.alloc(RUN_HEADER_BYTES);
    header.writeDoubleBE(this.#nextOffset, 0);
    header.writeDoubleBE(this.#time, 8);
    header.writeUInt32BE(this.#runBytes, 16);
    header.writeUInt32BE(filter.length, 20);
    this.#runs.push(header, filter);
    this.#count += 1;
    this.#keys = new Map();
    this.#runBytes = 0;
    this.#time = -1;
  }
}

/** The filters of a segment. */
export class KeyRuns {
  /** End of the batches that have filters. */
  readonly coveredBytes: number;
  readonly #file: Buffer;
  readonly #ends: Float64Array;
  /** Positions of the runs in the file. */
  readonly #positions: Uint32Array;

  private constructor(file: Buffer, ends: Float64Array, positions: Uint32Array) {
    this.#file = file;
    this.#ends = ends;
    this.#positions = positions;
    this.coveredBytes = file.readDoubleBE(8);
  }

  /** Reads a file; `undefined` if it is damaged. */
  static decode(file: Buffer): KeyRuns | undefined {
    if (file.length < FILE_HEADER_BYTES) return undefined;
    if (file.toString("latin1", 0, 8) !== FILE_MAGIC) return undefined;
    if (file.readUInt32BE(20) !== checksum(file)) return undefined;
    const count = file.readUInt32BE(16);
    if (count * RUN_HEADER_BYTES > file.length) return undefined;
    const ends = new Float64Array(count);
    const positions = new Uint32Array(count);
    let at = FILE_HEADER_BYTES;
    for (let run = 0; run < count; run += 1) {
      if (at + RUN_HEADER_BYTES > file.length) return undefined;
      ends[run] = file.readDoubleBE(at);
      positions[run] = at;
      at += RUN_HEADER_BYTES + file.readUInt32BE(at + 20);
    }
    return at === file.length ? new KeyRuns(file, ends, positions) : undefined;
  }

  /** Memory use in bytes. */
  get memoryBytes(): number {
    return this.#file.length + 12 * this.#ends.length + 128;
  }

  /** The first run from `offset` on that may have a key: its first offset, or `offset` within it, and its bytes. */
  find(key: KeyHash, offset: number): FoundRun {
    let passedTime = -1;
    for (let run = this.#locate(offset); run < this.#ends.length; run += 1) {
      const position = this.#positions[run]!;
      if (this.#mayHave(run, key)) {
        const first = run === 0 ? offset : this.#ends[run - 1]!;
        const bytes = this.#file.readUInt32BE(position + 16);
        return { place: { offset: Math.max(offset, first), bytes }, passedTime };
      }
      passedTime = Math.max(passedTime, this.#file.readDoubleBE(position + 8));
    }
    return { place: undefined, passedTime };
  }

  #mayHave(run: number, key: KeyHash): boolean {
    const position = this.#positions[run]!;
    const filterBytes = this.#file.readUInt32BE(position + 20);
    if (filterBytes === 0) return false;
    const start = position + RUN_HEADER_BYTES;
    for (let probe = 0; probe < PROBES; probe += 1) {
      const bit = locateBit(key, probe, filterBytes);
      if ((this.#file[start + (bit >>> 3)]! & (1 << (bit & 7))) === 0) return false;
    }
    return true;
  }

  // The run that contains an offset.
  #locate(offset: number): number {
    let low = 0;
    let high = this.#ends.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ends[middle]! <= offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function locateBit({ start, step }: KeyHash, probe: number, filterBytes: number): number {
  return (start + probe * step) % (8 * filterBytes);
}

function checksum(file: Buffer): number {
  return crc32c(file.subarray(FILE_HEADER_BYTES), crc32c(file.subarray(0, 20)));
}
