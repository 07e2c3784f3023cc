// The times of signatures: `YYYYMMDDTHHMMSSZ`, and those of headers such as Date.

const BASIC = /^\d{8}T\d{6}Z$/;

/** Parses a basic ISO 8601 time to ms since 1970; `undefined` if it is invalid. */
export function parseBasicTime(text: string): number | undefined {
  if (!BASIC.test(text)) return undefined;
  const read = (start: number, end: number) => Number(text.slice(start, end));
  const [year, month, day] = [read(0, 4), read(4, 6) - 1, read(6, 8)];
  const [hour, minute, second] = [read(9, 11), read(11, 13), read(13, 15)];
  const time = new Date(Date.UTC(year, month, day, hour, minute, second));
  // 20130231 would roll over into March, the year 13 into 1913.
  const isSame =
    time.getUTCFullYear() === year &&
    time.getUTCMonth() === month &&
    time.getUTCDate() === day &&
    time.getUTCHours() === hour &&
    time.getUTCMinutes() === minute &&
    time.getUTCSeconds() === second;
  return isSame ? time.getTime() : undefined;
}

/** The basic ISO 8601 form of a time. */
export function formatBasicTime(epochMs: number): string {
  return new Date(epochMs).toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
}
