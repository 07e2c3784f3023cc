// Types of rows, from the declared columns of SQLite.
import type { DatabaseSync, StatementColumnMetadata } from "node:sqlite";

/** Affinities of declared types, in the order of https://www.sqlite.org/datatype3.html#determination_of_column_affinity. */
const AFFINITIES: readonly (readonly [pattern: RegExp, type: string])[] = [
  [/bool/i, "number | boolean"],
  [/int/i, "number"],
  [/char|clob|text/i, "string"],
  [/blob/i, "Uint8Array"],
  [/real|floa|doub/i, "number"],
];
/** Rows of the right side of these, and of subqueries, may be missing. */
const MAY_LACK_ROWS = /\b(?:left|right|full|union|except|intersect)\b|\(\s*select\b/i;
const COUNT = /\bcount\s*\([^()]*\)\s+(?:as\s+)?["`]?(\w+)/gi;

/** The columns of a database that cannot be null. */
export class RowTypes {
  readonly #database: DatabaseSync;
  readonly #tables = new Map<string, ReadonlySet<string>>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** True for `not null` and for primary keys. */
  isRequired(table: string, column: string): boolean {
    let required = this.#tables.get(table);
    if (required === undefined) {
      const rows = this.#database
        .prepare('select name from pragma_table_info(?) where "notnull" = 1 or pk > 0')
        .all(table);
      required = new Set(rows.map(({ name }) => String(name)));
      this.#tables.set(table, required);
    }
    return required.has(column);
  }
}

/**
 * The type of the rows of a statement, as TypeScript; undefined if it returns none, or if a part of it is not known.
 * Expressions other than `count()` are unknown: SQLite declares no type for them.
 */
export function describeRow(
  columns: readonly StatementColumnMetadata[],
  text: string,
  types: RowTypes,
): string | undefined {
  if (columns.length === 0 || columns.some(({ name }) => name === "?")) return undefined;
  const counts = new Set(Array.from(text.matchAll(COUNT), ([, name]) => name));
  const isComplete = !MAY_LACK_ROWS.test(text);
  const members = new Map<string, string>();
  for (const { name, table, column, type } of columns) {
    const isCount = column === null && (counts.has(name) || /^count\s*\([^()]*\)$/i.test(name));
    const declared = isCount ? "number" : findType(type);
    const isRequired = isCount || (isComplete && isRequiredColumn(types, table, column));
    members.set(name, declared === "unknown" || isRequired ? declared : `${declared} | null`);
  }
  const list = Array.from(members, ([name, type]) => `${JSON.stringify(name)}: ${type}`);
  return `{ ${list.join("; ")} }`;
}

function isRequiredColumn(types: RowTypes, table: string | null, column: string | null): boolean {
  return table !== null && column !== null && types.isRequired(table, column);
}

function findType(declared: string | null): string {
  if (declared === null) return "unknown";
  return AFFINITIES.find(([pattern]) => pattern.test(declared))?.[1] ?? "unknown";
}
