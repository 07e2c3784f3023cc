// Timestamps of listings, a thousand per page and mostly of one day; and of requests, many in the same millisecond.

const DAY_MS = 86_400_000;

/** Formats times like `Date.prototype.toISOString`, but uses a Date only if the day has changed. */
export class TimestampFormatter {
  #dayStartMs = Number.NaN;
  #day = "";
  #timeMs = Number.NaN;
  #text = "";

  /** ISO 8601 in UTC with milliseconds, from ms since 1970. */
  format(timeMs: number): string {
    if (timeMs === this.#timeMs) return this.#text;
    this.#timeMs = timeMs;
    this.#text = this.#write(timeMs);
    return this.#text;
  }

  #write(timeMs: number): string {
    let ofDayMs = timeMs - this.#dayStartMs;
    // NaN initially.
    if (!(ofDayMs >= 0 && ofDayMs < DAY_MS)) {
      this.#dayStartMs = Math.floor(timeMs / DAY_MS) * DAY_MS;
      this.#day = new Date(this.#dayStartMs).toISOString().slice(0, -"00:00:00.000Z".length);
      ofDayMs = timeMs - this.#dayStartMs;
    }
    const ofDayS = Math.floor(ofDayMs / 1_000);
    const hours = Math.floor(ofDayS / 3_600);
    const minutes = Math.floor(ofDayS / 60) % 60;
    const ms = ofDayMs % 1_000;
    const fraction = ms < 10 ? `00${ms}` : pad(ms, 100);
    return `${this.#day}${pad(hours, 10)}:${pad(minutes, 10)}:${pad(ofDayS % 60, 10)}.${fraction}Z`;
  }
}

function pad(value: number, ten: number): string {
  return value < ten ? `0${value}` : String(value);
}

let lastDate = { second: Number.NaN, text: "" };

/** The date of an HTTP header, from ms since 1970. Objects that were written in one second are mostly read together. */
export function formatHttpDate(timeMs: number): string {
  const second = Math.floor(timeMs / 1_000);
  if (second !== lastDate.second) lastDate = { second, text: new Date(timeMs).toUTCString() };
  return lastDate.text;
}
