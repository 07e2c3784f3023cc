// A chart of figures over time, by uPlot.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { formatNumber, formatTime } from "../format/format.ts";
import { t } from "../words/words.ts";
import { colourOf, watchTheme } from "./colours.ts";

/** Seconds on both sides of a single time. */
const ALONE_S = 60;
/** Marks that are closer than this are drawn as one. */
const MARK_GAP_PX = 12;

/** Least distance of the middles of two times on the axis: their text with seconds, and a gap. */
const TIME_SPACE_PX = 68;

/** A line of a chart. */
export interface Line {
  label: string;
  /** Custom property with its colour. */
  colour: string;
  /** One value for each time. */
  values: readonly (number | null)[];
  isFilled?: boolean;
}

/** Properties of a chart. */
interface ChartProps {
  /** Read by screen readers. */
  label: string;
  /** Epoch seconds. */
  times: readonly number[];
  lines: readonly Line[];
  heightPx?: number;
  /** Draws vertical lines with a text: changes. */
  marks?: readonly { at: number; label: string }[];
}

/** A chart; it follows its width and the theme. */
export function Chart({ label, times, lines, heightPx = 240, marks = [] }: ChartProps) {
  const ref = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const shape = lines.map((line) => `${line.label}${line.colour}`).join();
  const marked = marks.map(({ at, label: text }) => `${at} ${text}`).join("\n");
  useEffect(() => {
    const host = ref.current!;
    const build = (): void => {
      plot.current?.destroy();
      plot.current = new uPlot(
        describe(host, lines, heightPx, marks),
        [[...times], ...lines.map((line) => [...line.values])],
        host,
      );
    };
    build();
    const resize = new ResizeObserver(() => {
      plot.current?.setSize({ width: host.clientWidth, height: heightPx });
    });
    resize.observe(host);
    const stopTheme = watchTheme(build);
    return () => {
      stopTheme();
      resize.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shape, heightPx, marked]);
  useEffect(() => {
    plot.current?.setData([[...times], ...lines.map((line) => [...line.values])]);
  }, [times, lines]);
  return <div ref={ref} class="chart" role="img" aria-label={label} />;
}

function describe(
  host: HTMLElement,
  lines: readonly Line[],
  height: number,
  marks: readonly { at: number; label: string }[],
): uPlot.Options {
  const ink = colourOf(host, "--ink-3");
  const grid = colourOf(host, "--grid");
  const mono = colourOf(host, "--mono");
  const font = `11px ${mono}`;
  const axis = { stroke: ink, font, ticks: { stroke: grid, width: 1, size: 4 } };
  return {
    width: Math.max(200, host.clientWidth),
    height,
    legend: { show: false },
    cursor: { y: false, points: { size: 7 } },
    // Room for the half of the last time that stands beyond the plot.
    padding: [12, 32, 0, 0],
    scales: {
      // From a single time uPlot would draw a day, and name its hours by midnights.
      x: {
        range: ({ data }, min, max) =>
          data[0].length === 1 ? [min - ALONE_S, min + ALONE_S] : [min, max],
      },
      y: { range: (_plot, _min, max) => [0, Math.max(1, (max ?? 0) * 1.15)] },
    },
    axes: [
      { ...axis, grid: { show: false }, values: formatSplits, space: TIME_SPACE_PX },
      { ...axis, size: 52, grid: { stroke: grid, width: 1 }, values: formatValues },
    ],
    series: [
      {},
      ...lines.map((line): uPlot.Series => {
        const stroke = colourOf(host, line.colour);
        return {
          label: line.label,
          stroke,
          width: 1.5,
          points: { show: true, size: 4, fill: stroke, filter: findIsolated },
          ...(line.isFilled === false ? {} : { fill: `${stroke}22` }),
        };
      }),
    ],
    hooks: { draw: [(plot) => drawMarks(plot, marks, ink, mono)] },
  };
}

/** Points without a neighbour, which no line joins. */
function findIsolated(plot: uPlot, series: number): number[] {
  const values = plot.data[series]!;
  return Array.from(values.keys()).filter(
    (at) => isKnown(values[at]) && !isKnown(values[at - 1]) && !isKnown(values[at + 1]),
  );
}

function isKnown(value: number | null | undefined): boolean {
  return value !== null && value !== undefined;
}

/** Times of the axis: with seconds where two of them share a minute. */
function formatSplits(_plot: uPlot, splits: readonly number[]): string[] {
  const step = splits.length < 2 ? Infinity : splits[1]! - splits[0]!;
  const length = step < 60 ? "00:00:00".length : "00:00".length;
  return splits.map((epochS) => formatTime(epochS * 1000).slice(0, length));
}

function formatValues(_plot: uPlot, splits: readonly number[]): string[] {
  return splits.map((value) => formatNumber(value));
}

/** Draws the marks; those that are too close to be told apart are one, with their number. */
function drawMarks(
  plot: uPlot,
  marks: readonly { at: number; label: string }[],
  ink: string,
  mono: string,
): void {
  const { ctx, bbox } = plot;
  const ratio = uPlot.pxRatio;
  const end = bbox.left + bbox.width;
  ctx.save();
  ctx.strokeStyle = ink;
  ctx.fillStyle = ink;
  ctx.font = `${11 * ratio}px ${mono}`;
  ctx.textAlign = "left";
  ctx.setLineDash([2 * ratio, 3 * ratio]);
  let freeFrom = bbox.left;
  for (const { x, label } of gatherMarks(plot, marks, MARK_GAP_PX * ratio)) {
    if (x < bbox.left || x > end) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const gap = 4 * ratio;
    const { width } = ctx.measureText(label);
    const start = x + gap + width <= end ? x + gap : x - gap - width;
    if (start < freeFrom) continue;
    ctx.fillText(label, start, bbox.top + 10 * ratio);
    freeFrom = Math.max(x, start + width) + gap;
  }
  ctx.restore();
}

/** Marks by their place on the plot, from left to right; `gap` in pixels of the canvas. */
function gatherMarks(
  plot: uPlot,
  marks: readonly { at: number; label: string }[],
  gap: number,
): { x: number; label: string; count: number }[] {
  const found: { x: number; label: string; count: number }[] = [];
  for (const { at, label } of marks.toSorted((one, other) => one.at - other.at)) {
    const x = Math.round(plot.valToPos(at, "x", true));
    const last = found.at(-1);
    if (last === undefined || x - last.x >= gap) {
      found.push({ x, label, count: 1 });
      continue;
    }
    last.count += 1;
    last.label = t("{n} changes", { n: last.count });
  }
  return found;
}
