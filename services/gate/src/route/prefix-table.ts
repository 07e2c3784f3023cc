// Finds the longest matching prefix of a path with one hash lookup per length at which a prefix may end.
import { hashPrefix, type PathScan } from "../exchange/path-scan.ts";
import { forEachInSlices } from "./slices.ts";

/** The property of a value that the table requires. */
export interface Prefixed {
  /** Starts with `/` and contains characters up to U+00FF. */
  readonly prefix: string;
}

/**
 * Immutable map from prefixes to values. The cost of a lookup does not grow with the number of prefixes.
 *
 * The index consists of typed arrays, which the garbage collector neither copies nor scans: tens of thousands of routes
 * must not make its pauses longer.
 *
 * ```
 * #cells   hash → entry + 1, open addressing, 0: empty
 * #hashes  entry → hash of its prefix
 * #ends    entry → end of its prefix in #bytes; it begins at the end of the previous one
 * #values  entry → value
 * ```
 */
export class PrefixTable<T extends Prefixed> {
  /** Length in bytes of the longest prefix; 0 for an empty table. */
  readonly prefixBytesMax: number;
  readonly #mask: number;
  readonly #cells: Int32Array;
  readonly #hashes: Int32Array;
  readonly #ends: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #values: readonly T[];
  readonly #lengths: Uint8Array;

  /**
   * Builds a table in slices. Of several values with the same prefix it holds the first; `onInsert` receives each value
   * and the one that the table holds for its prefix.
   */
  static async build<V extends Prefixed>(
    values: readonly V[],
    onInsert: (value: V, held: V) => void,
  ): Promise<PrefixTable<V>> {
    let bytes = 0;
    let bytesMax = 0;
    await forEachInSlices(values, ({ prefix }) => {
      bytes += prefix.length;
      bytesMax = Math.max(bytesMax, prefix.length);
    });
    const table = new PrefixTable(values, bytes, bytesMax);
    let entry = 0;
    await forEachInSlices(values, (value) => {
      onInsert(value, table.#insert(value.prefix, entry++));
    });
    return table;
  }

  private constructor(values: readonly T[], bytes: number, bytesMax: number) {
    let size = 8;
    while (size < values.length * 2) size *= 2;
    this.#mask = size - 1;
    this.#cells = new Int32Array(size);
    this.#hashes = new Int32Array(values.length);
    this.#ends = new Int32Array(values.length);
    this.#bytes = new Uint8Array(bytes);
    this.#values = values;
    this.prefixBytesMax = bytesMax;
    this.#lengths = new Uint8Array(bytesMax + 1);
  }

  /** The value of the longest prefix that ends at or before the mark `from`, or undefined. */
  find(scan: PathScan, from = scan.marks - 1): T | undefined {
    for (let mark = from; mark >= 0; mark--) {
      const value = this.findAt(scan, mark);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  /** The value of the prefix that ends exactly at a mark, or undefined. */
  findAt(scan: PathScan, mark: number): T | undefined {
    const length = scan.markLengths[mark]!;
    if (length > this.prefixBytesMax || this.#lengths[length] === 0) return undefined;
    const hash = scan.markHashes[mark]!;
    for (let cell = mix(hash) & this.#mask; ; cell = (cell + 1) & this.#mask) {
      const entry = this.#cells[cell]! - 1;
      if (entry === -1) return undefined;
      if (this.#hashes[entry] === hash && this.#isPrefix(entry, scan.bytes, scan.start, length)) {
        return this.#values[entry];
      }
    }
  }

  // Returns the value that the table holds for the prefix.
  #insert(prefix: string, entry: number): T {
    const start = this.#startOf(entry);
    const end = start + prefix.length;
    this.#ends[entry] = end;
    for (let at = 0; at < prefix.length; at++) this.#bytes[start + at] = prefix.charCodeAt(at);
    const hash = hashPrefix(this.#bytes, start, end);
    this.#hashes[entry] = hash;
    let cell = mix(hash) & this.#mask;
    for (let held = this.#cells[cell]!; held !== 0; held = this.#cells[cell]!) {
      if (
        this.#hashes[held - 1] === hash &&
        this.#isPrefix(held - 1, this.#bytes, start, prefix.length)
      ) {
        return this.#values[held - 1]!;
      }
      cell = (cell + 1) & this.#mask;
    }
    this.#cells[cell] = entry + 1;
    this.#lengths[prefix.length] = 1;
    return this.#values[entry]!;
  }

  #startOf(entry: number): number {
    return entry === 0 ? 0 : this.#ends[entry - 1]!;
  }

  #isPrefix(entry: number, bytes: Uint8Array, start: number, length: number): boolean {
    const own = this.#startOf(entry);
    if (this.#ends[entry]! - own !== length) return false;
    for (let at = 0; at < length; at++) {
      if (this.#bytes[own + at] !== bytes[start + at]) return false;
    }
    return true;
  }
}

// The high bits of an FNV hash are the best distributed; the table indexes by the low ones.
function mix(hash: number): number {
  return hash ^ (hash >>> 15);
}
