// Aggregates: COUNT, SUM, AVG, MIN and MAX. NULL and MISSING are skipped.
import { add } from "./arithmetic.ts";
import { SelectError } from "./fault.ts";
import { parseNumber } from "./cast.ts";
import { type Getter, requireNumber } from "./evaluator.ts";
import type { AggregateName } from "./syntax.ts";
import {
  isNumber,
  type NumberValue,
  orderValues,
  readDouble,
  toDouble,
  type Value,
} from "./value.ts";

/** The state of one aggregate over the rows of a group. */
export interface Accumulator {
  /** Adds the current row. */
  add(): void;
  readonly result: Value;
}

/** Creates an accumulator; without an operand it counts rows. `isText`: all values are texts, numbers too. */
export function createAccumulator(
  name: AggregateName,
  operand: Getter | undefined,
  isText: boolean,
): Accumulator {
  if (operand === undefined) return new RowCounter();
  switch (name) {
    case "COUNT":
      return new ValueCounter(operand);
    case "SUM":
    case "AVG":
      return new Adder(operand, name, isText);
    default:
      return new Extreme(operand, name === "MIN" ? -1 : 1, isText);
  }
}

class RowCounter implements Accumulator {
  result = 0;

  add(): void {
    this.result += 1;
  }
}

class ValueCounter implements Accumulator {
  readonly #operand: Getter;
  result = 0;

  constructor(operand: Getter) {
    this.#operand = operand;
  }

  add(): void {
    const value = this.#operand();
    if (value !== null && value !== undefined) this.result += 1;
  }
}

class Adder implements Accumulator {
  readonly #operand: Getter;
  readonly #name: "SUM" | "AVG";
  readonly #isText: boolean;
  #sum: NumberValue = 0;
  #count = 0;

  constructor(operand: Getter, name: "SUM" | "AVG", isText: boolean) {
    this.#operand = operand;
    this.#name = name;
    this.#isText = isText;
  }

  add(): void {
    const value = this.#operand();
    if (value === null || value === undefined) return;
    this.#sum = add(this.#sum, this.#toNumber(value));
    this.#count += 1;
  }

  get result(): Value {
    if (this.#count === 0) return null;
    return this.#name === "SUM" ? this.#sum : toDouble(readDouble(this.#sum) / this.#count);
  }

  #toNumber(value: Value): NumberValue {
    if (isNumber(value)) return value;
    if (this.#isText && typeof value === "string") return requireNumber(value);
    throw new SelectError("IncorrectSqlFunctionArgumentType", `${this.#name} expects numbers.`);
  }
}

class Extreme implements Accumulator {
  readonly #operand: Getter;
  readonly #sign: number;
  readonly #isText: boolean;
  #found: Value;

  constructor(operand: Getter, sign: number, isText: boolean) {
    this.#operand = operand;
    this.#sign = sign;
    this.#isText = isText;
  }

  // Numbers in texts are compared as numbers, and are less than other texts.
  add(): void {
    let value = this.#operand();
    if (value === null || value === undefined) return;
    if (this.#isText && typeof value === "string") value = parseNumber(value) ?? value;
    const found = this.#found;
    if (found === undefined || orderValues(value, found) * this.#sign > 0) this.#found = value;
  }

  get result(): Value {
    return this.#found ?? null;
  }
}
