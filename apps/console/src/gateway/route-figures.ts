// Figures of a route over time: what its charts and the table of its targets show.
import type { Answer } from "../contract/answer.ts";
import { withQuery } from "../api/api.ts";
import { queryValue } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useLoad, type Loaded } from "../view/load.ts";
import { nameOf, type Route } from "./routes.ts";

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
/** Spans with the seconds between two points and the interval of updates. */
const SPANS = {
  "5m": { ms: 300 * SECOND_MS, step: 1, everyMs: 2 * SECOND_MS },
  "3h": { ms: 3 * HOUR_MS, step: 10, everyMs: 10 * SECOND_MS },
  "1d": { ms: 24 * HOUR_MS, step: 300, everyMs: 60 * SECOND_MS },
} as const;

/** A span of time that is shown. */
export type Span = keyof typeof SPANS;

/** The span of the trace, and the default. */
export const RECENT = "5m" satisfies Span;

/** Points of a figure; null where there is none. */
export type Values = readonly (number | null)[];

/** Answer of the gateway. */
export type RouteSeries = Answer<"gate", "GET /admin/route-series">;

/** Figures of a route in a span. */
export interface RouteFigures {
  span: Span;
  loaded: Loaded<RouteSeries>;
}

/** The span that the address names. */
export function readSpan(): Span {
  const given = queryValue("span");
  return given in SPANS ? (given as Span) : RECENT;
}

/** Loads the figures of a route in a span. */
export function useRouteFigures(route: Route, span: Span): RouteFigures {
  const { ms, step, everyMs } = SPANS[span];
  const { prefix, host, methods, variant } = route;
  const loaded = useLoad(
    `series ${nameOf(route)} ${span}`,
    async () => {
      const from = Date.now() - ms;
      const query = { prefix, host, methods: methods?.join(","), variant, from, step };
      return await callService<RouteSeries>("gate", withQuery("/admin/route-series", query));
    },
    everyMs,
  );
  return { span, loaded };
}

/** Figures of a target as numbers; null where nothing is known. */
export interface TargetFigures {
  /** Attempts per second, at the end of the span. */
  requests: number | null;
  p99Ms: number | null;
  /** Share of attempts that failed in the whole span, 0 to 1. */
  failed: number | null;
}

/** Numbers of a target. */
export function readTargetFigures(
  series: RouteSeries | undefined,
  target: string,
): TargetFigures | undefined {
  const found = series?.targets.find(({ url }) => url === target);
  if (found === undefined) return undefined;
  const requests = sum(found.requests);
  return {
    requests: findLast(found.requests),
    p99Ms: findLast(found.p99_ms),
    failed: requests === 0 ? null : sum(found.failures) / requests,
  };
}

/** The last point that is known. */
export function findLast(values: Values): number | null {
  return values.findLast((value) => value !== null) ?? null;
}

/** Adds points of several figures up. */
export function addUp(series: readonly Values[]): Values {
  const [first = []] = series;
  return first.map((_value, index) => {
    const known = series.flatMap((values) => values[index] ?? []);
    return known.length === 0 ? null : sum(known);
  });
}

function sum(values: Values): number {
  return values.reduce((total: number, value) => total + (value ?? 0), 0);
}
