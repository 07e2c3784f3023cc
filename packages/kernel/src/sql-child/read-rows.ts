// Rows of a statement within the limits of an answer.
import type { StatementSync } from "node:sqlite";
import type { SqlAnswer, SqlCut, SqlLimits, SqlQuestion, SqlValue } from "./question.ts";

/** Rows that are sent at once, so that the service reads a large answer in pieces. */
const PIECE_ROWS = 500;
const PIECE_BYTES = 256 * 1024;
/** A row and a number, as they are counted. */
const ROW_BYTES = 16;
const NUMBER_BYTES = 8;

type Row = SqlAnswer["rows"][number];

/** Runs a statement and passes its rows to `send`, in pieces. Returns true if there are further rows. */
export function readRows(
  statement: StatementSync,
  parameters: SqlQuestion["parameters"],
  limits: SqlLimits,
  send: (rows: Row[]) => void,
): boolean {
  let piece: Row[] = [];
  let pieceBytes = 0;
  let count = 0;
  let bytes = 0;
  const flush = (): void => {
    if (piece.length > 0) send(piece);
    piece = [];
    pieceBytes = 0;
  };
  for (const values of iterate(statement, parameters)) {
    const { row, rowBytes } = convertRow(values, limits.shownBytes);
    if (count === limits.rows || bytes + rowBytes > limits.bytes) {
      flush();
      return true;
    }
    count += 1;
    bytes += rowBytes;
    pieceBytes += rowBytes;
    piece.push(row);
    if (piece.length === PIECE_ROWS || pieceBytes >= PIECE_BYTES) flush();
  }
  flush();
  return false;
}

function iterate(
  statement: StatementSync,
  parameters: SqlQuestion["parameters"] = [],
): Iterable<SqlValue[]> {
  const rows = Array.isArray(parameters)
    ? statement.iterate(...(parameters as SqlValue[]))
    : statement.iterate(parameters as Record<string, SqlValue>);
  return rows as unknown as Iterable<SqlValue[]>;
}

/** A row as it is sent, with the size that is counted for it. */
export function convertRow(
  values: readonly SqlValue[],
  shownBytes: number | undefined,
): { row: Row; rowBytes: number } {
  let rowBytes = ROW_BYTES;
  const row = values.map((value) => {
    const bytes = measure(value);
    const shown =
      shownBytes !== undefined && bytes > shownBytes ? cut(value, bytes, shownBytes) : value;
    rowBytes += Math.min(bytes, shownBytes ?? bytes);
    return typeof shown === "bigint" && Number.isSafeInteger(Number(shown)) ? Number(shown) : shown;
  });
  return { row, rowBytes };
}

function measure(value: SqlValue): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  return value instanceof Uint8Array ? value.length : NUMBER_BYTES;
}

function cut(value: SqlValue, bytes: number, shownBytes: number): SqlValue | SqlCut {
  if (typeof value === "string") return { head: cutText(value, shownBytes), bytes };
  return value instanceof Uint8Array ? { head: value.slice(0, shownBytes), bytes } : value;
}

// Without the beginning of a character whose end is cut off.
function cutText(text: string, bytes: number): string {
  const head = Buffer.from(text.slice(0, bytes)).subarray(0, bytes);
  return new TextDecoder().decode(head, { stream: true });
}
