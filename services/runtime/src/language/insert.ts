// Inserts that SQLite accepts when they are prepared, and that fail or store another type when they run.
import type { DatabaseSync } from "node:sqlite";

/** A problem of an insert. */
interface InsertProblem {
  /** Text of the statement at which it is shown. */
  readonly at: string;
  readonly message: string;
}

/** Result of {@link checkInsert}. */
export interface CheckedInsert {
  readonly problems: readonly InsertProblem[];
  /** Expressions whose values are stored in integer columns. */
  readonly integers: readonly { readonly value: number; readonly column: string }[];
}

interface Column {
  readonly name: string;
  readonly isInteger: boolean;
  /** True if it may not be null. */
  readonly isRequired: boolean;
  /** True if it has a value when the insert has none. */
  readonly isFilled: boolean;
}

const NAME = String.raw`["\`[]?(\w+)["\`\]]?`;
const INSERT = new RegExp(
  String.raw`^\s*(?:insert(?:\s+or\s+(?:abort|fail|replace|rollback))?|replace)\s+into\s+${NAME}(?:\s+as\s+\w+)?\s*(?:\(([^()]*)\))?\s*(values\b|select\b|default\s+values\b)`,
  "i",
);
const NUMBER = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i;

/** True for a text that an integer column stores as a number. */
export function isNumeric(text: string): boolean {
  return NUMBER.test(text);
}

/** Checks a statement with `?` for each expression; one that is no insert has no problems. */
export function checkInsert(text: string, database: DatabaseSync): CheckedInsert {
  const found = INSERT.exec(text);
  if (found === null) return { problems: [], integers: [] };
  const [head, table = "", list, source = ""] = found;
  const columns = listColumns(database, table);
  const problems: InsertProblem[] = [];
  const integers: { value: number; column: string }[] = [];
  const names = list?.split(",").map((name) => name.trim().replace(/^["`[](.*)["`\]]$/, "$1"));
  const given = names ?? (/^default/i.test(source) ? [] : columns.map(({ name }) => name));
  const has = (name: string): boolean =>
    given.some((one) => one.toLowerCase() === name.toLowerCase());
  for (const { name, isRequired, isFilled } of columns) {
    if (!isRequired || isFilled || has(name)) continue;
    const message = `the insert leaves out ${table}.${name}, which is not null and has no default`;
    problems.push({ at: table, message });
  }
  if (!/^values/i.test(source)) return { problems, integers };
  let value = 0;
  for (const row of readRows(text.slice(head.length))) {
    for (const [index, written] of row.entries()) {
      const column = columns.find(({ name }) => name.toLowerCase() === given[index]?.toLowerCase());
      const place = written === "?" ? value : undefined;
      value += countValues(written);
      if (column === undefined) continue;
      if (place !== undefined && column.isInteger)
        integers.push({ value: place, column: column.name });
      const message = checkValue(written, column);
      if (message !== undefined) problems.push({ at: written, message });
    }
  }
  return { problems, integers };
}

function checkValue(written: string, column: Column): string | undefined {
  if (/^null$/i.test(written) && column.isRequired && !column.isFilled) {
    return `${column.name} is not null`;
  }
  const [, text] = /^'((?:[^']|'')*)'$/.exec(written) ?? [];
  if (text === undefined || !column.isInteger || isNumeric(text)) return undefined;
  return describeString(column.name);
}

/** The message about a string for an integer column. */
export function describeString(column: string): string {
  return `the column ${column} has the type integer, and this is a string, which SQLite stores as text`;
}

function listColumns(database: DatabaseSync, table: string): Column[] {
  const rows = database
    .prepare(
      'select name, type, "notnull" as required, dflt_value as filled, pk from pragma_table_xinfo(?) where hidden = 0',
    )
    .all(table);
  const keys = rows.filter(({ pk }) => Number(pk) > 0).length;
  return rows.map(({ name, type, required, filled, pk }) => {
    const isInteger = /int/i.test(String(type));
    // The row's number, which SQLite chooses.
    const isRowId = Number(pk) > 0 && keys === 1 && /^integer$/i.test(String(type));
    return {
      name: String(name),
      isInteger,
      isRequired: Boolean(required),
      isFilled: filled !== null || isRowId,
    };
  });
}

/** The values of `(…), (…)`, as they are written. */
function readRows(text: string): string[][] {
  const rows: string[][] = [];
  const token = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|[\s\S]/g;
  let depth = 0;
  for (const [part] of text.matchAll(token)) {
    if (/^(?:--|\/\*)/.test(part)) continue;
    if (part === ")") depth--;
    if (depth === 0 && part !== ")" && part !== "(" && !/[\s,]/.test(part)) break;
    const row = rows.at(-1);
    if (depth === 0 && part === "(") rows.push([""]);
    else if (depth === 1 && part === ",") row?.push("");
    else if (depth > 0 && row !== undefined) row[row.length - 1] += part;
    if (part === "(") depth++;
  }
  return rows.map((row) => row.map((written) => written.trim()));
}

function countValues(written: string): number {
  return written.replaceAll(/'(?:[^']|'')*'/g, "").split("?").length - 1;
}
