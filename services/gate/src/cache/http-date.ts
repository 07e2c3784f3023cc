// Dates of HTTP in their three forms (RFC 9110 section 5.6.7). Others are no dates, however a program might read them.

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const MONTH = MONTHS.join("|");
const TIME = "(\\d{2}):(\\d{2}):(\\d{2})";
const DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const LONG_DAY = "(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)";
/** IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`. */
const FIXED = new RegExp(`^${DAY}, (\\d{2}) (${MONTH}) (\\d{4}) ${TIME} GMT$`);
/** RFC 850: `Sunday, 06-Nov-94 08:49:37 GMT`. */
const OBSOLETE = new RegExp(`^${LONG_DAY}, (\\d{2})-(${MONTH})-(\\d{2}) ${TIME} GMT$`);
/** asctime of C: `Sun Nov  6 08:49:37 1994`. */
const ASCTIME = new RegExp(`^${DAY} (${MONTH}) ([ \\d]\\d) ${TIME} (\\d{4})$`);
const YEARS_AHEAD_MAX = 50;

/** A date in ms since 1970; `undefined` for text that is not one. `nowMs` decides the century of two digits. */
export function parseHttpDate(text: string, nowMs: number): number | undefined {
  const fixed = FIXED.exec(text);
  if (fixed !== null) {
    const [, day, month, year, ...time] = fixed;
    return makeTime(Number(year), month, day, time);
  }
  const obsolete = OBSOLETE.exec(text);
  if (obsolete !== null) {
    const [, day, month, year, ...time] = obsolete;
    return makeTime(findYear(Number(year), nowMs), month, day, time);
  }
  const [, month, day, hour, minute, second, year] = ASCTIME.exec(text) ?? [];
  return month === undefined
    ? undefined
    : makeTime(Number(year), month, day, [hour!, minute!, second!]);
}

/** A year that seems to be more than 50 years ahead is the last one with these digits. */
function findYear(digits: number, nowMs: number): number {
  const current = new Date(nowMs).getUTCFullYear();
  const year = current - (current % 100) + digits;
  return year > current + YEARS_AHEAD_MAX ? year - 100 : year;
}

function makeTime(
  year: number,
  month: string | undefined,
  day: string | undefined,
  time: readonly string[],
): number | undefined {
  const [hour = 0, minute = 0, second = 0] = time.map(Number);
  // The second 60 is a leap second.
  if (hour > 23 || minute > 59 || second > 60) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, MONTHS.indexOf(month ?? ""), Number(day));
  // 30 February would be in March.
  if (date.getUTCDate() !== Number(day)) return undefined;
  return date.setUTCHours(hour, minute, second);
}
