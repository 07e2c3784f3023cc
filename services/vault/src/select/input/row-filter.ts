// Finds row groups and rows of Parquet that are not in the result of a question, by comparisons of columns with integers.
import type { RowGroup } from "hyparquet";
import type { CompareOperator, Expression, PathStep } from "../language/syntax.ts";
import { matchesName } from "./row-reader.ts";

/** A comparison of a column with an integer that every row of the result meets. */
export interface Bound {
  readonly step: Extract<PathStep, { kind: "name" }>;
  readonly operator: CompareOperator;
  readonly value: number | bigint;
}

/** The conditions of a question that can be checked without its rows. */
export interface RowFilter {
  /** True if the statistics of a row group show that no row of it passes. */
  canSkip(group: RowGroup): boolean;
  /** The first conditions of the question: a row that fails one of them is not looked at further, so that no fault is lost. */
  readonly first: readonly Bound[];
}

type Strip = (path: readonly PathStep[]) => readonly PathStep[];

const MIRRORED: Readonly<Record<CompareOperator, CompareOperator>> = {
  "=": "=",
  "<>": "<>",
  "<": ">",
  "<=": ">=",
  ">": "<",
  ">=": "<=",
};

/** Returns the conditions of a WHERE clause; `strip` removes the name of the row from paths. */
export function createRowFilter(where: Expression | undefined, strip: Strip): RowFilter {
  const operands = where === undefined ? [] : where.kind === "and" ? where.operands : [where];
  const conditions = operands.map((one) => readBounds(one, strip));
  const bounds = conditions.flatMap((one) => one ?? []);
  const other = conditions.indexOf(undefined);
  return {
    canSkip: (group) => bounds.some((bound) => excludes(group, bound)),
    first: conditions.slice(0, other < 0 ? conditions.length : other).flatMap((one) => one ?? []),
  };
}

// Undefined if the condition is another one.
function readBounds(where: Expression, strip: Strip): Bound[] | undefined {
  if (where.kind === "between") {
    const { value, low, high } = where;
    const least = readBound(">=", value, low, strip);
    const most = readBound("<=", value, high, strip);
    return least === undefined || most === undefined ? undefined : [least, most];
  }
  if (where.kind !== "compare") return undefined;
  const { left, right, operator } = where;
  const bound =
    right.kind === "column"
      ? readBound(MIRRORED[operator], right, left, strip)
      : readBound(operator, left, right, strip);
  return bound === undefined ? undefined : [bound];
}

function readBound(
  operator: CompareOperator,
  column: Expression,
  literal: Expression,
  strip: Strip,
): Bound | undefined {
  if (column.kind !== "column" || literal.kind !== "literal") return undefined;
  const { value } = literal;
  const [step, ...rest] = strip(column.path);
  const isInteger =
    typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
  if (!isInteger || step?.kind !== "name" || rest.length > 0) return undefined;
  return { step, operator, value };
}

const FAILS: Readonly<Record<CompareOperator, (value: number, limit: number) => boolean>> = {
  "=": (value, limit) => value !== limit,
  "<>": (value, limit) => value === limit,
  "<": (value, limit) => value >= limit,
  "<=": (value, limit) => value > limit,
  ">": (value, limit) => value <= limit,
  ">=": (value, limit) => value < limit,
};

/** Numbers of rows. */
export interface Selection {
  readonly rows: Uint32Array;
  readonly count: number;
}

/** The first rows. */
export function selectAll(count: number): Selection {
  const rows = new Uint32Array(count);
  for (let row = 0; row < count; row++) rows[row] = row;
  return { rows, count };
}

/** Leaves the rows out that fail a condition; those with NULL or NaN stay, because the question decides about them. */
export function selectRows(
  { rows, count }: Selection,
  { operator, value }: Bound,
  { values, nulls }: { values: Float64Array; nulls: Uint8Array | undefined },
): Selection {
  const fails = FAILS[operator];
  const limit = Number(value);
  let kept = 0;
  for (let at = 0; at < count; at++) {
    const row = rows[at]!;
    if (fails(values[row]!, limit) && (nulls === undefined || nulls[row] === 0)) continue;
    rows[kept++] = row;
  }
  return { rows, count: kept };
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
