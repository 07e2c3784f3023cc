// Finds row groups of Parquet that no row of a question can be in, by the statistics of their integer columns.
import type { RowGroup } from "hyparquet";
import type { CompareOperator, Expression, PathStep } from "../language/syntax.ts";
import { matchesName } from "./row-reader.ts";

/** A comparison of a column with an integer that every row of the result meets. */
interface Bound {
  readonly step: Extract<PathStep, { kind: "name" }>;
  readonly operator: CompareOperator;
  readonly value: number | bigint;
}

const MIRRORED: Readonly<Record<CompareOperator, CompareOperator>> = {
  "=": "=",
  "<>": "<>",
  "<": ">",
  "<=": ">=",
  ">": "<",
  ">=": "<=",
};

/** Returns the test of row groups for a WHERE clause; `strip` removes the name of the row from paths. */
export function createGroupFilter(
  where: Expression | undefined,
  strip: (path: readonly PathStep[]) => readonly PathStep[],
): (group: RowGroup) => boolean {
  const bounds = where === undefined ? [] : listBounds(where, strip);
  return (group) => bounds.some((bound) => excludes(group, bound));
}

function listBounds(
  where: Expression,
  strip: (path: readonly PathStep[]) => readonly PathStep[],
): Bound[] {
  if (where.kind === "and") return where.operands.flatMap((one) => listBounds(one, strip));
  if (where.kind === "between") {
    const { value, low, high } = where;
    return [
      ...listBounds({ kind: "compare", operator: ">=", left: value, right: low }, strip),
      ...listBounds({ kind: "compare", operator: "<=", left: value, right: high }, strip),
    ];
  }
  if (where.kind !== "compare") return [];
  const { left, right, operator } = where;
  const isMirrored = right.kind === "column";
  const [column, literal] = isMirrored ? [right, left] : [left, right];
  if (column.kind !== "column" || literal.kind !== "literal") return [];
  const { value } = literal;
  const [step, ...rest] = strip(column.path);
  const isInteger =
    typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
  if (!isInteger || step?.kind !== "name" || rest.length > 0) return [];
  return [{ step, operator: isMirrored ? MIRRORED[operator] : operator, value }];
}

function excludes(group: RowGroup, { step, operator, value }: Bound): boolean {
  const metas = group.columns.flatMap(({ meta_data: meta }) =>
    meta?.path_in_schema.length === 1 && matchesName(step, meta.path_in_schema[0]!) ? [meta] : [],
  );
  const [meta] = metas;
  if (metas.length !== 1 || (meta!.type !== "INT32" && meta!.type !== "INT64")) return false;
  const min = meta!.statistics?.min_value;
  const max = meta!.statistics?.max_value;
  if (!isIntegral(min) || !isIntegral(max)) return false;
  switch (operator) {
    case "=":
      return value < min || value > max;
    case "<":
      return min >= value;
    case "<=":
      return min > value;
    case ">":
      return max <= value;
    case ">=":
      return max < value;
    case "<>":
      return false;
    default:
      return operator satisfies never;
  }
}

// Statistics of dates and decimals have other types.
function isIntegral(value: unknown): value is number | bigint {
  return typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
}
