// The times that signatures name: `YYYYMMDDTHHMMSSZ`, and what fields such as Date say.

const BASIC = /^(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z$/;

/** Milliseconds since 1970 of a basic ISO 8601 time; undefined where it is none. */
export function parseBasicTime(text: string): number | undefined {
  const match = BASIC.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second] = match.map(Number);
  const ms = Date.UTC(year!, month! - 1, day, hour, minute, second);
  // 20130231 rolls over into March: that is not what was written.
  return formatBasicTime(ms) === text ? ms : undefined;
}

/** The basic ISO 8601 form of a time. */
export function formatBasicTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
}
