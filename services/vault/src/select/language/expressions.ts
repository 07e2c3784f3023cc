// Walks over expressions.
import type { Expression } from "./syntax.ts";

/** The direct parts of an expression. */
function listParts(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case "literal":
    case "column":
      return [];
    case "negate":
    case "not":
    case "cast":
    case "extract":
      return [expression.operand];
    case "and":
    case "or":
    case "concat":
    case "coalesce":
    case "call":
      return expression.operands;
    case "compare":
    case "date-add":
    case "date-difference":
      return [expression.left, expression.right];
    case "arithmetic":
      return [expression.first, ...expression.rest.map(([, operand]) => operand)];
    case "like":
      return listDefined(expression.value, expression.pattern, expression.escape);
    case "between":
      return [expression.value, expression.low, expression.high];
    case "in":
      return [expression.value, ...expression.items];
    case "is":
      return [expression.value];
    case "case":
      return listDefined(expression.subject, ...expression.branches.flat(), expression.otherwise);
    case "trim":
      return listDefined(expression.characters, expression.operand);
    case "aggregate":
      return listDefined(expression.operand);
    default:
      return expression satisfies never;
  }
}

function listDefined(...parts: readonly (Expression | undefined)[]): Expression[] {
  return parts.filter((part) => part !== undefined);
}

/** True if an aggregate is part of the expression. */
export function hasAggregate(expression: Expression): boolean {
  return expression.kind === "aggregate" || listParts(expression).some(hasAggregate);
}
