// The strip of the last five minutes: one stroke a second, failures below the line.

/** @typedef {import("./relay.js").Trace} Trace */
/** @typedef {{ second: number, requests: number[], failures: number[], p50Ms: number | null }} Kept */

const SECONDS = 300;
const RATE_SECONDS = 60;
/** Heights in CSS pixels: strokes above the line, and below it. */
const ABOVE = 26;
const BELOW = 5;
const LINE_AT = 28;

/** Draws the tunnels' last five minutes. */
export class TraceStrip {
  #canvas;
  /** Last second first. @type {Map<string, Kept>} */
  #kept = new Map();
  #shown = "";

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    new ResizeObserver(() => this.show(this.#shown)).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
      this.show(this.#shown),
    );
  }

  /** Takes the last seconds of the tunnels, by id. @param {Record<string, Trace>} traces */
  take(traces) {
    for (const [id, { second, requests, failures, p50_ms: p50Ms }] of Object.entries(traces)) {
      const kept = this.#kept.get(id);
      const passed = kept === undefined ? SECONDS : Math.max(0, second - kept.second);
      this.#kept.set(id, {
        second,
        requests: merge(kept?.requests ?? [], requests, passed),
        failures: merge(kept?.failures ?? [], failures, passed),
        p50Ms,
      });
    }
    for (const id of this.#kept.keys()) if (!Object.hasOwn(traces, id)) this.#kept.delete(id);
  }

  /** Draws a tunnel's strip; returns its figures. @param {string} id @returns {{ perSecond: string, p50Ms: number | null }} */
  show(id) {
    this.#shown = id;
    const kept = this.#kept.get(id);
    const requests = kept?.requests ?? [];
    const failures = kept?.failures ?? [];
    this.#draw(requests, failures);
    this.#canvas.setAttribute(
      "aria-label",
      `Last 5 minutes: ${count(sum(requests), "request")}, ${count(sum(failures), "failure")}`,
    );
    const perSecond = sum(requests.slice(0, RATE_SECONDS)) / RATE_SECONDS;
    return {
      perSecond: perSecond.toFixed(perSecond > 0 && perSecond < 10 ? 1 : 0),
      p50Ms: kept?.p50Ms ?? null,
    };
  }

  /** @param {readonly number[]} requests @param {readonly number[]} failures */
  #draw(requests, failures) {
    const canvas = this.#canvas;
    const { width, height } = canvas.getBoundingClientRect();
    const scale = devicePixelRatio;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = canvas.getContext("2d");
    if (context === null) return;
    const style = getComputedStyle(canvas);
    context.scale(scale, scale);
    context.fillStyle = style.getPropertyValue("--line");
    context.fillRect(0, LINE_AT, width, 1);
    const step = width / SECONDS;
    const strokeWidth = Math.max(1, step - 1);
    const most = Math.max(1, ...requests);
    for (let back = 0; back < SECONDS; back++) {
      const x = width - (back + 1) * step;
      const made = requests[back] ?? 0;
      const failed = failures[back] ?? 0;
      // A single request among thousands is still to be seen.
      const stroke = made === 0 ? 0 : Math.max(2, (made / most) * ABOVE);
      context.fillStyle = style.getPropertyValue("--stroke");
      context.fillRect(x, LINE_AT - stroke, strokeWidth, stroke);
      if (failed === 0) continue;
      context.fillStyle = style.getPropertyValue("--failure");
      context.fillRect(x, LINE_AT + 1, strokeWidth, Math.max(2, (failed / most) * BELOW));
    }
  }
}

/** Time as the two largest units. @param {number} ms */
export function formatUptime(ms) {
  const seconds = Math.floor(ms / 1_000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (hours >= 24) return `${Math.floor(hours / 24)} d ${hours % 24} h`;
  if (hours > 0) return `${hours} h ${minutes % 60} min`;
  return minutes > 0 ? `${minutes} min` : `${seconds} s`;
}

/**
 * Shifts by the seconds that have passed and puts the newest counts in place.
 * @param {readonly number[]} kept @param {readonly number[]} newest @param {number} passed
 */
function merge(kept, newest, passed) {
  const gap = Array.from({ length: Math.min(passed, SECONDS) }, () => 0);
  const shifted = [...gap, ...kept].slice(0, SECONDS);
  for (const [back, value] of newest.entries()) shifted[back] = value;
  return shifted;
}

/** @param {readonly number[]} values */
function sum(values) {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

/** @param {number} number @param {string} noun */
function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
