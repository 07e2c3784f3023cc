// Changes of rows: each is one statement, whose condition is the key and all values that its author has seen.
import { PlatformError } from "@platform/kernel/errors";
import type { SqlValue } from "@platform/kernel/sql-child";
import type { DataTable } from "./table.ts";
import { type InputCell, fromCell } from "./cells.ts";
import { compareColumn, markParameter, nameSame, quoteName, type SqlDialect } from "./dialect.ts";
import { findColumn, matchKey, readInfinity } from "./row-query.ts";

type Values = Readonly<Record<string, InputCell>>;

/** A statement with its values. */
export interface ChangeStatement {
  readonly sql: string;
  readonly parameters: SqlValue[];
}

/** Throws 409 unless rows of a table can be changed. */
export function requireEditable({ name, kind, key, row_id: rowId }: DataTable): void {
  if (kind !== "table") {
    throw new PlatformError("conflict", `${name} is no table: its rows cannot be changed here.`);
  }
  if (key === null || rowId === "ctid") {
    throw new PlatformError("conflict", `${name} has no key: its rows can only be read.`);
  }
}

/** Inserts a row; columns without a value get their default. The answer is its key. */
export function buildInsert(
  table: DataTable,
  dialect: SqlDialect,
  values: Values,
): ChangeStatement {
  const parameters: SqlValue[] = [];
  const names = Object.keys(values).map((name) => quoteName(findWritable(table, name).name));
  const marks = Object.values(values).map((value) => bind(value, dialect, parameters));
  const content =
    names.length === 0 ? "default values" : `(${names.join(", ")}) values (${marks.join(", ")})`;
  const sql = `insert into ${quoteName(table.name)} ${content} returning ${listKey(table)}`;
  return { sql, parameters };
}

/** Changes the row with a key, if it still has the values `before`. The answer is its new key. */
export function buildUpdate(
  table: DataTable,
  dialect: SqlDialect,
  { key, before, set }: { key: Values; before: Values; set: Values },
): ChangeStatement {
  const parameters: SqlValue[] = [];
  if (Object.keys(set).length === 0) {
    throw new PlatformError("validation_failed", "There is no value to change.");
  }
  const changes = Object.entries(set).map(
    ([name, value]) =>
      `${quoteName(findWritable(table, name).name)} = ${bind(value, dialect, parameters)}`,
  );
  const where = matchRow(table, dialect, { key, before }, parameters);
  const sql = `update ${quoteName(table.name)} set ${changes.join(", ")} where ${where} returning ${listKey(table)}`;
  return { sql, parameters };
}

/** Deletes the row with a key, if it still has the values `before`. */
export function buildDelete(
  table: DataTable,
  dialect: SqlDialect,
  row: { key: Values; before: Values },
): ChangeStatement {
  const parameters: SqlValue[] = [];
  const where = matchRow(table, dialect, row, parameters);
  return { sql: `delete from ${quoteName(table.name)} where ${where}`, parameters };
}

function matchRow(
  table: DataTable,
  dialect: SqlDialect,
  { key, before }: { key: Values; before: Values },
  parameters: SqlValue[],
): string {
  const conditions = [matchKey(table, dialect, key, parameters)];
  for (const [name, value] of Object.entries(before)) {
    const column = findColumn(table, name);
    const mark = bind(readInfinity(dialect, column, value), dialect, parameters);
    conditions.push(`${compareColumn(dialect, column)} ${nameSame(dialect)} ${mark}`);
  }
  return conditions.join(" and ");
}

// A hidden column can be written: nothing of it is shown.
function findWritable(table: DataTable, name: string): DataTable["columns"][number] {
  const column = table.columns.find((one) => one.name === name);
  if (column === undefined) {
    throw new PlatformError("validation_failed", `${table.name} has no column ${name}.`);
  }
  if (!column.generated) return column;
  throw new PlatformError("validation_failed", `${name} is computed by the database.`);
}

function listKey({ key, row_id: rowId }: DataTable): string {
  return key!.map((name) => (name === rowId ? name : quoteName(name))).join(", ");
}

function bind(cell: InputCell, dialect: SqlDialect, parameters: SqlValue[]): string {
  parameters.push(fromCell(cell));
  return markParameter(dialect, parameters.length);
}
