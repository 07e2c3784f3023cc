// The contract of readers of records.
import type { Getter } from "../language/evaluator.ts";
import { SelectError } from "../language/fault.ts";
import type { ColumnReference, PathStep } from "../language/syntax.ts";
import type { Value } from "../language/value.ts";

/** Limit of a record, of S3. */
export const RECORD_BYTES_MAX = 1024 * 1024;

/** The fields of a row, for `*`. */
export interface RowFields {
  readonly names: readonly string[];
  readonly cells: readonly Value[];
}

/**
 * Reads one row after another, which is then the current row. Getters read the current row; a column that a row does not
 * have is MISSING. Cells are values for the result, which keep their text.
 */
export interface RowReader {
  /** True if all columns are texts. */
  readonly isText: boolean;
  /** True when columns can be bound: the header has been read. */
  readonly isReady: boolean;
  /** Moves to the next row; false if more bytes are needed, or if there are no more rows. */
  next(): boolean;
  /** Returns the value of a column. Throws a SelectError if the column cannot exist. */
  bindValue(path: readonly PathStep[], column: ColumnReference): Getter;
  /**
   * Returns a column without making a text of it: the integer that it is written as, if it has at most 15 digits, otherwise
   * `undefined`, also for other values. Not all readers can.
   */
  bindInteger?(path: readonly PathStep[], column: ColumnReference): () => number | undefined;
  /** Returns whether a column is this text; `undefined` if its value must be read to know that. Not all readers can. */
  bindEquals?(
    path: readonly PathStep[],
    column: ColumnReference,
    text: string,
  ): () => boolean | undefined;
  /** Returns the cell of a column. */
  bindCell(path: readonly PathStep[], column: ColumnReference): Getter;
  /** Returns all fields of the row. */
  bindFields(): () => RowFields;
  /** The current row as a JSON object on one line; `undefined` if it does not exist as text. */
  readObjectText(): string | undefined;
}

/** A reader of a stream of bytes. */
export interface StreamReader extends RowReader {
  /** Adds bytes, which the reader may keep until it has returned the rows in them. */
  feed(bytes: Buffer): void;
  /** No more bytes follow. */
  end(): void;
  /** Limits the rows to those that begin before this offset of the bytes. */
  stopAfter(offset: number): void;
  /** True if the rows before that offset have been returned. */
  readonly isStopped: boolean;
}

/** Throws OverMaxRecordSize for a record of this size. */
export function requireRecordSize(bytes: number): void {
  if (bytes > RECORD_BYTES_MAX) throw new SelectError("OverMaxRecordSize");
}

/** True if a name of a record is meant by a step: without quotes, in any case. */
export function matchesName(step: Extract<PathStep, { kind: "name" }>, name: string): boolean {
  if (step.name === name) return true;
  return !step.isQuoted && step.name.toLowerCase() === name.toLowerCase();
}

/** The index of `_1`, `_2`, …, from 0; `undefined` for other names. Throws InvalidColumnIndex for `_0`. */
export function readPosition(name: string): number | undefined {
  if (!/^_\d{1,9}$/.test(name)) return undefined;
  const position = Number(name.slice(1));
  if (position === 0) throw new SelectError("InvalidColumnIndex", "Columns are numbered from _1.");
  return position - 1;
}
