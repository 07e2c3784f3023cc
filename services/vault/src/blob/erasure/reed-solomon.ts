// A systematic Reed–Solomon code: k data shards, m parity shards, and any k of them restore all others.
//
// Parity is data times a Cauchy matrix (Blömer and others, "An XOR-Based Erasure-Resilient Coding Scheme", 1995), its
// columns scaled so that the first row is all ones: the first parity shard is a plain XOR. Scaling keeps every square
// submatrix invertible.
import { createGaloisField, type GaloisField } from "./galois-field.ts";

/** The present shards of one stripe by index, data before parity. All have the same length. */
export type PresentShards = ReadonlyMap<number, Uint8Array>;

/** Limit of the number of shards. */
export const SHARDS_MAX = 32;

/** Computes parity, and lost shards from present ones. */
export class ReedSolomon {
  readonly data: number;
  readonly parity: number;
  readonly #field: GaloisField = createGaloisField();
  // A row for each shard: its coefficients over the data shards.
  readonly #rows: readonly Uint8Array[];
  readonly #products = new Map<number, Uint8Array>();

  constructor(data: number, parity: number) {
    if (data < 1 || parity < 0 || data + parity > SHARDS_MAX) {
      throw new RangeError(`a code of ${data}+${parity} shards is not possible`);
    }
    this.data = data;
    this.parity = parity;
    this.#rows = this.#buildRows();
  }

  /** Fills the parity shards. */
  encode(data: readonly Uint8Array[], parity: readonly Uint8Array[]): void {
    for (const [index, into] of parity.entries()) {
      this.#combine(this.#rows[this.data + index]!, data, into);
    }
  }

  /** Computes the shard `index` into `into` from any `data` others. Throws if there are fewer. */
  reconstruct(index: number, present: PresentShards, into: Uint8Array): void {
    const chosen = [...present.keys()].slice(0, this.data);
    if (chosen.length < this.data) throw new RangeError("too few shards are left");
    const shards = chosen.map((shard) => present.get(shard)!);
    const inverse = this.#invert(chosen.map((shard) => this.#rows[shard]!));
    // Row of the lost shard × inverse: its coefficients over the chosen shards.
    const row = this.#rows[index]!;
    const factors = new Uint8Array(this.data);
    for (let column = 0; column < this.data; column += 1) {
      for (let at = 0; at < this.data; at += 1) {
        factors[column]! ^= this.#field.multiply(row[at]!, inverse[at]![column]!);
      }
    }
    this.#combine(factors, shards, into);
  }

  #buildRows(): Uint8Array[] {
    const { multiply, invert } = this.#field;
    const identity = Array.from({ length: this.data }, (_, row) =>
      Uint8Array.from({ length: this.data }, (_unused, column) => (row === column ? 1 : 0)),
    );
    const cauchy = (row: number, column: number) => invert((this.data + row) ^ column);
    const parity = Array.from({ length: this.parity }, (_, row) =>
      Uint8Array.from({ length: this.data }, (_unused, column) =>
        multiply(cauchy(row, column), invert(cauchy(0, column))),
      ),
    );
    return [...identity, ...parity];
  }

  // Gauss–Jordan elimination; every choice of rows is invertible.
  #invert(rows: readonly Uint8Array[]): Uint8Array[] {
    const { multiply, invert } = this.#field;
    const size = rows.length;
    const work = rows.map((row, index) => {
      const wide = new Uint8Array(2 * size);
      wide.set(row);
      wide[size + index] = 1;
      return wide;
    });
    for (let column = 0; column < size; column += 1) {
      const pivot = work.findIndex((row, index) => index >= column && row[column] !== 0);
      if (pivot < 0) throw new RangeError("the shards do not determine the data");
      [work[column], work[pivot]] = [work[pivot]!, work[column]!];
      const scale = invert(work[column]![column]!);
      work[column] = work[column]!.map((value) => multiply(value, scale));
      for (const [index, row] of work.entries()) {
        const factor = row[column]!;
        if (index === column || factor === 0) continue;
        const base = work[column]!;
        work[index] = row.map((value, at) => value ^ multiply(factor, base[at]!));
      }
    }
    return work.map((row) => row.slice(size));
  }

  #combine(factors: Uint8Array, shards: readonly Uint8Array[], into: Uint8Array): void {
    into.fill(0);
    for (const [index, shard] of shards.entries()) {
      const factor = factors[index]!;
      if (factor === 1) addBytes(shard, into);
      else if (factor !== 0) this.#addProduct(factor, shard, into);
    }
  }

  #addProduct(factor: number, shard: Uint8Array, into: Uint8Array): void {
    let products = this.#products.get(factor);
    if (products === undefined) {
      products = this.#field.buildProducts(factor);
      this.#products.set(factor, products);
    }
    for (let at = 0; at < into.length; at += 1) into[at]! ^= products[shard[at]!]!;
  }
}

// Four bytes at a time if both are aligned to four bytes.
function addBytes(from: Uint8Array, into: Uint8Array): void {
  let at = 0;
  if (from.byteOffset % 4 === 0 && into.byteOffset % 4 === 0) {
    const words = into.length >> 2;
    const source = new Int32Array(from.buffer, from.byteOffset, words);
    const target = new Int32Array(into.buffer, into.byteOffset, words);
    for (let word = 0; word < words; word += 1) target[word]! ^= source[word]!;
    at = words * 4;
  }
  for (; at < into.length; at += 1) into[at]! ^= from[at]!;
}
