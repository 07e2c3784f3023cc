// Numbers, times and sizes as the console shows them.
import { language, t } from "../words/words.ts";

const UNITS = ["B", "KB", "MB", "GB", "TB", "PB"];
const DAY_MS = 86_400_000;

/** `1284` → `1 284`, with no-break spaces. */
export function formatNumber(value: number | null | undefined, digits?: number): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const shown = digits ?? (Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : 1);
  const [whole = "0", part] = Math.abs(value).toFixed(shown).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, "\u00A0");
  const point = language() === "de" ? "," : ".";
  return `${value < 0 ? "−" : ""}${grouped}${part === undefined ? "" : point + part}`;
}

/** `1284` → `1.3k`. */
export function formatShort(value: number | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (value >= 1e6) return `${formatNumber(value / 1e6, 1)}M`;
  if (value >= 1e3) return `${formatNumber(value / 1e3, 1)}k`;
  return formatNumber(value, value >= 10 || Number.isInteger(value) ? 0 : 1);
}

/** A size in bytes as a number and a unit, steps of 1000. */
function splitBytes(bytes: number | null | undefined): [number: string, unit: string] {
  if (bytes === null || bytes === undefined) return ["–", ""];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return [formatNumber(value, unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2), UNITS[unit]!];
}

/** A size in bytes: `22.4 GB`. */
export function formatBytes(bytes: number | null | undefined): string {
  const [number, unit] = splitBytes(bytes);
  return unit === "" ? number : `${number}\u00A0${unit}`;
}

/** A value of a figure and its unit, as the strip and the ledger show them. */
export function splitFigure(value: number | null | undefined, unit: string): [string, string] {
  if (value === null || value === undefined) return ["–", ""];
  if (unit === "bytes") return splitBytes(value);
  if (unit === "bytes/s") {
    const [number, bytes] = splitBytes(value);
    return [number, `${bytes}/s`];
  }
  if (unit === "ratio") return [formatNumber(value * 100, value < 0.1 ? 2 : 0), "%"];
  if (unit === "1/s") return [formatNumber(value, value > 0 && value < 10 ? 1 : 0), "/s"];
  if (unit === "ms") return [formatNumber(value, value < 10 ? 1 : 0), "ms"];
  if (unit === "cores") return [formatNumber(value, 2), t("cores")];
  return [formatNumber(value), unit];
}

/** Time of day, local; with milliseconds for rows of a log. */
export function formatTime(time: string | number, withMs = false): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "–";
  const pad = (value: number, width = 2): string => String(value).padStart(width, "0");
  const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  return withMs ? `${clock}.${pad(date.getMilliseconds(), 3)}` : clock;
}

/** Date and time in full. */
export function formatMoment(time: string | number | null | undefined): string {
  if (time === null || time === undefined || time === "") return "–";
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "–";
  return date.toLocaleString(language() === "de" ? "de-DE" : "en-GB");
}

/** Date for today's times only the time; in full for tooltips. */
export function formatDate(time: string | number | null | undefined): string {
  if (time === null || time === undefined || time === "") return "–";
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "–";
  const now = new Date();
  if (date.toDateString() === now.toDateString()) return formatTime(time);
  const isYear = date.getFullYear() === now.getFullYear();
  return date.toLocaleDateString(language() === "de" ? "de-DE" : "en-GB", {
    day: "numeric",
    month: "short",
    ...(isYear ? {} : { year: "numeric" }),
  });
}

/** Time since then, in one unit: `14 min`. */
export function formatAgo(time: string | number | null | undefined): string {
  if (time === null || time === undefined || time === "") return t("never");
  return formatDuration(Math.max(0, Date.now() - new Date(time).getTime()));
}

/** A duration in ms, in one unit. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}\u00A0ms`;
  if (ms < 60_000) return `${Math.floor(ms / 1000)}\u00A0s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)}\u00A0min`;
  if (ms < DAY_MS) return `${Math.floor(ms / 3_600_000)}\u00A0h`;
  return `${Math.floor(ms / DAY_MS)}\u00A0d`;
}

/** Initials of a name for its round mark. */
export function formatInitials(name: string): string {
  const words = name.split(/[\s._@-]+/).filter((word) => word !== "");
  const letters = words.length > 1 ? `${words[0]![0]}${words[1]![0]}` : name.slice(0, 2);
  return letters.toUpperCase();
}

/** Text of JSON with indentation, or the text itself if it is not JSON. */
export function formatJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Orders times of RFC 3339 in UTC, as services write them. Other characters than those have no order. */
export function compareTimes(one: string, other: string): number {
  return Date.parse(one) - Date.parse(other);
}
