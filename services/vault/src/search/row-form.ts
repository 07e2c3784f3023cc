// Two forms of the rows of a matrix: integers of 8 bits find candidates in little memory, numbers of 32 bits find few of them.
import type { VectorArena } from "./vector-arena.ts";

/** Numbers as they are in memory: `values ≈ scale × numbers`. */
export interface StoredNumbers {
  readonly scale: number;
  /** Euclidean length of `scale × numbers`. */
  readonly length: number;
  /** Euclidean length of what rounding has changed. */
  readonly error: number;
}

/** A form of rows and of the query that they are multiplied with. */
export interface RowForm {
  /** Bytes of a number of a row. */
  readonly bytes: number;
  /** Largest relative error of a scalar product of so many numbers, apart from that of rounding the rows and the query. */
  slack(dimension: number): number;
  /** Rows are filled up with zeros to `stride` numbers. */
  writeRow(
    arena: VectorArena,
    address: number,
    stride: number,
    values: Float64Array,
  ): StoredNumbers;
  writeQuery(arena: VectorArena, stride: number, values: Float64Array): StoredNumbers;
  /** As `VectorArena.multiplyIntegers`. */
  multiply(
    arena: VectorArena,
    block: number,
    stride: number,
    rows: number,
    use: (row: number, product: number) => void,
  ): void;
}

const ROW_MAX = 127;
/** Partial sums of 4 096 products stay below 2³¹. */
const QUERY_MAX = 16_383;
/** Rounding of one 32-bit operation. */
const FLOAT_ROUNDING = 2 ** -24;

/** One byte for each number. Products are exact. */
export const INTEGERS: RowForm = {
  bytes: 1,
  slack: () => 0,
  writeRow: (arena, address, stride, values) =>
    writeIntegers(arena.viewIntegers(address, stride), values, ROW_MAX),
  writeQuery: (arena, stride, values) =>
    writeIntegers(arena.viewIntegerQuery(stride), values, QUERY_MAX),
  multiply: (arena, ...rows) => arena.multiplyIntegers(...rows),
};

/** Four bytes for each number. */
export const FLOATS: RowForm = {
  bytes: 4,
  slack: (dimension) => (dimension + 2) * FLOAT_ROUNDING,
  writeRow: (arena, address, stride, values) =>
    writeFloats(arena.viewFloats(address, stride), values),
  writeQuery: (arena, stride, values) => writeFloats(arena.viewFloats(0, stride), values),
  multiply: (arena, ...rows) => arena.multiplyFloats(...rows),
};

function writeIntegers(
  target: Int8Array | Int16Array,
  values: Float64Array,
  numberMax: number,
): StoredNumbers {
  const scale = findLargest(values) / numberMax;
  const inverse = scale === 0 ? 0 : 1 / scale;
  let error = 0;
  let length = 0;
  for (let at = 0; at < values.length; at += 1) {
    const number = Math.floor(values[at]! * inverse + 0.5);
    target[at] = number;
    const rest = values[at]! - number * scale;
    error += rest * rest;
    length += number * number;
  }
  target.fill(0, values.length);
  return { scale, length: Math.sqrt(length) * scale, error: Math.sqrt(error) };
}

// Scaled to 1, so that products do not overflow.
function writeFloats(target: Float32Array, values: Float64Array): StoredNumbers {
  const scale = findLargest(values);
  const inverse = scale === 0 ? 0 : 1 / scale;
  let error = 0;
  let length = 0;
  for (let at = 0; at < values.length; at += 1) {
    const number = Math.fround(values[at]! * inverse);
    target[at] = number;
    const rest = values[at]! - number * scale;
    error += rest * rest;
    length += number * number;
  }
  target.fill(0, values.length);
  return { scale, length: Math.sqrt(length) * scale, error: Math.sqrt(error) };
}

function findLargest(values: Float64Array): number {
  let largest = 0;
  for (let at = 0; at < values.length; at += 1) {
    const size = Math.abs(values[at]!);
    if (size > largest) largest = size;
  }
  return largest;
}
