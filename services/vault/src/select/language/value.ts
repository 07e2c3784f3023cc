// Values of expressions, and their order.
import { Timestamp } from "./timestamp.ts";

/** A double whose value is integral: without the box, it would be taken for an integer. */
class WholeDouble {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** A list, an object, or a number or string as it stands in the object: JSON text. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * A number. Integers are integral numbers if they are safe, otherwise `bigint` of at most 64 bits; doubles are other numbers,
 * or boxed.
 */
export type NumberValue = number | bigint | WholeDouble;

/** A value that literals can have. */
export type Scalar = null | boolean | string | NumberValue | Timestamp;

/** A value; `undefined` is MISSING. */
export type Value = Scalar | undefined | JsonText;

/** The value of a double. */
export function toDouble(value: number): NumberValue {
  return Number.isInteger(value) ? new WholeDouble(value) : value;
}

/** The value of an integer, which must have 64 bits at most. */
export function toInteger(value: bigint): NumberValue {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** The double of a number. */
export function readDouble(value: NumberValue): number {
  return typeof value === "number"
    ? value
    : Number(value instanceof WholeDouble ? value.value : value);
}

export function isNumber(value: Value): value is NumberValue {
  return typeof value === "number" || typeof value === "bigint" || value instanceof WholeDouble;
}

/** True for integers, in contrast to doubles. */
export function isInteger(value: NumberValue): value is number | bigint {
  return typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
}

/** The order of two values of the same type; `undefined` if their types have no order. */
export function compareValues(left: Value, right: Value): number | undefined {
  if (typeof left === "string") {
    if (typeof right !== "string") return undefined;
    return left === right ? 0 : compareStrings(left, right);
  }
  if (isNumber(left)) return isNumber(right) ? compareNumbers(left, right) : undefined;
  if (typeof left === "boolean") {
    return typeof right === "boolean" ? Number(left) - Number(right) : undefined;
  }
  if (left instanceof Timestamp) {
    return right instanceof Timestamp ? left.compare(right) : undefined;
  }
  if (left instanceof JsonText && right instanceof JsonText) {
    return left.text === right.text ? 0 : undefined;
  }
  return undefined;
}

// NaN equals itself and comes last, so that sorting has an order.
function compareNumbers(left: NumberValue, right: NumberValue): number {
  const a = left instanceof WholeDouble ? left.value : left;
  const b = right instanceof WholeDouble ? right.value : right;
  if (a < b) return -1;
  if (a > b) return 1;
  // oxlint-disable-next-line eqeqeq -- a bigint and a number
  if (a == b) return 0;
  return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
}

const SURROGATE_MIN = 0xd800;

/** The order of code points, which is that of UTF-8. */
function compareStrings(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) {
    const a = left.charCodeAt(index);
    const b = right.charCodeAt(index);
    if (a === b) continue;
    // Surrogates come after all other characters, though their units come before U+E000.
    if (a >= SURROGATE_MIN && b >= SURROGATE_MIN) return orderUnit(a) - orderUnit(b);
    return a - b;
  }
  return left.length - right.length;
}

function orderUnit(unit: number): number {
  return unit >= 0xe000 ? unit - 0x2000 : unit + 0x2000;
}

const TYPE_ORDER = ["boolean", "number", "timestamp", "string", "json", "null"] as const;

function typeOf(value: Value): (typeof TYPE_ORDER)[number] {
  if (value === undefined || value === null) return "null";
  if (isNumber(value)) return "number";
  if (value instanceof Timestamp) return "timestamp";
  if (value instanceof JsonText) return "json";
  return typeof value === "boolean" ? "boolean" : "string";
}

/** An order of all values, for sorting: by type, then by value; null and missing are equal and last. */
export function orderValues(left: Value, right: Value): number {
  const order = compareValues(left, right);
  if (order !== undefined) return order;
  const types = TYPE_ORDER.indexOf(typeOf(left)) - TYPE_ORDER.indexOf(typeOf(right));
  if (types !== 0 || !(left instanceof JsonText) || !(right instanceof JsonText)) return types;
  return compareStrings(left.text, right.text);
}

/** A text that is the same for equal values, and different for others. */
export function toKey(value: Value): string {
  if (value === undefined) return "m";
  if (value === null) return "n";
  if (typeof value === "string") return `s${value.length}:${value}`;
  if (typeof value === "boolean") return value ? "t" : "f";
  if (value instanceof Timestamp) return `d${value.epochMs}.${value.nanos}`;
  if (value instanceof JsonText) return `j${value.text.length}:${value.text}`;
  if (value instanceof WholeDouble) return `i${value.value + 0}`;
  return `i${value}`;
}

/** The text of a number, as in JSON. Infinity and NaN keep their names. */
export function formatNumber(value: NumberValue): string {
  if (!(value instanceof WholeDouble)) return String(value);
  const text = String(value.value);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}
