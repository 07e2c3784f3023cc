// Tables, rows and values as the runtime's API describes them.
import type { Answer } from "../contract/answer.ts";
import { formatBytes } from "../format/format.ts";
import { t } from "../words/words.ts";

type TablesAnswer = Answer<"runtime", "GET /projects/{project}/databases/{database}/tables">;
/** A table with its columns, keys and references. */
export type DataTable = TablesAnswer["items"][number];
/** A page of rows. */
export type RowPage = Answer<
  "runtime",
  "GET /projects/{project}/databases/{database}/tables/{table}/rows"
>;
/** A row: its key, and its values in the order of the columns. */
export type DataRow = RowPage["items"][number];
/** A value. */
export type Cell = DataRow["values"][number];
/** The answer to a statement. */
export type QueryAnswer = Answer<"runtime", "POST /projects/{project}/databases/{database}/query">;

/** Dots in place of a hidden value. */
export const DOTS = "••••••";

/** Text of a value on one line, and the class of its kind. */
export function describeCell(cell: Cell): { text: string; kind: string } {
  if (cell === null) return { text: "null", kind: "cell-null" };
  if (typeof cell === "number") return { text: String(cell), kind: "cell-number" };
  if (typeof cell === "string") {
    return cell === "" ? { text: t("empty"), kind: "cell-null" } : { text: cell, kind: "" };
  }
  if ("int" in cell) return { text: cell.int, kind: "cell-number" };
  if ("hidden" in cell) return { text: DOTS, kind: "cell-null" };
  if ("text" in cell) {
    const size = formatBytes(cell.bytes);
    return { text: `${cell.text.slice(0, 300)}… (${size})`, kind: "" };
  }
  return { text: `${t("bytes")} ${formatBytes(cell.bytes)}`, kind: "cell-null" };
}

/** True if a column of an expression, which has no type, contains numbers only. */
export function hasNumbers(cells: readonly Cell[]): boolean {
  const values = cells.filter((cell) => cell !== null);
  return values.length > 0 && values.every((cell) => describeCell(cell).kind === "cell-number");
}

/** Text of a value as it is edited. Undefined for values that a form cannot show whole. */
export function editableText(cell: Cell): string | undefined {
  if (cell === null) return "";
  if (typeof cell !== "object") return String(cell);
  return "int" in cell ? cell.int : undefined;
}

/** A value that a form or an earlier row has, for a change. */
export type InputCell = null | string | number | { int: string } | { blob: string };

/** The value of a shown cell for a condition. Undefined if it was not shown whole. */
export function toInput(cell: Cell): InputCell | undefined {
  if (cell === null || typeof cell !== "object") return cell;
  if ("int" in cell) return { int: cell.int };
  return undefined;
}

/** True if a type is one of numbers. */
export function isNumberType(type: string): boolean {
  return /int|real|floa|doub|num|dec|serial/i.test(type);
}

/** The value of a text in a form, by the type of its column. */
export function readInput(text: string, type: string): InputCell {
  if (!isNumberType(type) || !/^-?(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?$/i.test(text)) return text;
  const value = Number(text);
  if (/^-?\d+$/.test(text)) return Number.isSafeInteger(value) ? value : { int: text };
  // A decimal that a number does not hold is sent as it was written.
  return String(value) === text ? value : text;
}

/** The key of a row for a change. Undefined if it is not whole. */
export function keyOf(row: DataRow): Record<string, InputCell> | undefined {
  if (row.key === null) return undefined;
  const entries = Object.entries(row.key).map(([name, cell]) => [name, toInput(cell)] as const);
  return entries.some(([, value]) => value === undefined)
    ? undefined
    : (Object.fromEntries(entries) as Record<string, InputCell>);
}

/** Name of a row in lists: its key, or its place. */
export function idOf(row: DataRow, index: number): string {
  return row.key === null ? `#${index}` : JSON.stringify(Object.values(row.key));
}

/** A literal of SQL. */
export function formatLiteral(cell: Cell): string {
  if (cell === null) return "null";
  if (typeof cell === "number") return String(cell);
  if (typeof cell === "string") return `'${cell.replaceAll("'", "''")}'`;
  if ("int" in cell) return cell.int;
  return "null";
}

/** Quotes a name of SQL. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
