// Widths of columns that people have set, kept in the browser: they are of no use to anybody else.
import { signal } from "@preact/signals";

const STORAGE_KEY = "platform.console.widths";
/** Tables whose widths are kept; the ones that were set first are forgotten. */
const TABLES_MAX = 100;
const COLUMNS_MAX = 300;
/** Bounds of a width in px. */
export const WIDTH_MIN = 48;
const WIDTH_MAX = 1_200;

type Widths = Readonly<Record<string, number>>;

const kept = signal<ReadonlyMap<string, Widths>>(new Map(load()));

/** Widths in px by column, of the table with this key; columns without one are as wide as their values. */
export function readWidths(table: string): Widths {
  return kept.value.get(table) ?? {};
}

/** Sets the width of a column; undefined gives it that of its values again. */
export function setWidth(table: string, column: string, px: number | undefined): void {
  const { [column]: _, ...others } = readWidths(table);
  const width = px === undefined ? [] : [[column, boundWidth(px)] as const];
  const entries = [...Object.entries(others), ...width].slice(-COLUMNS_MAX);
  const next = new Map(kept.value);
  next.delete(table);
  if (entries.length > 0) next.set(table, Object.fromEntries(entries));
  kept.value = new Map([...next].slice(-TABLES_MAX));
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify([...kept.value]));
  } catch {
    // Without storage the widths last as long as the page.
  }
}

function boundWidth(px: number): number {
  return Math.round(Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, px)));
}

function load(): [string, Widths][] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "[]");
    if (!Array.isArray(found)) return [];
    return found.flatMap((entry: unknown): [string, Widths][] => {
      if (!Array.isArray(entry) || typeof entry[0] !== "string") return [];
      const widths = Object.entries((entry[1] ?? {}) as Record<string, unknown>);
      const whole = widths.filter((one): one is [string, number] => Number.isFinite(one[1]));
      return [[entry[0], Object.fromEntries(whole.map(([name, px]) => [name, boundWidth(px)]))]];
    });
  } catch {
    return [];
  }
}
