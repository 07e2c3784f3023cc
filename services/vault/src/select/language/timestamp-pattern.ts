// Format patterns of TO_STRING and TO_TIMESTAMP ("Date functions" in the SQL reference of S3 Select).
import { SelectError } from "./fault.ts";
import { createTimestamp, type DateFields, type Precision, type Timestamp } from "./timestamp.ts";

const MONTHS =
  "January February March April May June July August September October November December".split(
    " ",
  );
const PATTERN_LENGTH_MAX = 1_024;

/** A piece of a pattern: a literal text, or a symbol with the number of its letters. */
interface Piece {
  readonly symbol: string;
  readonly length: number;
  readonly text: string;
}

/** Numbers of letters that each symbol may have. */
const LENGTHS: Readonly<Record<string, readonly number[]>> = {
  y: [1, 2, 4],
  M: [1, 2, 3, 4, 5],
  d: [1, 2],
  a: [1],
  h: [1, 2],
  H: [1, 2],
  m: [1, 2],
  s: [1, 2],
  S: [1, 2, 3, 4, 5, 6, 7, 8, 9],
  n: [1],
  X: [1, 2, 3, 4, 5],
  x: [1, 2, 3, 4, 5],
};

function readPieces(pattern: string): Piece[] {
  if (pattern.length > PATTERN_LENGTH_MAX) {
    throw new SelectError("EvaluatorInvalidTimestampFormatPattern");
  }
  const pieces: Piece[] = [];
  for (let at = 0; at < pattern.length;) {
    const char = pattern[at]!;
    if (char === "'") {
      const [text, end] = readQuoted(pattern, at);
      pieces.push({ symbol: "", length: 0, text });
      at = end;
    } else if (/[A-Za-z]/.test(char)) {
      let end = at + 1;
      while (pattern[end] === char) end += 1;
      pieces.push(readSymbol(char, end - at));
      at = end;
    } else {
      pieces.push({ symbol: "", length: 0, text: char });
      at += 1;
    }
  }
  return pieces;
}

// Between quotes, and outside, two quotes stand for one.
function readQuoted(pattern: string, start: number): [text: string, end: number] {
  if (pattern[start + 1] === "'") return ["'", start + 2];
  let text = "";
  for (let at = start + 1; at < pattern.length; at += 1) {
    if (pattern[at] !== "'") text += pattern[at];
    else if (pattern[at + 1] !== "'") return [text, at + 1];
    else {
      text += "'";
      at += 1;
    }
  }
  throw new SelectError("EvaluatorUnterminatedTimestampFormatPatternToken");
}

function readSymbol(symbol: string, length: number): Piece {
  const lengths = LENGTHS[symbol];
  if (lengths === undefined) {
    throw new SelectError(
      "EvaluatorInvalidTimestampFormatPatternSymbol",
      `The timestamp format pattern contains the unknown symbol ${symbol}.`,
    );
  }
  if (!lengths.includes(length)) {
    throw new SelectError(
      "EvaluatorInvalidTimestampFormatPatternToken",
      `The timestamp format pattern contains the unknown token ${symbol.repeat(Math.min(length, 20))}.`,
    );
  }
  return { symbol, length, text: "" };
}

/** Compiles a pattern to a formatter. Throws a SelectError for an invalid pattern. */
export function compileFormat(pattern: string): (timestamp: Timestamp) => string {
  const pieces = readPieces(pattern);
  return (timestamp) => {
    const { fields } = timestamp;
    return pieces.map((piece) => formatPiece(piece, fields, timestamp.offsetMinutes ?? 0)).join("");
  };
}

function formatPiece({ symbol, length, text }: Piece, fields: DateFields, offset: number): string {
  switch (symbol) {
    case "":
      return text;
    case "y":
      return length === 2 ? pad(fields.year % 100, 2) : pad(fields.year, length);
    case "M":
      return formatMonth(fields.month, length);
    case "d":
      return pad(fields.day, length);
    case "a":
      return fields.hour < 12 ? "AM" : "PM";
    case "h":
      return pad(fields.hour % 12 === 0 ? 12 : fields.hour % 12, length);
    case "H":
      return pad(fields.hour, length);
    case "m":
      return pad(fields.minute, length);
    case "s":
      return pad(fields.second, length);
    case "S":
      return pad(fields.nanos, 9).slice(0, length);
    case "n":
      return String(fields.nanos);
    default:
      return formatOffset(offset, length, symbol === "X");
  }
}

function formatMonth(month: number, length: number): string {
  if (length <= 2) return pad(month, length);
  const name = MONTHS[month - 1]!;
  if (length === 3) return name.slice(0, 3);
  return length === 4 ? name : name.slice(0, 1);
}

function formatOffset(minutes: number, length: number, allowsZ: boolean): string {
  if (minutes === 0 && allowsZ) return "Z";
  const size = Math.abs(minutes);
  const [hours, rest] = [pad(Math.floor(size / 60), 2), pad(size % 60, 2)];
  const sign = minutes < 0 ? "-" : "+";
  if (length === 1) return rest === "00" ? `${sign}${hours}` : `${sign}${hours}${rest}`;
  return length % 2 === 0 ? `${sign}${hours}${rest}` : `${sign}${hours}:${rest}`;
}

