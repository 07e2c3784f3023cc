// Cron expressions with five fields, in UTC: minute, hour, day of month, month, day of week.

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly words?: readonly string[];
}

/** A parsed expression. */
export interface Cron {
  /** The first matching minute after `afterMs`, in ms since 1970. */
  next(afterMs: number): number;
}

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: readonly Field[] = [
  { name: "minute", min: 0, max: 59 },
  { name: "hour", min: 0, max: 23 },
  { name: "day of month", min: 1, max: 31 },
  { name: "month", min: 1, max: 12, words: MONTHS },
  { name: "day of week", min: 0, max: 7, words: DAYS },
];
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** 29 February occurs at least once in eight years. */
const DAYS_AHEAD_MAX = 8 * 366 + 1;

/**
 * Parses an expression such as `0 3 * * mon-fri`: lists, ranges, steps, and names of months and days; 0 and 7 are Sunday.
 * If both days are restricted, either is sufficient, as in crontab(5). Throws a SyntaxError that names the invalid field.
 */
export function parseCron(text: string): Cron {
  const parts = text.trim().split(/\s+/);
  if (parts.length !== FIELDS.length) {
    throw new SyntaxError(
      `every "${text}": expected a duration like 5m, or five cron fields (minute hour day month weekday)`,
    );
  }
  const [minutes, hours, days, months, weekdays] = parts.map((part, index) =>
    parseField(part, FIELDS[index]!, text),
  ) as [Set<number>, Set<number>, Set<number>, Set<number>, Set<number>];
  if (weekdays.has(7)) weekdays.add(0);
  const isEither = !parts[2]!.startsWith("*") && !parts[4]!.startsWith("*");
  const matchesDay = (date: Date): boolean => {
    if (!months.has(date.getUTCMonth() + 1)) return false;
    const ofMonth = days.has(date.getUTCDate());
    const ofWeek = weekdays.has(date.getUTCDay());
    return isEither ? ofMonth || ofWeek : ofMonth && ofWeek;
  };
  const next = (afterMs: number): number => {
    const startMs = (Math.floor(afterMs / MINUTE_MS) + 1) * MINUTE_MS;
    let dayMs = Math.floor(startMs / DAY_MS) * DAY_MS;
    for (let day = 0; day <= DAYS_AHEAD_MAX; day++, dayMs += DAY_MS) {
      if (!matchesDay(new Date(dayMs))) continue;
      const found = findMinute(dayMs, startMs, hours, minutes);
      if (found !== undefined) return found;
    }
    throw new RangeError(`every "${text}": no date matches`);
  };
  // Finds expressions such as 31 February when they are declared.
  next(0);
  return { next };
}

function findMinute(
  dayMs: number,
  startMs: number,
  hours: ReadonlySet<number>,
  minutes: ReadonlySet<number>,
): number | undefined {
  for (let minute = 0; minute < 1_440; minute++) {
    const atMs = dayMs + minute * MINUTE_MS;
    if (atMs < startMs || !hours.has(Math.floor(minute / 60))) continue;
    if (minutes.has(minute % 60)) return atMs;
  }
  return undefined;
}

function parseField(part: string, field: Field, text: string): Set<number> {
  const values = new Set<number>();
  for (const item of part.toLowerCase().split(",")) {
    const [range = "", stepText, ...more] = item.split("/");
    const step = stepText === undefined ? 1 : Number(stepText);
    const bounds = readRange(range, field, stepText !== undefined);
    const isStep = stepText === undefined || /^\d{1,2}$/.test(stepText);
    if (bounds === undefined || !isStep || step < 1 || more.length > 0) {
      const { name, min, max } = field;
      throw new SyntaxError(
        `every "${text}": "${item}" is not a valid ${name}; expected ${min}-${max}, *, a list, a range or a step`,
      );
    }
    for (let value = bounds[0]; value <= bounds[1]; value += step) values.add(value);
  }
  return values;
}

function readRange(
  range: string,
  field: Field,
  hasStep: boolean,
): [first: number, last: number] | undefined {
  const { min, max } = field;
  if (range === "*") return [min, field.words === DAYS ? 6 : max];
  const ends = range.split("-").map((end) => readValue(end, field));
  const [first, last = hasStep ? max : first] = ends;
  if (ends.length > 2 || first === undefined || last === undefined) return undefined;
  return first >= min && last <= max && first <= last ? [first, last] : undefined;
}

function readValue(text: string, { words, min }: Field): number | undefined {
  const word = words?.indexOf(text) ?? -1;
  if (word !== -1) return word + (words === MONTHS ? min : 0);
  return /^\d{1,2}$/.test(text) ? Number(text) : undefined;
}
