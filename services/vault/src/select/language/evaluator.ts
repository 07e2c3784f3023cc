// Compiles expressions to closures over the current row of a reader.
//
// NULL and MISSING: operators with one such operand are NULL; AND, OR and NOT follow the three-valued logic of SQL.
import { calculate, negate } from "./arithmetic.ts";
import { cast, parseNumber } from "./cast.ts";
import { SelectError } from "./fault.ts";
import {
  addDate,
  createFunctions,
  extractPart,
  requireText,
  requireTimestamp,
  toConcatText,
  trimText,
} from "./functions.ts";
import { compileLike } from "./like.ts";
import type { CastType, ColumnReference, CompareOperator, Expression } from "./syntax.ts";
import { compareValues, isNumber, JsonText, type NumberValue, toKey, type Value } from "./value.ts";

/** Limit of a computed text in UTF-16 units. */
const TEXT_LENGTH_MAX = 16 * 1024 * 1024;
/** Lists of at least this many literals are searched by a hash. */
const HASHED_ITEMS_MIN = 8;

/** Returns the value of an expression for the current row. */
export type Getter = () => Value;

/** The surroundings of a compiled expression. */
export interface Scope {
  /** Returns the getter of a column. Throws a SelectError if there is no such column. */
  readonly bindColumn: (column: Extract<Expression, { kind: "column" }>) => Getter;
  /** See `RowReader`; `undefined` if the reader cannot. */
  readonly bindInteger: (column: ColumnReference) => (() => number | undefined) | undefined;
  /** See `RowReader`; `undefined` if the reader cannot. */
  readonly bindEquals: (
    column: ColumnReference,
    text: string,
  ) => (() => boolean | undefined) | undefined;
  /** Returns the getter of an aggregate's result. */
  readonly bindAggregate: (aggregate: Extract<Expression, { kind: "aggregate" }>) => Getter;
  /** Replaces an expression whose value is known otherwise, such as that of a group; `undefined` for others. */
  readonly bindKnown: (expression: Expression) => Getter | undefined;
  /** True if all columns are texts, which are converted when they meet numbers. */
  readonly isText: boolean;
  /** The time of the question, ms since 1970. */
  readonly nowMs: number;
}

/** Compiles an expression. Throws a SelectError for faults that no row can change. */
export function compile(expression: Expression, scope: Scope): Getter {
  return new Compiler(scope).compile(expression);
}

/** True if a condition holds: NULL and MISSING do not. Throws for values of other types. */
export function holds(value: Value): boolean {
  if (value === true) return true;
  toLogical(value);
  return false;
}

class Compiler {
  readonly #scope: Scope;
  readonly #functions: ReturnType<typeof createFunctions>;

  constructor(scope: Scope) {
    this.#scope = scope;
    this.#functions = createFunctions(scope.nowMs);
  }

  compile(expression: Expression): Getter {
    const known = this.#scope.bindKnown(expression);
    if (known !== undefined) return known;
    switch (expression.kind) {
      case "literal": {
        const { value } = expression;
        return () => value;
      }
      case "column":
        return this.#scope.bindColumn(expression);
      case "aggregate":
        return this.#scope.bindAggregate(expression);
      case "and":
      case "or":
        return this.#compileLogic(expression.kind === "or", expression.operands);
      case "compare":
        return this.#compileCompare(expression.operator, expression.left, expression.right);
      case "case":
        return this.#compileCase(expression);
      case "in":
        return this.#compileIn(expression.value, expression.items);
      case "like":
        return this.#compileLike(expression);
      default:
        return this.#compileOther(expression);
    }
  }

