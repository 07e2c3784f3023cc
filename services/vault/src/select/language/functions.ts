// The functions of the SQL reference, on evaluated arguments.
import { formatText } from "./cast.ts";
import { SelectError } from "./fault.ts";
import type { FunctionName } from "./syntax.ts";
import { type DatePart, fromEpochMs, parseTimestamp, Timestamp } from "./timestamp.ts";
import { compileFormat, compileParse } from "./timestamp-pattern.ts";
import { compareValues, isInteger, isNumber, JsonText, readDouble, type Value } from "./value.ts";

/** A function; the operands are neither null nor missing, except those of NULLIF. */
type SqlFunction = (operands: readonly Value[]) => Value;

/** The functions of one question; patterns are compiled once as long as they stay the same. */
export function createFunctions(nowMs: number): Readonly<Record<FunctionName, SqlFunction>> {
  const format = remember(compileFormat);
  const parse = remember(compileParse);
  const now = fromEpochMs(nowMs);
  return {
    CHAR_LENGTH: ([text]) => countCharacters(requireText("CHAR_LENGTH", text)),
    LOWER: ([text]) => requireText("LOWER", text).toLowerCase(),
    UPPER: ([text]) => requireText("UPPER", text).toUpperCase(),
    SUBSTRING: takeSubstring,
    NULLIF: ([left, right]) => (compareValues(left, right) === 0 ? null : (left ?? null)),
    TO_STRING: ([timestamp, pattern]) =>
      format(requireText("TO_STRING", pattern))(requireTimestamp("TO_STRING", timestamp)),
    TO_TIMESTAMP: ([text, pattern]) => {
      const value = requireText("TO_TIMESTAMP", text);
      const timestamp =
        pattern === undefined
          ? parseTimestamp(value)
          : parse(requireText("TO_TIMESTAMP", pattern))(value);
      if (timestamp === undefined) throw new SelectError("ValueParseFailure");
      return timestamp;
    },
    UTCNOW: () => now,
  };
}

function remember<Result>(compile: (pattern: string) => Result): (pattern: string) => Result {
  let known: { pattern: string; result: Result } | undefined;
  return (pattern) => {
    if (known?.pattern !== pattern) known = { pattern, result: compile(pattern) };
    return known.result;
  };
}

/** A text argument. Values of CSV are texts; numbers and other types are refused. */
export function requireText(name: string, value: Value): string {
  if (typeof value === "string") return value;
  throw new SelectError("IncorrectSqlFunctionArgumentType", `${name} expects a string.`);
}

/** A timestamp argument. */
export function requireTimestamp(name: string, value: Value): Timestamp {
  if (value instanceof Timestamp) return value;
  throw new SelectError("IncorrectSqlFunctionArgumentType", `${name} expects a timestamp.`);
}

function requireCount(name: string, value: Value): number {
  if (isNumber(value) && isInteger(value)) return readDouble(value);
  throw new SelectError("IncorrectSqlFunctionArgumentType", `${name} expects an integer.`);
}

function isSimple(text: string): boolean {
  return !/[\ud800-\udbff]/.test(text);
}

function countCharacters(text: string): number {
  return isSimple(text) ? text.length : Array.from(text).length;
}

// From 1. A start before the text counts towards the length, as in SQL-92.
function takeSubstring([text, start, length]: readonly Value[]): string {
  const value = requireText("SUBSTRING", text);
  const from = requireCount("SUBSTRING", start);
  const count = length === undefined ? Infinity : requireCount("SUBSTRING", length);
  if (count < 0) {
    throw new SelectError("EvaluatorInvalidArguments", "SUBSTRING expects a length of at least 0.");
  }
  const first = Math.max(0, from - 1);
  const end = Math.max(first, from - 1 + count);
  return isSimple(value) ? value.slice(first, end) : Array.from(value).slice(first, end).join("");
}

/** Removes characters from the ends of a text; the default is spaces. */
export function trimText(
  side: "LEADING" | "TRAILING" | "BOTH",
  characters: Value,
  operand: Value,
): string {
  const text = requireText("TRIM", operand);
  const removed = new Set(characters === undefined ? " " : requireText("TRIM", characters));
  const letters = isSimple(text) ? text : Array.from(text);
  let start = 0;
  let end = letters.length;
  if (side !== "TRAILING") while (start < end && removed.has(letters[start]!)) start += 1;
  if (side !== "LEADING") while (end > start && removed.has(letters[end - 1]!)) end -= 1;
  const kept = letters.slice(start, end);
  return typeof kept === "string" ? kept : kept.join("");
}

/** DATE_ADD. Throws IllegalSqlFunctionArgument outside of the years 1 to 9999. */
export function addDate(part: DatePart, quantity: Value, timestamp: Value): Timestamp {
  const count = requireCount("DATE_ADD", quantity);
  const sum = requireTimestamp("DATE_ADD", timestamp).add(part, count);
  if (sum !== undefined) return sum;
  throw new SelectError("IllegalSqlFunctionArgument", "The date is not in the years 1 to 9999.");
}

/** EXTRACT. */
export function extractPart(
  part: DatePart | "timezone_hour" | "timezone_minute",
  operand: Value,
): number {
  const timestamp = requireTimestamp("EXTRACT", operand);
  const offset = timestamp.offsetMinutes ?? 0;
  if (part === "timezone_hour") return Math.trunc(offset / 60) + 0;
  if (part === "timezone_minute") return (offset % 60) + 0;
  return timestamp.fields[part];
}

/** The text of an operand of `||`. */
export function toConcatText(value: NonNullable<Value>): string {
  if (!(value instanceof JsonText)) return formatText(value);
  throw new SelectError("IncorrectSqlFunctionArgumentType", "|| expects strings.");
}
