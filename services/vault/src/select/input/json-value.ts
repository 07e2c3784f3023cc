// Values and members of JSON in bytes that have been checked.
import { SelectError } from "../language/fault.ts";
import { requireInteger } from "../language/arithmetic.ts";
import type { PathStep } from "../language/syntax.ts";
import { JsonText, toDouble, type Value } from "../language/value.ts";
import { malformed, skipSpace, skipString, skipValue } from "./json-scan.ts";
import { matchesName } from "./row-reader.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** The place of a value in bytes; `start` is -1 if it is missing. */
export interface Span {
  start: number;
  end: number;
}

/**
 * Calls `visit` with the name and the value of each member of the object at `start`, and checks it on the way. Returns the end
 * of the object. Throws JSONParsingError, also if it does not end before `end`.
 */
export function visitMembers(
  bytes: Buffer,
  start: number,
  end: number,
  visit: (nameStart: number, nameEnd: number, valueStart: number, valueEnd: number) => void,
): number {
  let at = skipSpace(bytes, start + 1, end);
  if (bytes[at] === CLOSE_OBJECT) return at + 1;
  for (;;) {
    const nameStart = skipSpace(bytes, at, end);
    if (nameStart >= end || bytes[nameStart] !== QUOTE) throw malformed("a name is missing");
    const nameEnd = skipString(bytes, nameStart, end);
    at = nameEnd < 0 ? end : skipSpace(bytes, nameEnd, end);
    if (at >= end || bytes[at] !== COLON) throw malformed("no colon after a name");
    const valueStart = skipSpace(bytes, at + 1, end);
    const valueEnd = skipValue(bytes, valueStart, end, true);
    visit(nameStart, nameEnd, valueStart, valueEnd);
    at = skipSpace(bytes, valueEnd, end);
    if (at < end && bytes[at] === CLOSE_OBJECT) return at + 1;
    if (at >= end || bytes[at] !== COMMA) throw malformed("no comma between members");
    at += 1;
  }
}

/** Moves a span to the part that a step names. Throws AmbiguousFieldName. */
export function followStep(bytes: Buffer, span: Span, step: PathStep): void {
  const { start, end } = span;
  if (start < 0) return;
  span.start = -1;
  if (step.kind === "index") {
    if (bytes[start] === OPEN_LIST) findElement(bytes, start, end, step.index, span);
    return;
  }
  if (bytes[start] !== OPEN_OBJECT) return;
  let found: string | undefined;
  visitMembers(bytes, start, end, (nameStart, nameEnd, valueStart, valueEnd) => {
    const name = readString(bytes, nameStart, nameEnd);
    if (!matchesName(step, name)) return;
    requireUnambiguous(found, name);
    found = name;
    span.start = valueStart;
    span.end = valueEnd;
  });
}

/** Throws AmbiguousFieldName if a name was matched by another spelling before. */
export function requireUnambiguous(before: string | undefined, name: string): void {
  if (before === undefined || before === name) return;
  throw new SelectError(
    "AmbiguousFieldName",
    `The name matches ${JSON.stringify(before)} and ${JSON.stringify(name)}.`,
  );
}

function findElement(bytes: Buffer, start: number, end: number, index: number, span: Span): void {
  let at = skipSpace(bytes, start + 1, end);
  if (bytes[at] === CLOSE_LIST) return;
  for (let position = 0; ; position += 1) {
    at = skipSpace(bytes, at, end);
    const valueEnd = skipValue(bytes, at, end, true);
    if (position === index) {
      span.start = at;
      span.end = valueEnd;
      return;
    }
    at = skipSpace(bytes, valueEnd, end);
    if (bytes[at] !== COMMA) return;
    at += 1;
  }
}

/** The text of a string, which includes its quotes. */
export function readString(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString("utf8", start + 1, end - 1);
  if (!text.includes("\\")) return text;
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch (error) {
    throw new SelectError("JSONParsingError", `The JSON could not be parsed: ${String(error)}.`);
  }
}

/** The value in a span. */
export function readValue(bytes: Buffer, start: number, end: number): Value {
  if (start < 0) return undefined;
  switch (bytes[start]) {
    case QUOTE:
      return readString(bytes, start, end);
    case 0x74:
      return true;
    case 0x66:
      return false;
    case 0x6e:
      return null;
    case OPEN_OBJECT:
    case OPEN_LIST:
      return new JsonText(readText(bytes, start, end));
    default:
      return readNumber(bytes, start, end);
  }
}

/** The value in a span with its text. */
export function readCell(bytes: Buffer, start: number, end: number): Value {
  if (start < 0) return undefined;
  return new JsonText(readText(bytes, start, end));
}

function readNumber(bytes: Buffer, start: number, end: number): Value {
  if (end - start <= 15) {
    let value = 0;
    let at = start;
    for (; at < end; at += 1) {
      const digit = bytes[at]! - 0x30;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
    }
    if (at === end) return value;
  }
  const text = bytes.toString("latin1", start, end);
  if (!/^-?\d+$/.test(text) || text.length > 20) return toDouble(Number(text));
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value ? requireInteger(value) : toDouble(Number(value));
}

const BREAK = /[\n\r]/;

/** The text of a value on one line. */
export function readText(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString("utf8", start, end);
  return BREAK.test(text) ? compact(text) : text;
}

// Line breaks are white space in JSON: strings cannot contain them.
function compact(text: string): string {
  return text.replaceAll(
    /("(?:[^"\\]|\\.)*")|\s+/g,
    (_, string: string | undefined) => string ?? "",
  );
}
