// Requests per second of a route by target, with the steps of its canary.
import { withQuery } from "../api/api.ts";
import type { Line } from "../chart/chart.tsx";
import { LazyChart } from "../chart/lazy-chart.tsx";
import { formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { Segments } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Problem } from "../view/problem.tsx";
import { t } from "../words/words.ts";
import { nameOf, type Route } from "./routes.ts";

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
/** Spans with the seconds between two points and the interval of updates. */
const SPANS = {
  "5m": { ms: 300 * SECOND_MS, step: 1, everyMs: 2 * SECOND_MS },
  "3h": { ms: 3 * HOUR_MS, step: 10, everyMs: 10 * SECOND_MS },
  "1d": { ms: 24 * HOUR_MS, step: 300, everyMs: 60 * SECOND_MS },
} as const;
type Span = keyof typeof SPANS;

/** Colours of targets with the classes of their legend; further targets are one line. */
const COLOURS = [
  { colour: "--gateway", hue: "gate" },
  { colour: "--messaging", hue: "pulse" },
  { colour: "--storage", hue: "vault" },
  { colour: "--identity", hue: "auth" },
  { colour: "--tunnels", hue: "tunnel" },
] as const;

type Values = readonly (number | null)[];

/** Answer of the gateway. */
interface RouteSeries {
  /** Seconds between two points. */
  step: number;
  /** Epoch ms of the first point. */
  from: number;
  targets: { url: string; requests: Values; failures: Values }[];
  /** Share of the canary in percent. */
  canary?: Values;
}

/** The chart; nothing for routes of which the gateway keeps no figures. */
export function TargetChart({ route }: { route: Route }) {
  const given = queryValue("span");
  const span: Span = given in SPANS ? (given as Span) : "5m";
  const { ms, step, everyMs } = SPANS[span];
  const loaded = useLoad(
    `series ${nameOf(route)} ${span}`,
    async () => await readSeries(route, Date.now() - ms, step),
    everyMs,
  );
  const data = loaded.data.value;
  const failure = loaded.failure.value;
  if (data?.targets.length === 0) return null;
  const lines = data === undefined ? [] : describeLines(data);
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
      {data !== undefined && times !== undefined && (
        <>
          <span class="legend target-legend">
            {lines.map(({ hue, label, values }) => (
              <span key={label} class={`hue hue-${hue}`}>
                <i />
                {label} <b class="mono">{formatNumber(findLast(values))}</b>
              </span>
            ))}
          </span>
          {times.length < 2 ? (
            <p class="hint">{t("There are no figures for this time yet.")}</p>
          ) : (
            <LazyChart
              label={describe(lines)}
              times={times}
              lines={lines}
              marks={data.canary === undefined ? [] : findSteps(data, data.canary)}
            />
          )}
        </>
      )}
    </section>
  );
}

async function readSeries(route: Route, fromMs: number, step: number): Promise<RouteSeries> {
  const { prefix, host, methods } = route;
  const query = { prefix, host, methods: methods?.join(","), from: Math.floor(fromMs), step };
  return await callService<RouteSeries>("gate", withQuery("/admin/route-series", query));
}

function describeLines({ targets }: RouteSeries): (Line & { hue: string })[] {
  const shown = targets.slice(0, COLOURS.length);
  const others = targets.slice(COLOURS.length).map(({ requests }) => requests);
  const failures = addUp(targets.map((target) => target.failures));
  return [
    ...shown.map(({ url, requests: values }, index) => ({
      label: url,
      ...COLOURS[index]!,
      values,
      isFilled: false,
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

function addUp(series: readonly Values[]): Values {
  const [first = []] = series;
  return first.map((_value, index) => {
    const known = series.flatMap((values) => values[index] ?? []);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
  });
}

function findLast(values: Values): number | null | undefined {
  return values.findLast((value) => value !== null);
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
function describe(lines: readonly Line[]): string {
  const figures = lines.map(({ label, values }) => `${label}: ${formatNumber(findLast(values))}`);
  return `${t("Requests per second")}. ${figures.join(", ")}`;
}
