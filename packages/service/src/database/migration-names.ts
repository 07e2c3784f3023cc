// Names of migrations, in one of the three styles that are usual: `0001-notes`, `001_notes`, `20261128120000_notes`.

/** The parts of `0001-notes.sqlite.sql`. */
export interface MigrationName {
  /** `0001-notes`. */
  readonly id: string;
  readonly number: number;
  readonly digits: number;
  readonly separator: string;
}

const FILE =
  /^((\d{3}|\d{4}|\d{14})([-_])[a-z0-9]+(?:[-_][a-z0-9]+)*)(?:\.(?:sqlite|postgres))?\.sql$/;
/** Numbers of this length are times. */
const TIME_DIGITS = 14;

/** Reads the name of a file. Throws if it is not one of a migration. */
export function parseMigrationName(file: string): MigrationName {
  const [, id, digits, separator] = FILE.exec(file) ?? [];
  if (id === undefined || digits === undefined || separator === undefined) {
    throw new Error(
      `migrations: ${file} is not a valid name; expected one like 0001-notes.sql, 001_notes.sql or 20261128120000_notes.sql`,
    );
  }
  return { id, number: Number(digits), digits: digits.length, separator };
}

/** Checks the names of a folder in their order. Throws if two differ in style or have one number. */
export function checkMigrationOrder(names: readonly MigrationName[]): void {
  for (const [index, name] of names.entries()) {
    const before = names[index - 1];
    if (before === undefined || before.id === name.id) continue;
    if (before.digits !== name.digits || before.separator !== name.separator) {
      throw new Error(`migrations: ${before.id} and ${name.id} are named in two styles; use one`);
    }
    if (before.number === name.number) {
      throw new Error(`migrations: ${before.id} and ${name.id} have the same number`);
    }
  }
}

/**
 * Checks that no number is left out in front of a migration that is not applied yet: a file may be missing, such as one that
 * was not committed. Times have gaps. Throws an Error that names the number.
 */
export function refuseGaps(ids: readonly string[], applied: ReadonlySet<string>): void {
  const names = ids.map((id) => parseMigrationName(`${id}.sql`));
  for (const [index, { id, number, digits }] of names.entries()) {
    const before = names[index - 1];
    if (before === undefined || digits === TIME_DIGITS || applied.has(id)) continue;
    if (number === before.number + 1) continue;
    const missing = formatNumber(before.number + 1, digits);
    throw new Error(
      `migrations: there is no ${missing} between ${before.id} and ${id}: add the missing file, or give ${id} this number`,
    );
  }
}

/** The file of the next migration in the style of those before it. Throws if there are no numbers left. */
export function nameNextMigration(
  names: readonly MigrationName[],
  words: string,
  now: Date,
): string {
  const last = names.toSorted((one, other) => one.number - other.number).at(-1);
  if (last === undefined) return `0001-${words}.sql`;
  const { digits, separator, number } = last;
  const text = separator === "_" ? words.replaceAll("-", "_") : words;
  const next = digits === TIME_DIGITS ? Math.max(readTime(now), number + 1) : number + 1;
  const formatted = formatNumber(next, digits);
  if (formatted.length > digits) {
    throw new Error(`migrations: there is no number of ${digits} digits after ${last.id}`);
  }
  return `${formatted}${separator}${text}.sql`;
}

function formatNumber(number: number, digits: number): string {
  return String(number).padStart(digits, "0");
}

/** `20261128120000` of a time, in UTC. */
function readTime(time: Date): number {
  return Number(time.toISOString().replaceAll(/\D/g, "").slice(0, TIME_DIGITS));
}
