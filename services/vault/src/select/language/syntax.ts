// The tree of a question.
import type { Place } from "./fault.ts";
import type { DatePart } from "./timestamp.ts";
import type { Scalar } from "./value.ts";

/** A step from a value to a part of it. Names without quotes match in any case. */
export type PathStep =
  | { readonly kind: "name"; readonly name: string; readonly isQuoted: boolean }
  /** From 0. */
  | { readonly kind: "index"; readonly index: number };

/** A step of FROM, which may also select all members of an object or all elements of a list. */
export type SourceStep = PathStep | { readonly kind: "members" } | { readonly kind: "elements" };

/** Types of CAST; `scale` is the number of decimals, `length` that of characters. */
export type CastType =
  | { readonly name: "bool" | "int" | "float" | "timestamp" }
  | { readonly name: "decimal"; readonly scale: number | undefined }
  | { readonly name: "string"; readonly length: number | undefined };

/** Functions that have plain arguments, evaluated before the call. */
export type FunctionName =
  | "CHAR_LENGTH"
  | "LOWER"
  | "UPPER"
  | "SUBSTRING"
  | "TO_STRING"
  | "TO_TIMESTAMP"
  | "UTCNOW"
  | "NULLIF";

export type CompareOperator = "=" | "<>" | "<" | "<=" | ">" | ">=";
export type ArithmeticOperator = "+" | "-" | "*" | "/" | "%";
export type AggregateName = "COUNT" | "SUM" | "AVG" | "MIN" | "MAX";

/** An expression. Chains of one operator are one node, so that the depth of the tree is that of the parentheses. */
export type Expression =
  | { readonly kind: "literal"; readonly value: Scalar | undefined }
  /** The path from the row, which may begin with a name of the row. */
  | { readonly kind: "column"; readonly path: readonly PathStep[]; readonly place: Place }
  | { readonly kind: "negate" | "not"; readonly operand: Expression }
  | { readonly kind: "and" | "or"; readonly operands: readonly Expression[] }
  | { readonly kind: "concat"; readonly operands: readonly Expression[] }
  | {
      readonly kind: "compare";
      readonly operator: CompareOperator;
      readonly left: Expression;
      readonly right: Expression;
    }
  | {
      readonly kind: "arithmetic";
      readonly first: Expression;
      readonly rest: readonly (readonly [ArithmeticOperator, Expression])[];
    }
  | {
      readonly kind: "like";
      readonly value: Expression;
      readonly pattern: Expression;
      readonly escape: Expression | undefined;
    }
  | {
      readonly kind: "between";
      readonly value: Expression;
      readonly low: Expression;
      readonly high: Expression;
    }
  | { readonly kind: "in"; readonly value: Expression; readonly items: readonly Expression[] }
  | {
      readonly kind: "is";
      readonly value: Expression;
      readonly what: "null" | "missing" | "true" | "false";
    }
  | {
      readonly kind: "case";
      /** Compared with the conditions; without one, these are boolean. */
      readonly subject: Expression | undefined;
      readonly branches: readonly (readonly [condition: Expression, result: Expression])[];
      readonly otherwise: Expression | undefined;
    }
  | { readonly kind: "cast"; readonly operand: Expression; readonly type: CastType }
  | { readonly kind: "coalesce"; readonly operands: readonly Expression[] }
  | { readonly kind: "call"; readonly name: FunctionName; readonly operands: readonly Expression[] }
  | {
      readonly kind: "trim";
      readonly side: "LEADING" | "TRAILING" | "BOTH";
      readonly characters: Expression | undefined;
      readonly operand: Expression;
    }
  | {
      readonly kind: "date-add" | "date-difference";
      readonly part: DatePart;
      readonly left: Expression;
      readonly right: Expression;
    }
  | {
      readonly kind: "extract";
      readonly part: DatePart | "timezone_hour" | "timezone_minute";
      readonly operand: Expression;
    }
  /** Without an operand: COUNT(*). */
  | {
      readonly kind: "aggregate";
      readonly name: AggregateName;
      readonly operand: Expression | undefined;
    };

/** A reference to a column, or to the row by its name. */
export type ColumnReference = Extract<Expression, { kind: "column" }>;

/** An item of the SELECT list; `row` stands for all columns, of the row of this name. */
export type SelectItem =
  | { readonly kind: "row"; readonly name: ColumnReference | undefined }
  | { readonly kind: "expression"; readonly expression: Expression; readonly name: string };

export interface OrderItem {
  readonly expression: Expression;
  readonly isDescending: boolean;
  /** Default: nulls come last in ascending order. */
  readonly nullsFirst: boolean;
}

/** A question. */
export interface Query {
  readonly isDistinct: boolean;
  readonly items: readonly SelectItem[];
  /** The steps of FROM below the records of the object. */
  readonly source: readonly SourceStep[];
  /** Names of the row: the alias, or the names that it has without one. */
  readonly rowNames: readonly string[];
  readonly where: Expression | undefined;
  readonly groupBy: readonly Expression[];
  readonly having: Expression | undefined;
  readonly orderBy: readonly OrderItem[];
  readonly limit: number | undefined;
  readonly offset: number;
  /** True if groups are returned and not records. */
  readonly isGrouped: boolean;
}
