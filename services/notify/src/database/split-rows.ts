// Inserts of many rows in statements of few sizes.
//
// Every number of rows is a statement of its own, which SQLite keeps prepared together with the values that were bound last.
// A few sizes instead of hundreds take a hundredth of the memory.

import type { DatabaseKind } from "@platform/kernel/db";

const SIZES = [64, 16, 4, 1] as const;

/** Splits rows into groups of 64, 16, 4 or 1. */
export function* splitRows<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  let at = 0;
  for (const size of SIZES) {
    for (; rows.length - at >= size; at += size) yield rows.slice(at, at + size);
  }
}

/** Splits rows with contents: on SQLite one by one, so that only one content stays bound. */
export function splitContents<Row>(
  kind: DatabaseKind,
  rows: readonly Row[],
): Iterable<readonly Row[]> {
  return kind === "sqlite" ? rows.map((row) => [row]) : splitRows(rows);
}
