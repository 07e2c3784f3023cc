// Finds the longest matching prefix of a path with one hash lookup per length at which a prefix may end.
import type { EncodedPrefix } from "../exchange/exchange.ts";
import { hashPrefix, type PathScan } from "../exchange/path-scan.ts";
import { forEachInSlices } from "./slices.ts";

/** Encodes a prefix that starts with `/` and contains characters up to U+00FF. */
export function encodePrefix(prefix: string): EncodedPrefix {
  const bytes = Buffer.from(prefix, "latin1");
  return { bytes, hash: hashPrefix(bytes) };
}

/** Immutable map from prefixes to values. The cost of a lookup does not grow with the number of prefixes. */
export class PrefixTable<T> {
  /** Length in bytes of the longest prefix; 0 for an empty table. */
  readonly prefixBytesMax: number;
  readonly #mask: number;
  readonly #hashes: Int32Array;
  readonly #prefixes: (Uint8Array | undefined)[];
  readonly #values: (T | undefined)[];
  readonly #lengths: Uint8Array;

  /** Builds a table of distinct prefixes that start with `/`. Rejects with a RangeError on a duplicate. */
  static async build<V>(
    entries: readonly (readonly [prefix: EncodedPrefix, value: V])[],
  ): Promise<PrefixTable<V>> {
    const table = new PrefixTable<V>(entries);
    await forEachInSlices(entries, ([prefix, value]) => table.#insert(prefix, value));
    return table;
  }

  /** Creates an empty table with capacity for the entries. */
  private constructor(entries: readonly (readonly [prefix: EncodedPrefix, value: T])[]) {
    let size = 8;
    while (size < entries.length * 2) size *= 2;
    this.#mask = size - 1;
    this.#hashes = new Int32Array(size);
    this.#prefixes = makeEmpty(size);
    this.#values = makeEmpty(size);
    this.prefixBytesMax = entries.reduce((most, [{ bytes }]) => Math.max(most, bytes.length), 0);
    this.#lengths = new Uint8Array(this.prefixBytesMax + 1);
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
      const prefix = this.#prefixes[cell];
      if (prefix === undefined) return undefined;
      if (this.#hashes[cell] === hash && isPrefixOf(prefix, scan.bytes, scan.start, length)) {
        return this.#values[cell];
      }
    }
  }

  #insert({ bytes: prefix, hash }: EncodedPrefix, value: T): void {
    let cell = mix(hash) & this.#mask;
    for (let held = this.#prefixes[cell]; held !== undefined; held = this.#prefixes[cell]) {
      if (this.#hashes[cell] === hash && isPrefixOf(held, prefix, 0, prefix.length)) {
        throw new RangeError(`duplicate prefix ${Buffer.from(prefix).toString("latin1")}`);
      }
      cell = (cell + 1) & this.#mask;
    }
    this.#hashes[cell] = hash;
    this.#prefixes[cell] = prefix;
    this.#values[cell] = value;
    this.#lengths[prefix.length] = 1;
  }
}

function makeEmpty<E>(length: number): (E | undefined)[] {
  const cells: (E | undefined)[] = [];
  cells.length = length;
  return cells.fill(undefined);
}

// The high bits of an FNV hash are the best distributed; the table indexes by the low ones.
function mix(hash: number): number {
  return hash ^ (hash >>> 15);
}

function isPrefixOf(prefix: Uint8Array, bytes: Uint8Array, start: number, length: number): boolean {
  if (prefix.length !== length) return false;
  for (let at = 0; at < length; at++) {
    if (prefix[at] !== bytes[start + at]) return false;
  }
  return true;
}