  #compileOther(
    expression: Exclude<
      Expression,
      {
        kind:
          | "literal"
          | "column"
          | "aggregate"
          | "and"
          | "or"
          | "compare"
          | "case"
          | "in"
          | "like";
      }
    >,
  ): Getter {
    switch (expression.kind) {
      case "not":
        return this.#compileNot(expression.operand);
      case "negate": {
        const operand = this.#compileNumber(expression.operand);
        return () => {
          const value = operand();
          return value === null ? null : negate(value);
        };
      }
      case "arithmetic":
        return this.#compileArithmetic(expression.first, expression.rest);
      case "concat":
        return this.#compileConcat(expression.operands);
      case "between": {
        const { value, low, high } = expression;
        const notBelow = this.#compileCompare(">=", value, low);
        const notAbove = this.#compileCompare("<=", value, high);
        return () => conjoin(notBelow(), notAbove());
      }
      case "is":
        return this.#compileIs(expression.value, expression.what);
      case "cast":
        return this.#compileCast(expression.operand, expression.type);
      case "coalesce": {
        const operands = expression.operands.map((one) => this.compile(one));
        return () => {
          for (const operand of operands) {
            const value = operand();
            if (value !== null && value !== undefined) return value;
          }
          return null;
        };
      }
      default:
        return this.#compileFunction(expression);
    }
  }

  #compileFunction(
    expression: Extract<
      Expression,
      { kind: "call" | "trim" | "date-add" | "date-difference" | "extract" }
    >,
  ): Getter {
    switch (expression.kind) {
      case "call": {
        const call = this.#functions[expression.name];
        const operands = expression.operands.map((one) => this.compile(one));
        if (expression.name === "NULLIF") return () => call(operands.map((one) => one()));
        return this.#strict(operands, call);
      }
      case "trim": {
        const { side } = expression;
        const operand = this.compile(expression.operand);
        if (expression.characters === undefined) {
          return this.#strict([operand], ([text]) => trimText(side, undefined, text));
        }
        const characters = this.compile(expression.characters);
        return this.#strict([characters, operand], ([removed, text]) =>
          trimText(side, removed, text),
        );
      }
      case "date-add":
      case "date-difference": {
        const { part } = expression;
        const operands = [this.compile(expression.left), this.compile(expression.right)];
        if (expression.kind === "date-add") {
          return this.#strict(operands, ([quantity, timestamp]) =>
            addDate(part, this.#toNumber(quantity), timestamp),
          );
        }
        return this.#strict(operands, ([left, right]) =>
          requireTimestamp("DATE_DIFF", left).measure(part, requireTimestamp("DATE_DIFF", right)),
        );
      }
      case "extract": {
        const { part } = expression;
        const operand = this.compile(expression.operand);
        return this.#strict([operand], ([timestamp]) => extractPart(part, timestamp));
      }
      default:
        return expression satisfies never;
    }
  }

  // NULL if one operand is null or missing.
  #strict(operands: readonly Getter[], call: (values: readonly Value[]) => Value): Getter {
    return () => {
      const values: Value[] = [];
      for (const operand of operands) {
        const value = operand();
        if (value === null || value === undefined) return null;
        values.push(value);
      }
      return call(values);
    };
  }

  #compileLogic(isOr: boolean, operands: readonly Expression[]): Getter {
    const getters = operands.map((one) => this.compile(one));
    return () => {
      let result: boolean | null = !isOr;
      for (const getter of getters) {
        const value = toLogical(getter());
        if (value === isOr) return isOr;
        if (value === null) result = null;
      }
      return result;
    };
  }

  #compileNot(operand: Expression): Getter {
    const getter = this.compile(operand);
    return () => {
      const value = toLogical(getter());
      return value === null ? null : !value;
    };
  }

  // Fields that are plain integers are not made texts first.
  #compileCast(operand: Expression, type: CastType): Getter {
    const general = this.compile(operand);
    const convert: Getter = () => cast(general(), type);
    if (type.name !== "int" || operand.kind !== "column") return convert;
    const integer = this.#bindInteger(operand);
    return integer === undefined ? convert : () => integer() ?? convert();
  }

  #bindInteger(column: ColumnReference): (() => number | undefined) | undefined {
    if (this.#scope.bindKnown(column) !== undefined) return undefined;
    return this.#scope.bindInteger(column);
  }

  // The operand of a comparison with a number.
  #compileOperand(operand: Expression, other: Expression): Getter {
    const general = this.compile(operand);
    const isNumeric = other.kind === "literal" && isNumber(other.value);
    if (!isNumeric || operand.kind !== "column") return general;
    const integer = this.#bindInteger(operand);
    return integer === undefined ? general : () => integer() ?? general();
  }

  #compileCompare(operator: CompareOperator, left: Expression, right: Expression): Getter {
    const general = this.#compileGeneralCompare(operator, left, right);
    if (operator !== "=" && operator !== "<>") return general;
    if (left.kind !== "column" || right.kind !== "literal") return general;
    if (typeof right.value !== "string" || this.#scope.bindKnown(left) !== undefined) {
      return general;
    }
    const equals = this.#scope.bindEquals(left, right.value);
    if (equals === undefined) return general;
    const wanted = operator === "=";
    return () => {
      const isEqual = equals();
      return isEqual === undefined ? general() : isEqual === wanted;
    };
  }

  #compileGeneralCompare(operator: CompareOperator, left: Expression, right: Expression): Getter {
    const [a, b] = [this.#compileOperand(left, right), this.#compileOperand(right, left)];
    const decide = DECISIONS[operator];
    const { isText } = this.#scope;
    return () => {
      const x = a();
      const y = b();
      if (x === null || x === undefined || y === null || y === undefined) return null;
      if (typeof x === "number" && typeof y === "number" && (x <= y || x > y)) {
        return decide(x < y ? -1 : x > y ? 1 : 0);
      }
      const order = isText ? compareTexts(x, y) : compareValues(x, y);
      if (order !== undefined) return decide(order);
      // Values of different types differ; they have no order.
      return operator === "=" ? false : operator === "<>" ? true : null;
    };
  }

  #compileIn(value: Expression, items: readonly Expression[]): Getter {
    const getter = this.compile(value);
    const { isText } = this.#scope;
    const compare = isText ? compareTexts : compareValues;
    const lookUp = hashItems(items);
    if (lookUp !== undefined) {
      return () => {
        const found = getter();
        if (found === null || found === undefined) return null;
        return lookUp(found, isText);
      };
    }
    const getters = items.map((one) => this.compile(one));
    return () => {
      const found = getter();
      if (found === null || found === undefined) return null;
      let result: boolean | null = false;
      for (const one of getters) {
        const item = one();
        if (item === null || item === undefined) result = null;
        else if (compare(found, item) === 0) return true;
      }
      return result;
    };
  }

  #compileLike({ value, pattern, escape }: Extract<Expression, { kind: "like" }>): Getter {
    const getters = [value, pattern, ...(escape === undefined ? [] : [escape])].map((one) =>
      this.compile(one),
    );
    let known: { pattern: string; escape: string | undefined; match: (text: string) => boolean };
    const prepare = (text: string, escaped: string | undefined): ((text: string) => boolean) => {
      if (known?.pattern !== text || known.escape !== escaped) {
        known = { pattern: text, escape: escaped, match: compileLike(text, escaped) };
      }
      return known.match;
    };
    // A fault of a literal pattern is found before the first row.
    if (pattern.kind === "literal" && typeof pattern.value === "string") {
      const escaped = escape?.kind === "literal" ? escape.value : undefined;
      if (typeof escaped === "string" || escape === undefined) {
        prepare(pattern.value, escaped as string | undefined);
      }
    }
    return this.#strict(getters, ([text, wanted, escaped]) => {
      if (typeof text !== "string" || typeof wanted !== "string") {
        throw new SelectError("LikeInvalidInputs", "LIKE expects strings.");
      }
      const sign = escaped === undefined ? undefined : requireText("ESCAPE", escaped);
      return prepare(wanted, sign)(text);
    });
  }

  #compileCase({ subject, branches, otherwise }: Extract<Expression, { kind: "case" }>): Getter {
    const compiled = branches.map(([condition, result]) => {
      const test =
        subject === undefined
          ? this.compile(condition)
          : this.#compileCompare("=", subject, condition);
      return [test, this.compile(result)] as const;
    });
    const last = otherwise === undefined ? () => null : this.compile(otherwise);
    return () => {
      for (const [test, result] of compiled) if (holds(test())) return result();
      return last();
    };
  }

  #compileIs(value: Expression, what: "null" | "missing" | "true" | "false"): Getter {
    const getter = this.compile(value);
    switch (what) {
      case "missing":
        return () => getter() === undefined;
      case "null":
        return () => {
          const found = getter();
          return found === null || found === undefined;
        };
      default:
        return () => getter() === (what === "true");
    }
  }

  #compileArithmetic(
    first: Expression,
    rest: Extract<Expression, { kind: "arithmetic" }>["rest"],
  ): Getter {
    const begin = this.#compileNumber(first);
    const steps = rest.map(
      ([operator, operand]) => [operator, this.#compileNumber(operand)] as const,
    );
    return () => {
      let result = begin();
      for (const [operator, operand] of steps) {
        const value = operand();
        result = result === null || value === null ? null : calculate(operator, result, value);
      }
      return result;
    };
  }

  #compileConcat(operands: readonly Expression[]): Getter {
    const getters = operands.map((one) => this.compile(one));
    return this.#strictText(getters);
  }

  #strictText(getters: readonly Getter[]): Getter {
    return () => {
      let text = "";
      for (const getter of getters) {
        const value = getter();
        if (value === null || value === undefined) return null;
        text += toConcatText(value);
        if (text.length > TEXT_LENGTH_MAX) {
          throw new SelectError("QueryLimitExceeded", "A computed value is longer than 16 MiB.");
        }
      }
      return text;
    };
  }

  #compileNumber(operand: Expression): () => NumberValue | null {
    const getter = this.compile(operand);
    return () => {
      const value = getter();
      if (typeof value === "number") return value;
      if (value === null || value === undefined) return null;
      return this.#toNumber(value);
    };
  }

  #toNumber(value: Value): NumberValue {
    if (isNumber(value)) return value;
    if (typeof value === "string" && this.#scope.isText) return requireNumber(value);
    throw new SelectError("IncorrectSqlFunctionArgumentType", "Arithmetic expects numbers.");
  }
}

