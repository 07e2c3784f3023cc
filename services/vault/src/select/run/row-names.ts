// Names of the row: `s.a` and `a` are the same column.
import { SelectError } from "../language/fault.ts";
import type { ColumnReference, Expression, PathStep, Query } from "../language/syntax.ts";
import { matchesName } from "../input/row-reader.ts";

/** The path of a column without the name of the row. */
export function stripRowName({ rowNames }: Query, path: readonly PathStep[]): readonly PathStep[] {
  const [first, ...rest] = path;
  if (first?.kind !== "name") return path;
  return rowNames.some((name) => matchesName(first, name)) ? rest : path;
}

/** Throws InvalidTableAlias if the item `x.*` names another row. */
export function requireRowName(query: Query, column: ColumnReference): void {
  if (stripRowName(query, column.path).length === 0) return;
  throw new SelectError("InvalidTableAlias", undefined, column.place);
}

/** A text that is the same for expressions that mean the same column or calculation. */
export function toCanonical(query: Query, expression: Expression): string {
  return JSON.stringify(expression, (name, value: unknown) => {
    if (name === "place") return undefined;
    if (name === "path") return stripRowName(query, value as readonly PathStep[]).map(toPlainStep);
    return typeof value === "bigint" ? `${value}n` : value;
  });
}

function toPlainStep(step: PathStep): string {
  if (step.kind === "index") return `[${step.index}]`;
  return step.isQuoted ? `"${step.name}"` : step.name.toLowerCase();
}
