// Tables of medians and ratios, and the results file that contains them.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { takeRatioSpread, takeSpread, type Spread } from "./statistics.ts";

/** One measured figure of a case. */
export interface Column {
  key: string;
  /** Title with unit. */
  title: string;
  digits: number;
}

/** The rounds of one contender; an invalid round is undefined. */
export interface Row {
  name: string;
  isOurs: boolean;
  version: string;
  rounds: (Record<string, number> | undefined)[];
  /** Why there are no figures, or why a round is invalid. */
  note?: string;
}

/** A goal for the ratio of our row to another one; without a limit, the ratio is only shown. */
export interface Goal {
  column: string;
  against: string;
  /** Names of our rows to which the goal applies; all of them if absent. */
  ours?: readonly string[];
  atMost?: number;
  atLeast?: number;
}

/** The result of one case. */
export interface CaseReport {
  /** Description of the work in one or two sentences. */
  work: string;
  columns: readonly Column[];
  rows: readonly Row[];
  /** The columns whose ratios matter. */
  ratioColumns: readonly string[];
  goals: readonly Goal[];
  /** Whole lines of Markdown below the tables. */
  remarks?: readonly string[];
}

/** A remark that compares a figure with its goal. */
export function judgeFigure(title: string, figure: number, max: number): string {
  const verdict = figure <= max ? "met" : "**missed**";
  return `- ${title}: ${figure.toFixed(0)}, goal ≤ ${max}: ${verdict}`;
}

/** The tables of a case as Markdown that is also readable in a terminal. */
export function formatReport(report: CaseReport): string {
  const parts = [report.work, "", formatFigures(report)];
  for (const key of report.ratioColumns) {
    const table = formatRatios(report, key);
    if (table !== "") parts.push("", table);
  }
  const verdicts = report.goals.flatMap((goal) => judgeGoal(report, goal));
  if (verdicts.length > 0) parts.push("", ...verdicts);
  const notes = report.rows.filter((row) => row.note !== undefined);
  if (notes.length > 0) parts.push("", ...notes.map((row) => `- ${row.name}: ${row.note}`));
  if (report.remarks !== undefined && report.remarks.length > 0) parts.push("", ...report.remarks);
  return parts.join("\n");
}

/** Replaces a case's section in the file, or inserts it in the given order. */
export function rewriteSection(
  path: string,
  intro: string,
  section: { name: string; markdown: string },
  order: readonly string[],
): void {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const sections = new Map<string, string>();
  for (const match of text.matchAll(/<!-- begin (\S+) -->\n([\s\S]*?)\n<!-- end \1 -->/g)) {
    sections.set(match[1] ?? "", match[2] ?? "");
  }
  sections.set(section.name, section.markdown);
  const rank = (name: string): number => {
    const index = order.indexOf(name);
    return index < 0 ? order.length : index;
  };
  const body = [...sections]
    .sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map(([name, markdown]) => `<!-- begin ${name} -->\n${markdown}\n<!-- end ${name} -->\n`);
  writeFileSync(path, `${intro}\n${body.join("\n")}`);
}

function formatFigures(report: CaseReport): string {
  const header = ["", ...report.columns.map((column) => column.title)];
  const rows = report.rows.map((row) => {
    const name = row.version === "" ? row.name : `${row.name} ${row.version}`;
    if (!hasFigures(row)) return [name, ...report.columns.map(() => "—")];
    return [
      name,
      ...report.columns.map(({ key, digits }) =>
        formatNumber(takeSpread(readValues(row, key)).median, digits),
      ),
    ];
  });
  return formatTable(header, rows);
}

function formatRatios(report: CaseReport, key: string): string {
  const title = report.columns.find((column) => column.key === key)?.title ?? key;
  const ours = report.rows.filter((row) => row.isOurs && hasFigures(row));
  const others = report.rows.filter((row) => !row.isOurs && hasFigures(row));
  if (ours.length === 0 || others.length === 0) return "";
  return formatTable(
    [`${title}: row ÷ column`, ...others.map((other) => other.name)],
    ours.map((mine) => [
      mine.name,
      ...others.map((other) => formatSpread(compareRows(mine, other, key))),
    ]),
  );
}

function judgeGoal(report: CaseReport, goal: Goal): string[] {
  const other = report.rows.find((row) => row.name === goal.against);
  const limit = goal.atMost === undefined ? `≥ ${goal.atLeast}` : `≤ ${goal.atMost}`;
  return report.rows
    .filter((row) => (goal.ours === undefined ? row.isOurs : goal.ours.includes(row.name)))
    .filter((row) => other !== undefined && hasFigures(row) && hasFigures(other))
    .map((row) => {
      const { median } = compareRows(row, other ?? row, goal.column);
      const title = report.columns.find((column) => column.key === goal.column)?.title;
      const finding = `- ${row.name} ÷ ${goal.against}, ${title}: ${median.toFixed(2)}`;
      if (goal.atMost === undefined && goal.atLeast === undefined) return finding;
      const isMet = median <= (goal.atMost ?? Infinity) && median >= (goal.atLeast ?? -Infinity);
      return `${finding}, goal ${limit}: ${isMet ? "met" : "**missed**"}`;
    });
}

function compareRows(mine: Row, other: Row, key: string): Spread {
  return takeRatioSpread(
    mine.rounds.map((round) => round?.[key]),
    other.rounds.map((round) => round?.[key]),
  );
}

function hasFigures(row: Row): boolean {
  return row.rounds.some((round) => round !== undefined);
}

function readValues(row: Row, key: string): number[] {
  return row.rounds.flatMap((round) => (round?.[key] === undefined ? [] : [round[key]]));
}

function formatSpread({ median, min, max }: Spread): string {
  if (Number.isNaN(median)) return "—";
  return `${median.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)})`;
}

function formatNumber(value: number, digits: number): string {
  if (Number.isNaN(value)) return "—";
  return value.toLocaleString("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** A Markdown table, padded so that it is readable in a terminal. */
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const widths = header.map((cell, index) =>
    Math.max(3, cell.length, ...rows.map((row) => (row[index] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${widths
      .map((width, index) =>
        index === 0 ? (cells[index] ?? "").padEnd(width) : (cells[index] ?? "").padStart(width),
      )
      .join(" | ")} |`;
  const rule = `|${widths.map((width, index) => (index === 0 ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  return [line(header), rule, ...rows.map(line)].join("\n");
}
