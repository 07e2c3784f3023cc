// Values in questions: numbers, sizes, periods, days, keys and folders.
import type { ValueReader, Word } from "./words.ts";

const NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split(" ");
const UNITS: Readonly<Record<string, number>> = {
  b: 1,
  byte: 1,
  bytes: 1,
  kb: 1e3,
  kilobyte: 1e3,
  kilobytes: 1e3,
  kib: 1024,
  mb: 1e6,
  megabyte: 1e6,
  megabytes: 1e6,
  mib: 1024 ** 2,
  gb: 1e9,
  gigabyte: 1e9,
  gigabytes: 1e9,
  gib: 1024 ** 3,
  tb: 1e12,
  terabyte: 1e12,
  terabytes: 1e12,
  tib: 1024 ** 4,
};
const DAY_MS = 86_400_000;
const PERIODS: Readonly<Record<string, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 30 * DAY_MS,
  year: 365 * DAY_MS,
};
const MONTHS =
  "january february march april may june july august september october november december".split(
    " ",
  );
const AMOUNT = /^(\d{1,15}(?:\.\d{1,6})?)([a-z]{0,9})$/;
const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const DAY = /^(\d{1,2})(?:st|nd|rd|th)?$/;
const YEAR = /^(?:19|20)\d\d$/;

/** Readers of values by their names in patterns. */
export const READERS: Readonly<Record<string, ValueReader>> = {
  number: (words, at) => {
    const number = readNumber(words[at]);
    return number === undefined ? undefined : { value: number, length: 1 };
  },
  /** A number with a unit of bytes, which is decimal for MB and binary for MiB. */
  size: (words, at) => {
    const [, digits, unit] = AMOUNT.exec(words[at]?.text ?? "") ?? [];
    const number = digits === undefined ? readNumber(words[at]) : Number(digits);
    if (number === undefined) return undefined;
    const own = unit === undefined || unit === "" ? undefined : UNITS[unit];
    if (own !== undefined) return { value: Math.round(number * own), length: 1 };
    const next = unit === undefined || unit === "" ? UNITS[words[at + 1]?.text ?? ""] : undefined;
    return next === undefined ? undefined : { value: Math.round(number * next), length: 2 };
  },
  /** Milliseconds: "7 days", or "week" for one. */
  period: (words, at) => {
    const number = readNumber(words[at]);
    const unit = words[at + (number === undefined ? 0 : 1)]?.text ?? "";
    const ms = PERIODS[unit] ?? PERIODS[unit.replace(/s$/, "")];
    if (ms === undefined) return undefined;
    return { value: (number ?? 1) * ms, length: number === undefined ? 1 : 2 };
  },
  /** The start of a day in UTC, epoch ms. */
  date: readDate,
  /** The start of a month or a year, and its end. */
  span: (words, at) => {
    const month = findMonth(words[at]);
    const text = month === undefined ? words[at]?.text : words[at + 1]?.text;
    if (text === undefined || !YEAR.test(text)) return undefined;
    const year = Number(text);
    const from = Date.UTC(year, month ?? 0);
    const to = month === undefined ? Date.UTC(year + 1, 0) : Date.UTC(year, month + 1);
    return { value: `${from} ${to}`, length: month === undefined ? 1 : 2 };
  },
  /** A text, as it was written. */
  word: (words, at) => {
    const word = words[at];
    if (word === undefined || word.text === ":" || word.text === "=") return undefined;
    return { value: word.written, length: 1 };
  },
  quoted: (words, at) => {
    const word = words[at];
    return word?.isQuoted === true ? { value: word.written, length: 1 } : undefined;
  },
  /** A key: quoted, or with a slash or a dot. */
  key: (words, at) => {
    const word = words[at];
    if (word === undefined) return undefined;
    const isKey = word.isQuoted || /[/.]/.test(word.written.slice(0, -1));
    return isKey ? { value: word.written, length: 1 } : undefined;
  },
  /** A folder, with its slash. */
  folder: (words, at) => {
    const word = words[at];
    if (word === undefined || word.written === "") return undefined;
    return { value: addSlash(word.written), length: 1 };
  },
  /** A folder that its slash tells from other words. */
  path: (words, at) => {
    const word = words[at];
    if (word === undefined || !word.written.includes("/")) return undefined;
    return { value: addSlash(word.written), length: 1 };
  },
  /** `.log` or `*.log`, without the dot. */
  suffix: (words, at) => {
    const [, suffix] = /^\*?\.([a-z0-9]{1,12})$/.exec(words[at]?.text ?? "") ?? [];
    return suffix === undefined ? undefined : { value: suffix, length: 1 };
  },
};

function addSlash(written: string): string {
  const path = written.startsWith("/") ? written.slice(1) : written;
  return path.endsWith("/") ? path : `${path}/`;
}

function readNumber(word: Word | undefined): number | undefined {
  if (word === undefined || word.isQuoted) return undefined;
  if (/^\d{1,9}$/.test(word.text)) return Number(word.text);
  const named = NUMBERS.indexOf(word.text);
  return named === -1 ? undefined : named;
}

function findMonth(word: Word | undefined): number | undefined {
  const text = word?.text ?? "";
  if (text.length < 3) return undefined;
  const found = MONTHS.findIndex(
    (name) => name === text || (text.length === 3 && name.startsWith(text)),
  );
  return found === -1 ? undefined : found;
}

function readDate(words: readonly (Word | undefined)[], at: number): ReturnType<ValueReader> {
  const [, year, month, day] = DATE.exec(words[at]?.text ?? "") ?? [];
  if (year !== undefined) return toDay(Number(year), Number(month) - 1, Number(day), 1);
  // "March 1 2026", "1 March 2026", "1st of March 2026"
  const first = findMonth(words[at]);
  if (first !== undefined) return joinDate(words[at + 1], first, words[at + 2], 3);
  const of = words[at + 1]?.text === "of" ? 1 : 0;
  const second = findMonth(words[at + 1 + of]);
  return second === undefined ? undefined : joinDate(words[at], second, words[at + 2 + of], 3 + of);
}

function joinDate(day: Word | undefined, month: number, year: Word | undefined, length: number) {
  const [, digits] = DAY.exec(day?.text ?? "") ?? [];
  if (digits === undefined || year === undefined || !YEAR.test(year.text)) return undefined;
  return toDay(Number(year.text), month, Number(digits), length);
}

function toDay(year: number, month: number, day: number, length: number): ReturnType<ValueReader> {
  const value = Date.UTC(year, month, day);
  const date = new Date(value);
  // A day beyond the end of its month would be one of the next.
  const isDay = date.getUTCMonth() === month && date.getUTCDate() === day;
  return isDay ? { value, length } : undefined;
}
