// Timestamps with the precision that they were written with, as in Ion: `2010T`, `2010-01T`, `2010-01-01T03:04:05.006+07:08`.

/** Parts of dates in DATE_ADD, DATE_DIFF and EXTRACT. */
export const DATE_PARTS = ["year", "month", "day", "hour", "minute", "second"] as const;
export type DatePart = (typeof DATE_PARTS)[number];

/** The finest part that a timestamp has. */
export type Precision = "year" | "month" | "day" | "minute" | "second";

const PRECISIONS: readonly Precision[] = ["year", "month", "day", "minute", "second"];
const MINUTE_MS = 60_000;
const PART_MS = { day: 86_400_000, hour: 3_600_000, minute: MINUTE_MS, second: 1_000 };
const YEAR_MAX = 9_999;
const DIGITS_MAX = 9;
const ISO =
  /^(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?:T(?:(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?)?)?$/;

/** The fields of a timestamp at its own offset. */
export interface DateFields {
  year: number;
  /** From 1. */
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  /** Of the second. */
  nanos: number;
}

export class Timestamp {
  /** Ms since 1970, UTC. */
  readonly epochMs: number;
  /** Nanoseconds below the millisecond. */
  readonly nanos: number;
  /** From UTC; `undefined` if it is unknown, and taken for 0. */
  readonly offsetMinutes: number | undefined;
  readonly precision: Precision;
  /** Digits of the fraction of the second. */
  readonly digits: number;

  constructor(
    epochMs: number,
    nanos: number,
    offsetMinutes: number | undefined,
    precision: Precision,
    digits: number,
  ) {
    this.epochMs = epochMs;
    this.nanos = nanos;
    this.offsetMinutes = offsetMinutes;
    this.precision = precision;
    this.digits = digits;
  }

  get fields(): DateFields {
    const local = new Date(this.epochMs + (this.offsetMinutes ?? 0) * MINUTE_MS);
    return {
      year: local.getUTCFullYear(),
      month: local.getUTCMonth() + 1,
      day: local.getUTCDate(),
      hour: local.getUTCHours(),
      minute: local.getUTCMinutes(),
      second: local.getUTCSeconds(),
      nanos: local.getUTCMilliseconds() * 1e6 + this.nanos,
    };
  }

  /** The order in time; precisions do not matter. */
  compare(other: Timestamp): number {
    return this.epochMs - other.epochMs || this.nanos - other.nanos;
  }

  /** The text in the form of Ion, which is ISO 8601 with a `T` after dates. */
  toString(): string {
    const { year, month, day, hour, minute, second, nanos } = this.fields;
    const level = PRECISIONS.indexOf(this.precision);
    let text = pad(year, 4);
    if (level >= 1) text += `-${pad(month, 2)}`;
    if (level >= 2) text += `-${pad(day, 2)}`;
    if (level < 3) return level === 2 ? text : `${text}T`;
    text += `T${pad(hour, 2)}:${pad(minute, 2)}`;
    if (level >= 4) text += `:${pad(second, 2)}`;
    if (level >= 4 && this.digits > 0) text += `.${pad(nanos, 9).slice(0, this.digits)}`;
    return text + formatOffset(this.offsetMinutes);
  }

  /** The quantity of a part added; the precision grows to that part. `undefined` outside of the years 1 to 9999. */
  add(part: DatePart, quantity: number): Timestamp | undefined {
    const level = PRECISIONS.indexOf(part === "hour" ? "minute" : part);
    const precision = PRECISIONS[Math.max(level, PRECISIONS.indexOf(this.precision))]!;
    let epochMs: number;
    if (part === "year" || part === "month") epochMs = this.#addMonths(part, quantity);
    else epochMs = this.epochMs + quantity * PART_MS[part];
    const sum = new Timestamp(epochMs, this.nanos, this.offsetMinutes, precision, this.digits);
    const { year } = sum.fields;
    return year >= 1 && year <= YEAR_MAX ? sum : undefined;
  }

  // The day is the last of the month if it does not have that many.
  #addMonths(part: "year" | "month", quantity: number): number {
    const { year, month, day } = this.fields;
    const months = year * 12 + (month - 1) + (part === "year" ? quantity * 12 : quantity);
    const toYear = Math.floor(months / 12);
    const toMonth = months - toYear * 12;
    const days = new Date(0);
    days.setUTCFullYear(toYear, toMonth + 1, 0);
    const local = new Date(this.epochMs + (this.offsetMinutes ?? 0) * MINUTE_MS);
    local.setUTCFullYear(toYear, toMonth, Math.min(day, days.getUTCDate()));
    return local.getTime() - (this.offsetMinutes ?? 0) * MINUTE_MS;
  }

  /** The number of whole parts from this to the other timestamp. */
  measure(part: DatePart, to: Timestamp): number {
    if (part !== "year" && part !== "month") {
      const ms = to.epochMs - this.epochMs + Math.sign(to.nanos - this.nanos) * 1e-6;
      return Math.trunc(ms / PART_MS[part]) + 0;
    }
    const [from, until] = [this.fields, to.fields];
    let months = (until.year - from.year) * 12 + (until.month - from.month);
    const rest = restOfMonth(until) - restOfMonth(from);
    if (months > 0 && rest < 0) months -= 1;
    if (months < 0 && rest > 0) months += 1;
    return part === "month" ? months : Math.trunc(months / 12) + 0;
  }
}

