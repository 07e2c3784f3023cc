// A chart of figures over time, by uPlot.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { formatTime } from "../format/format.ts";
import { colourOf, watchTheme } from "./colours.ts";

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
  }, [shape, heightPx, marks.length]);
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
  const font = `11px ${colourOf(host, "--mono")}`;
  const axis = { stroke: ink, font, ticks: { stroke: grid, width: 1, size: 4 } };
  return {
    width: Math.max(200, host.clientWidth),
    height,
    legend: { show: false },
    cursor: { y: false, points: { size: 7 } },
    padding: [12, 8, 0, 0],
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(1, (max ?? 0) * 1.15)] } },
    axes: [
      { ...axis, grid: { show: false }, values: (_plot, splits) => splits.map(formatSplit) },
      { ...axis, size: 52, grid: { stroke: grid, width: 1 } },
    ],
    series: [
      {},
      ...lines.map((line): uPlot.Series => {
        const stroke = colourOf(host, line.colour);
        return {
          label: line.label,
          stroke,
          width: 1.5,
          points: { show: false },
          ...(line.isFilled === false ? {} : { fill: `${stroke}22` }),
        };
      }),
    ],
    hooks: { draw: [(plot) => drawMarks(plot, marks, ink, font)] },
  };
}

function formatSplit(epochS: number): string {
  return formatTime(epochS * 1000).slice(0, 5);
}

function drawMarks(
  plot: uPlot,
  marks: readonly { at: number; label: string }[],
  ink: string,
  font: string,
): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = ink;
  ctx.fillStyle = ink;
  ctx.font = font;
  ctx.setLineDash([2, 3]);
  for (const { at, label } of marks) {
    const x = Math.round(plot.valToPos(at, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(label, x + 4, bbox.top + 10);
  }
  ctx.restore();
}
