// CAST, and the reading of numbers in text.
import { requireInteger } from "./arithmetic.ts";
import { SelectError } from "./fault.ts";
import type { CastType } from "./syntax.ts";
import { parseTimestamp, Timestamp } from "./timestamp.ts";
import {
  formatNumber,
  isInteger,
  isNumber,
  JsonText,
  type NumberValue,
  readDouble,
  toDouble,
  type Value,
} from "./value.ts";

const INTEGER = /^[+-]?\d{1,1000}$/;
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,5})?$/;
const NUMBER_LENGTH_MAX = 1_000;
const DECIMALS_MAX = 20;

/** The number in a text: an integer if it is written as one and has 64 bits; `undefined` if it is no number. */
export function parseNumber(text: string): NumberValue | undefined {
  if (text.length > NUMBER_LENGTH_MAX) return undefined;
  if (text.length <= 15) {
    // The usual case: digits only.
    let value = 0;
    let at = 0;
    for (; at < text.length; at += 1) {
      const digit = text.charCodeAt(at) - 48;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    if (at === text.length && at > 0) return value;
  }
  const trimmed = text.trim();
  if (INTEGER.test(trimmed)) {
    const value = BigInt(trimmed.startsWith("+") ? trimmed.slice(1) : trimmed);
    return BigInt.asIntN(64, value) === value ? requireInteger(value) : toDouble(Number(value));
  }
  return DECIMAL.test(trimmed) ? toDouble(Number(trimmed)) : undefined;
}

/** Converts a value. Null and missing stay. Throws CastFailed, or InvalidCast for types that are never converted. */
export function cast(value: Value, type: CastType): Value {
  if (value === null || value === undefined) return value;
  const result = convert(value, type);
  if (result !== undefined) return result;
  const text = formatText(value);
  const shown = text.length > 40 ? `${text.slice(0, 40)}…` : text;
  throw new SelectError(
    "CastFailed",
    `${JSON.stringify(shown)} cannot be converted to ${type.name.toUpperCase()}.`,
  );
}

function convert(value: NonNullable<Value>, type: CastType): Value {
  switch (type.name) {
    case "bool":
      return toBoolean(value);
    case "int":
      return toIntegerValue(value);
    case "float": {
      const number = toNumber(value);
      return number === undefined ? undefined : toDouble(readDouble(number));
    }
    case "decimal":
      return toDecimal(value, type.scale);
    case "string":
      return toText(value, type.length);
    case "timestamp":
      if (value instanceof Timestamp) return value;
      return typeof value === "string" ? parseTimestamp(value.trim()) : refuse(value, type);
    default:
      return type satisfies never;
  }
}

function toBoolean(value: NonNullable<Value>): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (isNumber(value)) return readDouble(value) !== 0;
  if (typeof value !== "string") return refuse(value, { name: "bool" });
  const text = value.trim().toLowerCase();
  return text === "true" ? true : text === "false" ? false : undefined;
}

function toNumber(value: NonNullable<Value>): NumberValue | undefined {
  if (isNumber(value)) return value;
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "string" ? parseNumber(value) : refuse(value, { name: "float" });
}

// Doubles lose their fraction.
function toIntegerValue(value: NonNullable<Value>): NumberValue | undefined {
  const number = toNumber(value);
  if (number === undefined || isInteger(number)) return number;
  const double = readDouble(number);
  if (!Number.isFinite(double)) return undefined;
  return requireInteger(BigInt(Math.trunc(double)));
}

function toDecimal(value: NonNullable<Value>, scale: number | undefined): NumberValue | undefined {
  const number = toNumber(value);
  if (number === undefined || isInteger(number) || scale === undefined) return number;
  const double = readDouble(number);
  if (!Number.isFinite(double)) return undefined;
  if (scale > DECIMALS_MAX) return number;
  return toDouble(Number(double.toFixed(scale)));
}

function toText(value: NonNullable<Value>, length: number | undefined): string {
  const text = formatText(value);
  if (length === undefined) return text;
  // A character has two UTF-16 units at most.
  return Array.from(text.slice(0, length * 2))
    .slice(0, length)
    .join("");
}

/** The text of a value, as in CSV. */
export function formatText(value: NonNullable<Value>): string {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "true" : "false";
  if (isNumber(value)) return formatNumber(value);
  return value instanceof JsonText ? value.text : value.toString();
}

function refuse(value: NonNullable<Value>, type: CastType): never {
  const from =
    value instanceof JsonText
      ? "A list or object"
      : value instanceof Timestamp
        ? "A timestamp"
        : "A value";
  throw new SelectError(
    "InvalidCast",
    `${from} cannot be converted to ${type.name.toUpperCase()}.`,
  );
}