function restOfMonth({ day, hour, minute, second, nanos }: DateFields): number {
  return (((day * 24 + hour) * 60 + minute) * 60 + second) * 1e3 + nanos / 1e6;
}

/** Reads a timestamp in the form of Ion; `undefined` if it is not one. */
export function parseTimestamp(text: string): Timestamp | undefined {
  const match = ISO.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction, offset] = match;
  // A year or a month ends in T, so that it is no number.
  if (day === undefined && !text.endsWith("T")) return undefined;
  if (hour !== undefined && day === undefined) return undefined;
  const precision =
    second !== undefined
      ? "second"
      : hour !== undefined
        ? "minute"
        : day !== undefined
          ? "day"
          : month !== undefined
            ? "month"
            : "year";
  const fields: DateFields = {
    year: Number(year),
    month: Number(month ?? 1),
    day: Number(day ?? 1),
    hour: Number(hour ?? 0),
    minute: Number(minute ?? 0),
    second: Number(second ?? 0),
    nanos: Number((fraction ?? "").padEnd(DIGITS_MAX, "0")),
  };
  const offsetMinutes = parseOffset(offset);
  if (offset !== undefined && offset !== "-00:00" && offsetMinutes === undefined) return undefined;
  return createTimestamp(fields, offsetMinutes, precision, fraction?.length ?? 0);
}

// `-00:00` is an unknown offset (RFC 3339 section 4.3).
function parseOffset(text: string | undefined): number | undefined {
  if (text === undefined || text === "-00:00") return undefined;
  if (text === "Z") return 0;
  const [hours, minutes] = [Number(text.slice(1, 3)), Number(text.slice(4, 6))];
  if (hours > 23 || minutes > 59) return undefined;
  return (text.startsWith("-") ? -1 : 1) * (hours * 60 + minutes);
}

/** The timestamp of fields at an offset; `undefined` if there is no such date. */
export function createTimestamp(
  fields: DateFields,
  offsetMinutes: number | undefined,
  precision: Precision,
  digits: number,
): Timestamp | undefined {
  const { year, month, day, hour, minute, second, nanos } = fields;
  if (year < 1 || hour > 23 || minute > 59 || second > 59) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  date.setUTCHours(hour, minute, second, Math.floor(nanos / 1e6));
  const epochMs = date.getTime() - (offsetMinutes ?? 0) * MINUTE_MS;
  return new Timestamp(epochMs, nanos % 1e6, offsetMinutes, precision, digits);
}

/** A timestamp in UTC with milliseconds. */
export function fromEpochMs(epochMs: number): Timestamp {
  return new Timestamp(epochMs, 0, 0, "second", 3);
}

function formatOffset(minutes: number | undefined): string {
  if (minutes === undefined) return "-00:00";
  if (minutes === 0) return "Z";
  const size = Math.abs(minutes);
  return `${minutes < 0 ? "-" : "+"}${pad(Math.floor(size / 60), 2)}:${pad(size % 60, 2)}`;
}

function pad(value: number, length: number): string {
  return String(value).padStart(length, "0");
}
