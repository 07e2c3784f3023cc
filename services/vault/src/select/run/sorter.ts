// ORDER BY: holds the records of the result, with LIMIT only the first ones.
import { orderValues, type Value } from "../language/value.ts";
import type { OrderItem } from "../language/syntax.ts";
import type { MemoryBudget } from "./memory-budget.ts";
import { measureText, type ResultRow } from "./projection.ts";

/** Records beyond the limit that are held before they are dropped together. */
const SURPLUS = 1_000;
/** Their text, in UTF-16 units. */
const SURPLUS_LENGTH = 4 * 1024 * 1024;

interface Entry {
  readonly row: ResultRow;
  readonly keys: readonly Value[];
  readonly length: number;
}

export class Sorter {
  readonly #order: readonly OrderItem[];
  readonly #countMax: number;
  readonly #budget: MemoryBudget;
  #entries: Entry[] = [];
  /** Text of the records since they were sorted. */
  #unsortedLength = 0;

  /** Keeps the first `countMax` records. */
  constructor(order: readonly OrderItem[], countMax: number, budget: MemoryBudget) {
    this.#order = order;
    this.#countMax = countMax;
    this.#budget = budget;
  }

  add(row: ResultRow, keys: readonly Value[]): void {
    let length = 0;
    for (const cell of row.cells) length += 8 + measureText(cell);
    for (const key of keys) length += 8 + measureText(key);
    this.#budget.take(length);
    this.#entries.push({ row, keys, length });
    this.#unsortedLength += length;
    const isSurplus =
      this.#entries.length > 2 * this.#countMax + SURPLUS ||
      (this.#unsortedLength > SURPLUS_LENGTH && this.#entries.length > this.#countMax);
    if (isSurplus) this.#prune();
  }

  /** The records in order. */
  *read(): Generator<ResultRow, void, undefined> {
    this.#prune();
    for (const { row } of this.#entries) yield row;
  }

  // Sorting is stable: equal records keep the order of the object.
  #prune(): void {
    this.#unsortedLength = 0;
    this.#entries.sort((left, right) => this.#compare(left.keys, right.keys));
    for (const { length } of this.#entries.splice(this.#countMax)) this.#budget.give(length);
  }

  #compare(left: readonly Value[], right: readonly Value[]): number {
    for (const [index, { isDescending, nullsFirst }] of this.#order.entries()) {
      const [a, b] = [left[index], right[index]];
      const [aIsNull, bIsNull] = [isNull(a), isNull(b)];
      if (aIsNull || bIsNull) {
        if (aIsNull && bIsNull) continue;
        return aIsNull === nullsFirst ? -1 : 1;
      }
      const order = orderValues(a, b);
      if (order !== 0) return isDescending ? -order : order;
    }
    return 0;
  }
}

function isNull(value: Value): boolean {
  return value === null || value === undefined;
}
