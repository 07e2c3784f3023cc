// Requests per second of a route by target, with the steps of its canary, and the response times of its targets.
import type { Line } from "../chart/chart.tsx";
import { LazyChart } from "../chart/lazy-chart.tsx";
import { formatNumber } from "../format/format.ts";
import { setQuery } from "../router/router.ts";
import { Segments } from "../view/controls.tsx";
import { Problem } from "../view/problem.tsx";
import { t } from "../words/words.ts";
import {
  addUp,
  findLast,
  type RouteFigures,
  type RouteSeries,
  type Values,
} from "./route-figures.ts";

const SECOND_MS = 1_000;
const LATENCY_HEIGHT_PX = 150;

/** Colours of targets with their classes; further targets are one line. */
const COLOURS = [
  { colour: "--gateway", hue: "gate" },
  { colour: "--messaging", hue: "pulse" },
  { colour: "--storage", hue: "vault" },
  { colour: "--identity", hue: "auth" },
  { colour: "--tunnels", hue: "tunnel" },
] as const;

type LegendLine = Line & { hue: string };

/** Hue of the target at a place in the route. */
export function hueOfTarget(index: number): string {
  return COLOURS[index]?.hue ?? "other";
}

/** The charts; nothing for routes of which the gateway keeps no figures. */
export function RouteCharts({ figures: { span, loaded } }: { figures: RouteFigures }) {
  const data = loaded.data.value;
  const failure = loaded.failure.value;
  if (data?.targets.length === 0) return null;
  const times = data?.targets[0]!.requests.map(
    (_value, index) => data.from / SECOND_MS + index * data.step,
  );
  return (
    <section class="sec">
      <div class="h2">
        <h2>{t("Requests per second")}</h2>
        <small>{t("by target, with each attempt")}</small>
        <span class="end">
          <Segments
            label={t("Time")}
            value={span}
            options={[
              ["5m", t("5 min")],
              ["3h", t("3 h")],
              ["1d", t("1 day")],
            ]}
            onChange={(value) => setQuery({ span: value === "5m" ? undefined : value })}
          />
        </span>
      </div>
      {failure !== undefined && <Problem failure={failure} retry={() => void loaded.reload()} />}
      {data !== undefined && times !== undefined && <Charts data={data} times={times} />}
    </section>
  );
}

function Charts({ data, times }: { data: RouteSeries; times: readonly number[] }) {
  const requests = describeRequests(data);
  const latency = describeLatency(data);
  if (times.length < 2) {
    return (
      <>
        <Legend lines={requests} />
        <p class="hint">{t("There are no figures for this time yet.")}</p>
      </>
    );
  }
  return (
    <>
      <Legend lines={requests} />
      <LazyChart
        label={describe(t("Requests per second"), requests)}
        times={times}
        lines={requests}
        marks={data.canary === undefined ? [] : findSteps(data, data.canary)}
      />
      <div class="h2">
        <h3>{t("Latency")}</h3>
        <small>{t("milliseconds, at the targets")}</small>
        <Legend lines={latency} />
      </div>
      <LazyChart
        label={describe(t("Latency"), latency)}
        times={times}
        lines={latency}
        heightPx={LATENCY_HEIGHT_PX}
      />
    </>
  );
}

function Legend({ lines }: { lines: readonly LegendLine[] }) {
  return (
    <span class="legend target-legend">
      {lines.map(({ hue, label, values }) => (
        <span key={label} class={`hue hue-${hue}`}>
          <i />
          {label} <b class="mono">{formatNumber(findLast(values))}</b>
        </span>
      ))}
    </span>
  );
}

function describeRequests({ targets }: RouteSeries): LegendLine[] {
  const shown = targets.slice(0, COLOURS.length);
  const others = targets.slice(COLOURS.length).map(({ requests }) => requests);
  const failures = addUp(targets.map((target) => target.failures));
  return [
    ...shown.map(({ url, requests: values }, index) => ({
      label: url,
      ...COLOURS[index]!,
      values,
      isFilled: targets.length === 1,
    })),
    ...(others.length === 0
      ? []
      : [
          {
            label: t("{n} other targets", { n: others.length }),
            colour: "--ink-3",
            hue: "other",
            values: addUp(others),
            isFilled: false,
          },
        ]),
    { label: t("failed"), colour: "--bad", hue: "bad", values: failures },
  ];
}

function describeLatency({ p50_ms: median, p99_ms: slowest }: RouteSeries): LegendLine[] {
  return [
    { label: "p50", ...COLOURS[0], values: median, isFilled: false },
    { label: "p99", ...COLOURS[1], values: slowest, isFilled: false },
  ];
}

/** Times at which the share of the canary has changed. */
function findSteps({ from, step }: RouteSeries, canary: Values): { at: number; label: string }[] {
  const steps: { at: number; label: string }[] = [];
  let before: number | null = null;
  for (const [index, value] of canary.entries()) {
    // A point of a longer step is the mean of its samples: the next one has the new share.
    const next = canary[index + 1];
    if (value === null || (next !== undefined && next !== value)) continue;
    if (before !== null && value !== before) {
      const at = from / SECOND_MS + index * step;
      steps.push({ at, label: `${formatNumber(value)} %` });
    }
    before = value;
  }
  return steps;
}

/** The figures as words, for screen readers. */
function describe(title: string, lines: readonly Line[]): string {
  const figures = lines.map(({ label, values }) => `${label}: ${formatNumber(findLast(values))}`);
  return `${title}. ${figures.join(", ")}`;
}
