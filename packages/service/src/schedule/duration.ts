// Intervals of schedules: `30s`, `5m`, `2h`, `1d`.

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
const INTERVAL_MIN_MS = 100;
const INTERVAL_MAX_MS = 366 * 86_400_000;

/** Parses an interval to ms; undefined if the text is not one. Throws a RangeError below 100 ms and above 366 days. */
export function parseDuration(text: string): number | undefined {
  const found = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text);
  if (found === null) return undefined;
  const ms = Math.round(Number(found[1]) * UNITS_MS[found[2]!]!);
  if (ms >= INTERVAL_MIN_MS && ms <= INTERVAL_MAX_MS) return ms;
  throw new RangeError(`every ${text}: an interval must be from 100ms to 366d`);
}
