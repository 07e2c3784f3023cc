// The dashboard as text: a screen for terminals, a line for everything else.
import type { LiveState } from "./live-state.ts";

const BARS = "▁▂▃▄▅▆▇█";
const LABEL_WIDTH = 12;
const INVERSE = "\u001b[7m";
const RESET = "\u001b[0m";
const MARKS: Readonly<Record<string, string>> = { critical: "■", warning: "▲" };

/** The surroundings of the figures. */
export interface ScreenFacts {
  readonly url: string;
  readonly columns: number;
  readonly rows: number;
  /** Since when there are no updates, and why; undefined while connected. */
  readonly lost: string | undefined;
  readonly now: Date;
}

/** The lines of the screen, none longer than the terminal is wide, and not more than it has rows. */
export function formatScreen(state: LiveState, facts: ScreenFacts): string[] {
  const { url, columns, rows, lost, now } = facts;
  const time = now.toISOString().slice(11, 19);
  const title = `platform-gate ${state.version}  ${url}  ${time} UTC`;
  const lines = [
    title,
    lost === undefined ? "" : `no updates ${lost}`,
    ...formatFigures(state, columns).map(([label, value]) => label.padEnd(LABEL_WIDTH) + value),
    "",
    ...formatAttention(state),
  ];
  const shown = lines.slice(0, Math.max(1, rows - 1)).map((line) => cut(line, columns));
  return lost === undefined ? shown : shown.map((line, at) => (at === 1 ? invert(line) : line));
}

/** One update in one line, for logs and pipes. */
export function formatLine(state: LiveState, now: Date): string {
  const { open, halfOpen } = countCircuits(state);
  const fields = [
    now.toISOString(),
    `requests=${formatNumber(state.read("requests"))}/s`,
    `errors=${formatNumber(state.read("errors"))}/s`,
    `p99=${formatMs(state.read("latency_p99"))}`,
    `circuits_open=${open}`,
    `circuits_half_open=${halfOpen}`,
    `cache_hits=${formatRatio(state.read("cache_hit_ratio"))}`,
    `attention=${state.attention.length}`,
  ];
  return fields.join(" ");
}

function formatFigures(state: LiveState, columns: number): [string, string][] {
  const requests = `${formatNumber(state.read("requests"))} /s`;
  const width = Math.max(0, columns - LABEL_WIDTH - requests.length - 2);
  const { open, halfOpen } = countCircuits(state);
  const isBroken = open + halfOpen > 0;
  const p50 = formatMs(state.read("latency_p50"));
  const p99 = formatMs(state.read("latency_p99"));
  return [
    ["requests", `${requests}  ${formatTrace(state.trace, width)}`],
    ["errors", `${formatNumber(state.read("errors"))} /s`],
    ["latency", `p50 ${p50}   p99 ${p99}`],
    ["active", formatNumber(state.read("active"))],
    ["cache hits", formatRatio(state.read("cache_hit_ratio"))],
    ["circuits", isBroken ? `${open} open, ${halfOpen} half open` : "none open"],
    ...formatModels(state),
  ];
}

// Gateways without requests to models have no figures of them.
function formatModels(state: LiveState): [string, string][] {
  const tokens = state.read("ai_tokens");
  if (tokens === undefined) return [];
  const cost = (state.read("ai_cost_today") ?? 0).toFixed(2);
  const blocked = formatNumber(state.read("ai_blocked"));
  const hits = formatRatio(state.read("ai_hit_ratio"));
  return [
    ["models", `${formatNumber(tokens)} tokens/s   ${cost} USD today`],
    ["", `${blocked} blocked/s   hits ${hits}`],
  ];
}

function formatAttention({ attention }: LiveState): string[] {
  if (attention.length === 0) return ["● nothing needs you"];
  return attention.flatMap(({ level, title, detail }) => [
    `${MARKS[level] ?? "●"} ${title}`,
    ...(detail === "" ? [] : [`  ${detail}`]),
  ]);
}

function countCircuits(state: LiveState): { open: number; halfOpen: number } {
  return {
    open: state.read("circuits_open") ?? 0,
    halfOpen: state.read("circuits_half_open") ?? 0,
  };
}

function formatTrace(values: readonly number[], width: number): string {
  const shown = width === 0 ? [] : values.slice(-width);
  const top = Math.max(...shown, 1);
  return shown.map((value) => BARS[Math.ceil((value / top) * (BARS.length - 1))]).join("");
}

function formatNumber(value: number | undefined): string {
  if (value === undefined) return "–";
  return value >= 100 ? String(Math.round(value)) : String(Math.round(value * 10) / 10);
}

function formatMs(value: number | undefined): string {
  return value === undefined ? "–" : `${Math.round(value * 100) / 100} ms`;
}

function formatRatio(value: number | undefined): string {
  return value === undefined ? "–" : `${Math.round(value * 1_000) / 10} %`;
}

function cut(line: string, columns: number): string {
  return line.length <= columns ? line : `${line.slice(0, Math.max(0, columns - 1))}…`;
}

function invert(line: string): string {
  return `${INVERSE}${line}${RESET}`;
}
