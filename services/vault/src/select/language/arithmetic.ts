// Arithmetic: integers of 64 bits, and doubles. Two integers give an integer, also when they are divided.
import { SelectError } from "./fault.ts";
import type { ArithmeticOperator } from "./syntax.ts";
import { isInteger, type NumberValue, readDouble, toDouble, toInteger } from "./value.ts";

const MAX = 2n ** 63n - 1n;
const MIN = -(2n ** 63n);

/** The result of an operator. Throws IntegerOverflow, and IllegalSqlFunctionArgument for an integer divided by zero. */
export function calculate(
  operator: ArithmeticOperator,
  left: NumberValue,
  right: NumberValue,
): NumberValue {
  if (!isInteger(left) || !isInteger(right)) {
    return toDouble(calculateDouble(operator, readDouble(left), readDouble(right)));
  }
  if (typeof left === "number" && typeof right === "number") {
    const result = calculateSafe(operator, left, right);
    if (result !== undefined) return result;
  }
  return requireInteger(calculateInteger(operator, BigInt(left), BigInt(right)));
}

/** Adds two numbers. */
export function add(left: NumberValue, right: NumberValue): NumberValue {
  return calculate("+", left, right);
}

/** The number with the other sign. */
export function negate(value: NumberValue): NumberValue {
  if (!isInteger(value)) return toDouble(-readDouble(value));
  return requireInteger(-BigInt(value));
}

/** The value of an integer. Throws IntegerOverflow if it has more than 64 bits. */
export function requireInteger(value: bigint): NumberValue {
  if (value > MAX || value < MIN) throw new SelectError("IntegerOverflow");
  return toInteger(value);
}

// `undefined` if the result may be inexact.
function calculateSafe(
  operator: ArithmeticOperator,
  left: number,
  right: number,
): number | undefined {
  let result: number;
  switch (operator) {
    case "+":
      result = left + right;
      break;
    case "-":
      result = left - right;
      break;
    case "*":
      result = left * right;
      break;
    case "/":
      if (right === 0) throw divisionByZero();
      result = Math.trunc(left / right);
      break;
    default:
      if (right === 0) throw divisionByZero();
      result = left % right;
  }
  // Never -0, which would be printed differently.
  return Number.isSafeInteger(result) ? result + 0 : undefined;
}

function calculateInteger(operator: ArithmeticOperator, left: bigint, right: bigint): bigint {
  switch (operator) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      if (right === 0n) throw divisionByZero();
      return left / right;
    default:
      if (right === 0n) throw divisionByZero();
      return left % right;
  }
}

function calculateDouble(operator: ArithmeticOperator, left: number, right: number): number {
  switch (operator) {
    case "+":
      return left + right;
    case "-":
      return left - right;
    case "*":
      return left * right;
    case "/":
      if (right === 0) throw divisionByZero();
      return left / right;
    default:
      if (right === 0) throw divisionByZero();
      return left % right;
  }
}

function divisionByZero(): SelectError {
  return new SelectError("IllegalSqlFunctionArgument", "A number is divided by zero.");
}
