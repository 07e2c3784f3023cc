// The SELECT list, compiled: the names and cells of a result from the current row.
import type { RowReader } from "../input/row-reader.ts";
import { compile, type Getter, type Scope } from "../language/evaluator.ts";
import { SelectError } from "../language/fault.ts";
import type { Query, SelectItem } from "../language/syntax.ts";
import { JsonText, type Value } from "../language/value.ts";
import { requireRowName, stripRowName } from "./row-names.ts";

/** Limit of a record of the result in UTF-16 units. */
const RESULT_LENGTH_MAX = 16 * 1024 * 1024;

/** A record of the result. */
export interface ResultRow {
  readonly names: readonly string[];
  readonly cells: readonly Value[];
}

/** Returns a record of the result. Throws QueryLimitExceeded if it is longer than 16 MiB. */
export type Projection = () => ResultRow;

/** Compiles the SELECT list for the rows of a reader. */
export function compileProjection(query: Query, reader: RowReader, scope: Scope): Projection {
  const hasRow = query.items.some(({ kind }) => kind === "row");
  if (hasRow) return compileWithRow(query, reader, scope);
  return compileFixed(query.items, (item) => {
    const { expression } = item;
    if (expression.kind === "column" && scope.bindKnown(expression) === undefined) {
      return reader.bindCell(stripRowName(query, expression.path), expression);
    }
    return compile(expression, scope);
  });
}

/** Compiles the SELECT list of groups, which have no rows. */
export function compileGroupProjection(query: Query, scope: Scope): Projection {
  if (query.items.some(({ kind }) => kind === "row")) {
    throw new SelectError(
      "UnsupportedSqlStructure",
      "* cannot be used with groups and aggregates.",
    );
  }
  return compileFixed(query.items, ({ expression }) => compile(expression, scope));
}

function compileFixed(
  items: readonly SelectItem[],
  bind: (item: Extract<SelectItem, { kind: "expression" }>) => Getter,
): Projection {
  const expressions = items.filter((item) => item.kind === "expression");
  const names = expressions.map(({ name }) => name);
  const getters = expressions.map(bind);
  return () => {
    const cells: Value[] = [];
    let length = 0;
    for (const getter of getters) {
      const cell = getter();
      length += measureText(cell);
      if (length > RESULT_LENGTH_MAX) throw overLong();
      cells.push(cell);
    }
    return { names, cells };
  };
}

function compileWithRow(query: Query, reader: RowReader, scope: Scope): Projection {
  const parts = query.items.map((item): Projection => {
    if (item.kind === "row") {
      if (item.name !== undefined) requireRowName(query, item.name);
      return reader.bindFields();
    }
    return compileProjection({ ...query, items: [item] }, reader, scope);
  });
  if (parts.length === 1) return parts[0]!;
  return () => {
    const names: string[] = [];
    const cells: Value[] = [];
    let length = 0;
    for (const part of parts) {
      const found = part();
      names.push(...found.names);
      cells.push(...found.cells);
      for (const cell of found.cells) length += measureText(cell);
      if (length > RESULT_LENGTH_MAX) throw overLong();
    }
    return { names, cells };
  };
}

/** UTF-16 units of a cell; 0 for small ones. */
export function measureText(cell: Value): number {
  if (typeof cell === "string") return cell.length;
  return cell instanceof JsonText ? cell.text.length : 0;
}

function overLong(): SelectError {
  return new SelectError("QueryLimitExceeded", "A record of the result is longer than 16 MiB.");
}
