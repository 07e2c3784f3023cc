// The times of signatures: `YYYYMMDDTHHMMSSZ`, and those of headers such as Date.

const BASIC = /^\d{8}T\d{6}Z$/;
const ZERO = 48;

/** Parses a basic ISO 8601 time to ms since 1970; `undefined` if it is invalid. */
export function parseBasicTime(text: string): number | undefined {
  if (!BASIC.test(text)) return undefined;
  const year = 100 * readTwo(text, 0) + readTwo(text, 2);
  const [month, day] = [readTwo(text, 4), readTwo(text, 6)];
  const [hour, minute, second] = [readTwo(text, 9), readTwo(text, 11), readTwo(text, 13)];
  // Date.UTC reads the year 13 as 1913, and rolls 20130231 over into March.
  if (year < 100 || month < 1 || month > 12 || day < 1 || day > countDays(year, month)) {
    return undefined;
  }
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

function readTwo(text: string, at: number): number {
  return 10 * (text.charCodeAt(at) - ZERO) + text.charCodeAt(at + 1) - ZERO;
}

function countDays(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

let formatted = { second: Number.NaN, text: "" };

/** The basic ISO 8601 form of a time. */
export function formatBasicTime(epochMs: number): string {
  const second = Math.floor(epochMs / 1_000);
  // Most requests are signed in the second of the one before.
  if (second !== formatted.second) {
    const text = new Date(second * 1_000).toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
    formatted = { second, text };
  }
  return formatted.text;
}
