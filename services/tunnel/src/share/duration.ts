// Durations such as `15m`, `1h` or `7d`.
const UNITS_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Reads a duration of one whole number and one unit (s, m, h, d) in ms; undefined for other text. */
export function readDuration(text: string): number | undefined {
  const [, digits = "", unit = ""] = /^([1-9]\d{0,8})([smhd])$/.exec(text) ?? [];
  const unitMs = UNITS_MS[unit];
  return unitMs === undefined ? undefined : Number(digits) * unitMs;
}
