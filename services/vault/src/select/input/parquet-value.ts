// Values of Parquet columns.
import type { SchemaTree } from "hyparquet";
import { JsonText, type NumberValue, toDouble, toInteger, type Value } from "../language/value.ts";
import { Timestamp } from "../language/timestamp.ts";

const NANOS_PER_MS = 1_000_000n;

/** Parsers of dates and times, which keep nanoseconds. */
export const PARQUET_PARSERS = {
  timestampFromMilliseconds: (millis: bigint) => new Timestamp(Number(millis), 0, 0, "second", 3),
  timestampFromMicroseconds: (micros: bigint) => fromNanos(micros * 1_000n, 6),
  timestampFromNanoseconds: (nanos: bigint) => fromNanos(nanos, 9),
  dateFromDays: (days: number) => new Timestamp(days * 86_400_000, 0, undefined, "day", 0),
  jsonFromBytes: (bytes: Uint8Array) => new JsonText(Buffer.from(bytes).toString()),
};

function fromNanos(nanos: bigint, digits: number): Timestamp {
  let rest = nanos % NANOS_PER_MS;
  let millis = nanos / NANOS_PER_MS;
  if (rest < 0n) {
    rest += NANOS_PER_MS;
    millis -= 1n;
  }
  return new Timestamp(Number(millis), Number(rest), 0, "second", digits);
}

/** Returns the wrapper of a column's values: doubles must not be mistaken for integers. */
export function chooseWrapper({ element, children }: SchemaTree): (value: unknown) => Value {
  if (children.length > 0 || element.repetition_type === "REPEATED") return wrapNested;
  const isDecimal =
    element.converted_type === "DECIMAL" || element.logical_type?.type === "DECIMAL";
  const isDouble = element.type === "DOUBLE" || element.type === "FLOAT";
  if (isDouble || isDecimal || element.logical_type?.type === "FLOAT16") {
    return (value) => (typeof value === "number" ? toDouble(value) : wrapNested(value));
  }
  return wrapNested;
}

/** The value of a part of a column, whose type is not known. */
export function wrapNested(value: unknown): Value {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return value;
    case "bigint":
      return wrapInteger(value);
    case "object":
      break;
    default:
      return null;
  }
  if (value === null || value instanceof Timestamp || value instanceof JsonText) return value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  return new JsonText(toJson(value));
}

// Unsigned integers may exceed 64 bits with a sign.
function wrapInteger(value: bigint): NumberValue {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  return BigInt.asIntN(64, value) === value ? toInteger(value) : toDouble(Number(value));
}

function toJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toJson).join(",")}]`;
  if (value instanceof Timestamp) return `"${value.toString()}"`;
  if (value instanceof JsonText) return value.text;
  if (typeof value === "bigint") return String(value);
  if (value === undefined || value === null) return "null";
  if (value instanceof Uint8Array) return `"${Buffer.from(value).toString("base64")}"`;
  if (ArrayBuffer.isView(value)) return toJson([...(value as unknown as Iterable<unknown>)]);
  if (typeof value === "object") {
    const members = Object.entries(value).map(
      ([name, member]) => `${JSON.stringify(name)}:${toJson(member)}`,
    );
    return `{${members.join(",")}}`;
  }
  // NaN and infinity are null.
  return JSON.stringify(value);
}