function pad(value: number, length: number): string {
  return String(value).padStart(length, "0");
}

/** The fields that a pattern has read from a text, before they are checked. */
interface Found extends DateFields {
  offset: number | undefined;
  isPm: boolean | undefined;
  precision: Precision;
  digits: number;
}

/** Compiles a pattern to a parser, which returns `undefined` for other texts. Throws a SelectError for an invalid pattern. */
export function compileParse(pattern: string): (text: string) => Timestamp | undefined {
  const pieces = readPieces(pattern);
  requireParsable(pieces);
  const expression = new RegExp(`^${pieces.map(matchPiece).join("")}$`);
  return (text) => {
    if (text.length > PATTERN_LENGTH_MAX) return undefined;
    const match = expression.exec(text);
    if (match === null) return undefined;
    const found: Found = {
      year: 1970,
      month: 1,
      day: 1,
      hour: 0,
      minute: 0,
      second: 0,
      nanos: 0,
      offset: undefined,
      isPm: undefined,
      precision: "year",
      digits: 0,
    };
    const symbols = pieces.filter(({ symbol }) => symbol !== "");
    for (const [index, piece] of symbols.entries()) readField(found, piece, match[index + 1]!);
    if (found.isPm !== undefined) found.hour = (found.hour % 12) + (found.isPm ? 12 : 0);
    return createTimestamp(found, found.offset, found.precision, found.digits);
  };
}

function requireParsable(pieces: readonly Piece[]): void {
  // The first letter of a month names several months.
  if (pieces.some(({ symbol, length }) => symbol === "M" && length === 5)) {
    throw new SelectError("EvaluatorInvalidTimestampFormatPatternSymbolForParsing");
  }
  const isTwelve = pieces.some(({ symbol }) => symbol === "h");
  if (isTwelve !== pieces.some(({ symbol }) => symbol === "a")) {
    throw new SelectError("EvaluatorTimestampFormatPatternHourClockAmPmMismatch");
  }
  // `M` and `m` are different fields, `h` and `H` are not.
  const fields = pieces
    .map(({ symbol }) => (symbol === "m" ? "minute" : symbol.toUpperCase()))
    .filter((one) => one !== "");
  if (new Set(fields).size < fields.length) {
    throw new SelectError("EvaluatorTimestampFormatPatternDuplicateFields");
  }
}

// Each symbol matches a bounded number of characters, so that matching takes linear time.
function matchPiece({ symbol, length, text }: Piece): string {
  switch (symbol) {
    case "":
      return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
    case "y":
      return length === 2 ? "(\\d{2})" : "(\\d{4})";
    case "M":
      if (length <= 2) return length === 1 ? "(\\d{1,2})" : "(\\d{2})";
      return `(${MONTHS.map((name) => (length === 3 ? name.slice(0, 3) : name)).join("|")})`;
    case "a":
      return "(AM|PM|am|pm)";
    case "S":
      return `(\\d{${length}})`;
    case "n":
      return "(\\d{1,9})";
    case "X":
    case "x":
      return "(Z|[+-]\\d{2}(?::?\\d{2})?)";
    default:
      return length === 1 ? "(\\d{1,2})" : "(\\d{2})";
  }
}

const FIELDS: Readonly<Record<string, readonly [keyof DateFields, Precision]>> = {
  d: ["day", "day"],
  h: ["hour", "minute"],
  H: ["hour", "minute"],
  m: ["minute", "minute"],
  s: ["second", "second"],
};
const ORDER: readonly Precision[] = ["year", "month", "day", "minute", "second"];

function readField(found: Found, { symbol, length }: Piece, text: string): void {
  const refine = (precision: Precision): void => {
    if (ORDER.indexOf(precision) > ORDER.indexOf(found.precision)) found.precision = precision;
  };
  if (symbol === "y") {
    // Two digits are the years 1970 to 2069, as in the Java library that S3 uses.
    const year = Number(text);
    found.year = length === 2 ? (year < 70 ? 2000 + year : 1900 + year) : year;
  } else if (symbol === "M") {
    const isNumber = length <= 2;
    found.month = isNumber
      ? Number(text)
      : MONTHS.findIndex((name) => name === text || name.slice(0, 3) === text) + 1;
    refine("month");
  } else if (symbol === "a") {
    found.isPm = text.toUpperCase() === "PM";
  } else if (symbol === "S" || symbol === "n") {
    found.nanos = symbol === "n" ? Number(text) : Number(text.padEnd(9, "0"));
    found.digits = symbol === "n" ? 9 : length;
    refine("second");
  } else if (symbol === "X" || symbol === "x") {
    found.offset = readOffset(text);
  } else {
    const [field, precision] = FIELDS[symbol]!;
    found[field] = Number(text);
    refine(precision);
  }
}

function readOffset(text: string): number {
  if (text === "Z") return 0;
  const digits = text.slice(1).replace(":", "");
  const minutes = Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2) || 0);
  return text.startsWith("-") ? -minutes : minutes;
}
