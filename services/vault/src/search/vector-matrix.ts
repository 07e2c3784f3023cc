// The vectors of a bucket, for finding candidates by one pass over memory.
//
// Each row is centred (cosine: after it was normalized) and scaled, r ≈ scale × numbers, and its rounding error |r − r̂| is
// known. So the distance to a query has a lower bound, and rows that are visited by ascending bounds need be visited only until
// the next bound exceeds the k-th distance found: the result is that of an exact search.
import { decodeVector, type VectorMetric } from "../model/vector.ts";
import type { RowForm, StoredNumbers } from "./row-form.ts";
import type { VectorArena } from "./vector-arena.ts";
import { LANE_NUMBERS } from "./vector-kernel.ts";

/** Of the arithmetic, relative to the lengths of the vectors. */
const SLACK = 1e-6;
const CAPACITY_MIN = 1_024;

/** Vectors of one index. */
export class VectorMatrix {
  readonly dimension: number;
  readonly metric: VectorMetric;
  readonly #arena: VectorArena;
  readonly #form: RowForm;
  /** Relative error of a scalar product in memory. */
  readonly #slack: number;
  readonly #center: Float64Array;
  /** The vector that is being added: memory of its own for each one would be most of the work of the garbage collector. */
  readonly #values: Float64Array;
  readonly #stride: number;
  readonly #blocks: number[] = [];
  readonly #rowsPerBlock: number;
  #ids = new Float64Array(CAPACITY_MIN);
  #scales = new Float64Array(CAPACITY_MIN);
  #lengths = new Float64Array(CAPACITY_MIN);
  #errors = new Float32Array(CAPACITY_MIN);
  #gone = new Uint8Array(CAPACITY_MIN);
  #rows = 0;
  #goneRows = 0;
  /** The last question, for choosing the matrix to forget. */
  usedAt = 0;

  /** `center` is near the mean of the vectors, which are normalized first if the metric is `cosine`. */
  constructor(arena: VectorArena, form: RowForm, metric: VectorMetric, center: Float64Array) {
    this.#arena = arena;
    this.#form = form;
    this.#slack = form.slack(center.length);
    this.metric = metric;
    this.dimension = center.length;
    this.#center = center;
    this.#values = new Float64Array(center.length);
    this.#stride = Math.ceil(this.dimension / LANE_NUMBERS) * LANE_NUMBERS;
    this.#rowsPerBlock = Math.floor(arena.blockBytes / (this.#stride * form.bytes));
  }

  get rows(): number {
    return this.#rows;
  }

  /** Rows whose vectors exist no longer. */
  get goneRows(): number {
    return this.#goneRows;
  }

  /** The id of the last row; ids ascend. */
  get lastId(): number {
    return this.#rows === 0 ? 0 : this.#ids[this.#rows - 1]!;
  }