const DECISIONS: Readonly<Record<CompareOperator, (order: number) => boolean>> = {
  "=": (order) => order === 0,
  "<>": (order) => order !== 0,
  "<": (order) => order < 0,
  "<=": (order) => order <= 0,
  ">": (order) => order > 0,
  ">=": (order) => order >= 0,
};

/** The number in a text. Throws CastFailed. */
export function requireNumber(text: string): NumberValue {
  const number = parseNumber(text);
  if (number !== undefined) return number;
  const shown = text.length > 40 ? `${text.slice(0, 40)}…` : text;
  throw new SelectError("CastFailed", `${JSON.stringify(shown)} is not a number.`);
}

// A text is converted to the type of the number or boolean that it is compared with.
function compareTexts(left: Value, right: Value): number | undefined {
  if (typeof left === "string" && typeof right !== "string") {
    return compareValues(convertLike(left, right), right);
  }
  if (typeof right === "string" && typeof left !== "string") {
    return compareValues(left, convertLike(right, left));
  }
  return compareValues(left, right);
}

function convertLike(text: string, other: Value): Value {
  if (isNumber(other)) return requireNumber(text);
  if (typeof other === "boolean") return cast(text, { name: "bool" });
  return other instanceof JsonText ? text : cast(text, { name: "timestamp" });
}

// `undefined` for short lists, and for lists with other items than texts or numbers.
function hashItems(
  items: readonly Expression[],
): ((value: Value, isText: boolean) => boolean) | undefined {
  if (items.length < HASHED_ITEMS_MIN) return undefined;
  const keys = new Set<string>();
  let hasNumbers = false;
  let hasTexts = false;
  for (const item of items) {
    if (item.kind !== "literal") return undefined;
    const { value } = item;
    if (isNumber(value)) hasNumbers = true;
    else if (typeof value === "string") hasTexts = true;
    else return undefined;
    keys.add(toKey(value));
  }
  if (hasNumbers && hasTexts) return undefined;
  return (value, isText) => {
    const converted =
      hasNumbers && isText && typeof value === "string" ? requireNumber(value) : value;
    return keys.has(toKey(converted));
  };
}

function toLogical(value: Value): boolean | null {
  if (typeof value === "boolean") return value;
  if (value === null || value === undefined) return null;
  throw new SelectError("IncorrectSqlFunctionArgumentType", "A condition must be a boolean.");
}

function conjoin(left: Value, right: Value): boolean | null {
  if (left === false || right === false) return false;
  return left === null || right === null ? null : true;
}