  /** Adds a vector. Returns false if the memory is full. */
  add(id: number, data: Uint8Array): boolean {
    const index = this.#rows;
    if (index % this.#rowsPerBlock === 0 && index / this.#rowsPerBlock === this.#blocks.length) {
      const block = this.#arena.takeBlock();
      if (block === undefined) return false;
      this.#blocks.push(block);
    }
    this.#reserve(index + 1);
    prepare(data, this.metric, this.#values, this.#center);
    const address = this.#locate(index);
    const stored = this.#form.writeRow(this.#arena, address, this.#stride, this.#values);
    this.#ids[index] = id;
    this.#scales[index] = stored.scale;
    this.#lengths[index] = stored.length;
    this.#errors[index] = stored.error * (1 + SLACK);
    this.#gone[index] = 0;
    this.#rows += 1;
    return true;
  }

  /**
   * Visits the rows by ascending lower bounds of their distances until `visit` returns false, in batches of ids. With `wanted`
   * (ascending ids) only these.
   */
  search(
    query: Float32Array,
    wanted: Float64Array | undefined,
    batch: number,
    visit: (ids: number[], nextBound: number) => boolean,
  ): void {
    const bounds = this.#computeBounds(query, wanted);
    for (let done = 0, size = batch; ; size *= 4) {
      const nearest = selectSmallest(bounds, size + 1);
      const isAll = nearest.length <= size;
      const chosen = nearest.slice(done, isAll ? undefined : size);
      const nextBound = isAll ? Number.POSITIVE_INFINITY : bounds[nearest[size]!]!;
      if (
        !visit(
          chosen.map((row) => this.#ids[row]!),
          nextBound,
        ) ||
        isAll
      )
        return;
      done = size;
    }
  }

  /** Notes that a vector does not exist any more. */
  forget(id: number): void {
    const row = findRow(this.#ids, this.#rows, id);
    if (row === undefined || this.#gone[row] === 1) return;
    this.#gone[row] = 1;
    this.#goneRows += 1;
  }

  /** Returns the memory. */
  release(): void {
    for (const block of this.#blocks.splice(0)) this.#arena.returnBlock(block);
    this.#rows = 0;
  }

  // Infinity for rows that are not searched.
  #computeBounds(vector: Float32Array, wanted: Float64Array | undefined): Float64Array {
    const query = this.#writeQuery(vector);
    const bounds = new Float64Array(this.#rows);
    for (const [number, block] of this.#blocks.entries()) {
      const first = number * this.#rowsPerBlock;
      const rows = Math.min(this.#rowsPerBlock, this.#rows - first);
      if (rows <= 0) break;
      this.#form.multiply(this.#arena, block, this.#stride, rows, (index, product) => {
        const row = first + index;
        bounds[row] = this.#bound(query, row, product);
      });
    }
    if (wanted !== undefined) keepOnly(bounds, this.#ids, wanted);
    for (let row = 0; row < this.#rows; row += 1) {
      if (this.#gone[row] === 1) bounds[row] = Number.POSITIVE_INFINITY;
    }
    return bounds;
  }

  #bound(query: StoredQuery, row: number, product: number): number {
    const scalar = product * query.scale * this.#scales[row]!;
    const length = this.#lengths[row]!;
    const error = this.#errors[row]!;
    const rounding = this.#slack * length * query.length;
    if (this.metric === "dot") {
      const slack = query.length * error + length * query.error + rounding;
      return (
        query.offset - scalar - slack - SLACK * (query.length * length + Math.abs(query.offset))
      );
    }
    const square = length * length + query.length * query.length - 2 * (scalar + rounding);
    const distance = Math.sqrt(Math.max(0, square));
    const bound = distance - error - query.error - SLACK * (length + query.length);
    if (this.metric === "euclidean") return bound;
    return bound <= 0 ? 0 : (bound * bound) / 2;
  }

  #writeQuery(vector: Float32Array): StoredQuery {
    const values = new Float64Array(vector);
    const factor = this.metric === "cosine" ? computeFactor(values) : 1;
    let offset = 0;
    for (let at = 0; at < values.length; at += 1) {
      if (this.metric === "dot") offset -= values[at]! * this.#center[at]!;
      else values[at] = values[at]! * factor - this.#center[at]!;
    }
    return { ...this.#form.writeQuery(this.#arena, this.#stride, values), offset };
  }

  #locate(row: number): number {
    const block = this.#blocks[Math.floor(row / this.#rowsPerBlock)]!;
    return (
      this.#arena.locateBlock(block) + (row % this.#rowsPerBlock) * this.#stride * this.#form.bytes
    );
  }

  #reserve(rows: number): void {
    if (rows <= this.#ids.length) return;
    const capacity = 2 * this.#ids.length;
    this.#ids = extend(this.#ids, new Float64Array(capacity));
    this.#scales = extend(this.#scales, new Float64Array(capacity));
    this.#lengths = extend(this.#lengths, new Float64Array(capacity));
    this.#errors = extend(this.#errors, new Float32Array(capacity));
    this.#gone = extend(this.#gone, new Uint8Array(capacity));
  }
}

interface StoredQuery extends StoredNumbers {
  /** Added to distances of the metric `dot`, for the center. */
  readonly offset: number;
}

/** Reads the numbers of a stored vector, normalized if the metric is `cosine`, and subtracts `center`. */
export function prepare(
  data: Uint8Array,
  metric: VectorMetric,
  into: Float64Array,
  center: Float64Array,
): void {
  const values = decodeVector(data);
  const factor = metric === "cosine" ? computeFactor(values) : 1;
  for (let at = 0; at < into.length; at += 1) into[at] = values[at]! * factor - center[at]!;
}

/** The factor that makes a vector as long as 1; 1 for a vector of zeros. */
function computeFactor(values: Float32Array | Float64Array): number {
  // Each addition waits for the one before it: in four sums they run side by side.
  let [a, b, c, d] = [0, 0, 0, 0];
  const end = values.length - (values.length % 4);
  let at = 0;
  for (; at < end; at += 4) {
    a += values[at]! * values[at]!;
    b += values[at + 1]! * values[at + 1]!;
    c += values[at + 2]! * values[at + 2]!;
    d += values[at + 3]! * values[at + 3]!;
  }
  for (; at < values.length; at += 1) a += values[at]! * values[at]!;
  const length = Math.sqrt(a + b + c + d);
  return length > 0 ? 1 / length : 1;
}

/** The distance of two vectors in double precision. */
export function measureDistance(a: Float32Array, b: Float32Array, metric: VectorMetric): number {
  let product = 0;
  let squareA = 0;
  let squareB = 0;
  let difference = 0;
  for (let at = 0; at < a.length; at += 1) {
    const one = a[at]!;
    const other = b[at]!;
    product += one * other;
    squareA += one * one;
    squareB += other * other;
    difference += (one - other) * (one - other);
  }
  if (metric === "dot") return -product;
  if (metric === "euclidean") return Math.sqrt(difference);
  const lengths = Math.sqrt(squareA) * Math.sqrt(squareB);
  return lengths === 0 ? 1 : 1 - product / lengths;
}

function extend<Numbers extends Float64Array | Float32Array | Uint8Array>(
  from: Numbers,
  to: Numbers,
): Numbers {
  to.set(from);
  return to;
}

function findRow(ids: Float64Array, rows: number, id: number): number | undefined {
  let low = 0;
  let high = rows;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ids[middle]! < id) low = middle + 1;
    else high = middle;
  }
  return low < rows && ids[low] === id ? low : undefined;
}

// Both lists ascend.
function keepOnly(bounds: Float64Array, ids: Float64Array, wanted: Float64Array): void {
  let next = 0;
  for (let row = 0; row < bounds.length; row += 1) {
    const id = ids[row]!;
    while (next < wanted.length && wanted[next]! < id) next += 1;
    if (wanted[next] !== id) bounds[row] = Number.POSITIVE_INFINITY;
  }
}

/** Indexes of the smallest finite values, ascending by value and index: more of them begin with the same ones. */
function selectSmallest(values: Float64Array, count: number): number[] {
  const heap: number[] = [];
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index]!;
    if (value === Number.POSITIVE_INFINITY) continue;
    if (heap.length < count) {
      heap.push(index);
      if (heap.length === count) for (let at = count >> 1; at >= 0; at -= 1) sink(heap, values, at);
    } else if (value < values[heap[0]!]!) {
      heap[0] = index;
      sink(heap, values, 0);
    }
  }
  return heap.sort((a, b) => values[a]! - values[b]! || a - b);
}

// The largest value is on top, of equal ones the last.
function sink(heap: number[], values: Float64Array, from: number): void {
  let at = from;
  for (;;) {
    let largest = at;
    for (const child of [2 * at + 1, 2 * at + 2]) {
      if (child < heap.length && isAfter(values, heap[child]!, heap[largest]!)) largest = child;
    }
    if (largest === at) return;
    [heap[at], heap[largest]] = [heap[largest]!, heap[at]!];
    at = largest;
  }
}

function isAfter(values: Float64Array, one: number, other: number): boolean {
  const [a, b] = [values[one]!, values[other]!];
  return a > b || (a === b && one > other);
}
